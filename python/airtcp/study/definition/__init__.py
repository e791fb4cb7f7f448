"""What a study is, and reading one: `study.toml` and the tables beside it.

How the modules work together: `model` (with `figures` and `variants`) says what a study is;
`reader` reads its folder, with `experiments`, `metrics`, `catalogue`, `numbers` and `others` for
the parts.
"""

from airtcp.runs.testbed import Key
from airtcp.study.definition.figures import (
    Bars,
    Curve,
    Figure,
    Lines,
    MetricRow,
    SeriesRow,
    Timeline,
    Trace,
)
from airtcp.study.definition.model import (
    Cell,
    Claim,
    Experiment,
    Known,
    PaperClaim,
    Study,
)
from airtcp.study.definition.reader import load
from airtcp.study.definition.variants import Variant, key_text
from airtcp.study.folders import find, folders, names

__all__ = [
    "Bars",
    "Cell",
    "Claim",
    "Curve",
    "Experiment",
    "Figure",
    "Key",
    "Known",
    "Lines",
    "MetricRow",
    "PaperClaim",
    "SeriesRow",
    "Study",
    "Timeline",
    "Trace",
    "Variant",
    "find",
    "folders",
    "key_text",
    "load",
    "names",
]
