from __future__ import annotations

import os
import re
from pathlib import Path

from airtcp.study import outputs

DOCS = Path(__file__).parents[2] / "docs" / "studies.md"
GENERATED = re.compile(r"(<!-- Generated: [^\n]* -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def test_the_columns_in_the_documentation_are_current() -> None:
    page = DOCS.read_text()
    current = GENERATED.sub(
        lambda match: f"{match[1]}\n{outputs.columns_markdown()}\n{match[3]}", page
    )
    if "AIRTCP_BLESS" in os.environ:
        DOCS.write_text(current)
        return
    assert page == current, "run AIRTCP_BLESS=1 pytest python/tests/test_outputs.py"
