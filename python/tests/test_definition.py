from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from airtcp.runs.execute import Simulator
from airtcp.study import definition, plan
from airtcp.study.document import StudyError
from tests.fakes import CATALOGUE, PAPER, STUDY, write_study

REPOSITORY = Path(__file__).parents[2]


def test_grid_values_become_variants_with_overrides(tmp_path: Path) -> None:
    study = definition.load(write_study(tmp_path))
    variants = study.experiments[0].variants
    assert [variant.text for variant in variants] == ["size=1", "size=2"]
    assert variants[1].overrides == (("link.A-B.rate", "2 Mbit/s"),)


def test_a_run_records_what_any_experiment_needs_of_it(tmp_path: Path) -> None:
    text = STUDY.replace('kind = "curve"', 'kind = "curve"\nvariants = [{ size = 1 }]')
    text = text.replace('id = "E2-timeline"', 'id = "E2-timeline"\nvariants = [{ size = 1 }]')
    study = definition.load(write_study(tmp_path, text))
    recorded = {dict(overrides)["link.A-B.rate"]: s for (_, overrides), s in study.series.items()}
    assert recorded == {"1 Mbit/s": ("cwnd", "delivered"), "2 Mbit/s": ("cwnd",)}


def test_a_list_in_a_claims_variants_stands_for_as_many(tmp_path: Path) -> None:
    text = STUDY.replace(
        "variants = [{ size = 1 }, { size = 2 }]", "variants = [{ size = [1, 2] }]"
    )
    claim = definition.load(write_study(tmp_path, text)).experiments[0].claims[0]
    assert [variant.text for variant in claim.variants] == ["size=1", "size=2"]


EACH = (
    STUDY.replace('id = "faster"', 'each = [{ low = [1, 2], high = 9 }]\nid = "faster-$low"')
    .replace("variants = [{ size = 1 }, { size = 2 }]", 'variants = [{ size = "$low" }]')
    .replace('test = "increasing"', 'test = "within"\nlow = "$low"\nhigh = "$high"')
)


def test_a_claim_with_each_is_a_claim_for_each_combination(tmp_path: Path) -> None:
    claims = definition.load(write_study(tmp_path, EACH)).experiments[0].claims
    assert [claim.id for claim in claims] == ["faster-1", "faster-2"]
    assert [claim.variants[0].text for claim in claims] == ["size=1", "size=2"]
    assert [claim.options for claim in claims] == [{"low": 1, "high": 9}, {"low": 2, "high": 9}]


def test_a_placeholder_that_each_does_not_list_is_refused(tmp_path: Path) -> None:
    text = EACH.replace("faster-$low", "faster-$lower")
    with pytest.raises(StudyError, match=r"study.toml:68: .*each: bad placeholder: 'lower'"):
        definition.load(write_study(tmp_path, text))


def test_references_may_come_from_several_sources(tmp_path: Path) -> None:
    folder = write_study(tmp_path)
    header, row = PAPER.replace("quote,place", "quote,place,source").splitlines()
    rows = [header, f"{row},ns-2", f"{row},theory"]
    (folder / "reference.csv").write_text("\n".join(rows), encoding="utf-8")
    known = definition.load(folder).references["E1", "size=2", "goodput"]
    assert [number.source for number in known] == ["ns-2", "theory"]


def test_without_a_source_column_the_study_names_the_reference(tmp_path: Path) -> None:
    folder = write_study(tmp_path)
    (folder / "reference.csv").write_text(PAPER, encoding="utf-8")
    study = definition.load(folder)
    (number,) = study.references["E1", "size=2", "goodput"]
    assert (number.source, study.paper["E1", "size=2", "goodput"].source) == ("elsewhere", "paper")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A small', 'titel = "A small', r"study.toml:2: titel: unknown key.*'title'"),
        ("runs = 4", "runs = 4\nrnus = 3", "rnus: unknown key.*'runs'"),
        ("runs = 4", 'runs = "4"', "runs: expected a whole number, found '4'"),
        ("runs = 4", "runs = 0", "runs: expected at least 1"),
        ("runs = 4", "runs = ", r"study.toml:5: not valid TOML: "),
        ('grid = [["size"]]', 'grid = [["siz"]]', "grid: no axis 'siz'.*'size'"),
        ('grid = [["size"]]', 'grid = "siz"', "grid: nothing is called 'siz'"),
        ('metrics = ["cwnd"]', 'metrics = ["cwd"]', "metrics: no metric 'cwd'.*'cwnd'"),
        ('kind = "curve"', 'kind = "curv"', "kind: expected one of.*'curve'"),
        ('reduce = "mean"', 'reduce = "average"', "reduce: expected one of.*found 'average'"),
        ('from = "flow.goodput"', 'from = "goodput"', "from: expected one of call.FIELD"),
        ('step = "5 s"', 'step = "5"', "step: expected a duration"),
        ('step = "5 s"', 'step = "0 s"', "step: expected more than 0, found '0 s'"),
        ("runs = 4", "runs = 4\nconfidence = 95", "confidence: expected less than 1, found 95"),
        ("scale = 1e-3", "scale = nan", "scale: expected a finite number, found nan"),
        ("scale = 1e-3", "scale = true", "scale: expected a number, found True"),
        ("{ size = 1 }, {", "{ size = 3 }, {", r"variants\[0\]: the grid has no size=3"),
        ('window = ["0 s", "10 s"]', 'window = ["9 s", "1 s"]', "start must be before"),
        (
            'test = "increasing"',
            'test = "paper"\ntolerance = 1',
            "paper.csv has no number.*E1,size=1",
        ),
        (
            'reduce = "mean"',
            'reduce = "mean"\nwindow = ["1 s", "2 s"]\nwindows = [["1 s", "2 s"]]',
            "metric.cwnd.windows: not together with window",
        ),
        ('reduce = "mean"', 'reduce = "mean"\nminus = "n"', "'cwnd': size=1 has no number 'n'"),
        (
            'reduce = "mean"',
            'reduce = "mean"\nminus = "goodput"',
            "'cwnd' needs 'goodput' beside it",
        ),
        ('x = "size"', 'x = "length"', "x: size=1 has no key 'length'"),
        ("log-x = true", "log-x = 1", "log-x: expected true or false, found 1"),
        ('x = "size"', 'x = "size"\ncolumns = ["rate"]', "columns: size=1 has no key 'rate'"),
        (
            'kind = "trace"',
            'kind = "trace"\nshade = ["1 s", "2 s"]',
            "shade.0.: expected start and end",
        ),
        (
            'kind = "trace"',
            'kind = "timeline"\nrow = [{ label = "a" }]',
            r"row\[0\].series: is missing",
        ),
        ("{ size = 1 }, {", "{ size = 3 }, {", r"variants.0.: the grid has no size=3.*'size=\d'"),
        ('test = "increasing"', 'test = "gain"', "about: is missing"),
        ('experiments = ["E1"]', 'experiments = ["E3"]', "no experiment 'E3'.*it has E1, E2"),
        ("one.toml", "two.toml", "two.toml"),
        ('"$size Mbit/s"', '"$sise Mbit/s"', "bad placeholder: 'sise'"),
        ("baseline = { size = 1 }", "baseline = { size = 7 }", "no variant size=7"),
        (
            'metric = "goodput"\nvariants',
            'metric = "goodput_gain"\nvariants',
            "metric: a gain is tested on what it is of: 'goodput'",
        ),
        ('test = "increasing"', 'test = "widening"', "variants: 'widening' compares pairs"),
        ('reduce = "mean"', 'reduce = "mean"\nsince = "acks"', "lasting: is missing"),
        ('test = "increasing"', 'test = "within"', "low: is missing; a range has"),
        ('test = "increasing"', 'test = "gain"\nlow = 2\nhigh = 1', "low: is above high"),
        ('test = "increasing"', 'test = "above"\nshare = 1.1', "share: expected at most 1"),
        ("{ size = 1 }, { size = 2 }]\n", "{ size = 1 }]\n", "'increasing' compares at least 2"),
        (
            'test = "increasing"\nmetric = "goodput"\nvariants = [{ size = 1 }, { size = 2 }]',
            'test = "above"\nmetric = "goodput"\nvariants = [{ size = 1 }]',
            "variants: 'above' compares pairs",
        ),
        ('test = "increasing"', 'test = "within"\nlow = 2\nhigh = 1', "low: is above high"),
        (
            'id = "faster"',
            'id = "faster"\njudges = ["P9-C1"]',
            "claim faster: judges: paper-claims.toml has no 'P9-C1'",
        ),
    ],
)
def test_a_wrong_study_is_refused_with_place_and_nearest_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in STUDY
    folder = write_study(tmp_path, STUDY.replace(old, new, 1))
    with pytest.raises(StudyError, match=message):
        definition.load(folder)


def refused(folder: Path, *changes: tuple[str, str]) -> list[str]:
    """What is said, a line each without the folder, of the study with these changes."""
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    small = write_study(folder, text)
    with pytest.raises(StudyError) as caught:
        definition.load(small)
    return [line.removeprefix(f"{small}/") for line in str(caught.value).splitlines()]


def test_all_mistakes_are_named_at_once_in_the_order_of_the_text(tmp_path: Path) -> None:
    assert refused(
        tmp_path,
        ('paper = "Nobody', 'papre = "Nobody'),
        ("runs = 4", 'runs = "4"'),
        ('from = "trace.cwnd"', 'from = "cwnd"'),
        ('kind = "curve"', 'kind = "curv"'),
        ("log-x = true", "log-x = 1"),
        ('test = "increasing"', 'test = "icnreasing"'),
        ('window = ["0 s", "10 s"]\nshade', 'window = ["0 s"]\nshade'),
    ) == [
        "study.toml:3: papre: unknown key (did you mean 'paper'?)",
        "study.toml:5: runs: expected a whole number, found '4'",
        "study.toml:29: metric.cwnd.from: expected one of call.FIELD, flow.FIELD, link.FIELD, "
        "middlebox.FIELD, quic.FIELD, station.FIELD, transfer.FIELD, udp.FIELD, video.FIELD, "
        "run.FIELD, trace.SERIES, found 'cwnd'",
        "study.toml:42: experiment[0].figure[0].kind: expected one of curve, bars, lines, trace, "
        "timeline, found 'curv' (did you mean 'curve'?)",
        "study.toml:58: experiment[0].figure[1].log-x: expected true or false, found 1",
        "study.toml:72: experiment[0].claim[0].test: expected one of equal, close, decreasing, "
        "increasing, above, fluctuates, lowest, widening, highest, gain, up-to, one-run, "
        "difference, at-most, within, paper, found 'icnreasing' (did you mean 'increasing'?)",
        "study.toml:96: experiment[1].figure[1].window: expected start and end, two durations such "
        'as ["5 s", "11 s"], found [\'0 s\']',
    ]


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        # What an axis, a metric or an experiment is not, others cannot lack.
        ("$size Mbit/s", "$sise Mbit/s", "set.link.A-B.rate: bad placeholder: 'sise'"),
        ("[[axis.size]]", "[[axes.size]]", "axes: unknown key (did you mean 'axis'?)"),
        ("[[axis.size]]", "[[axis.siez]]", "grid: no axis 'size' (did you mean 'siez'?)"),
        ('grid = [["size"]]', 'grdi = [["size"]]', "grdi: unknown key (did you mean 'grid'?)"),
        ('from = "flow.goodput"', 'form = "flow.goodput"', "form: unknown key"),
        ('unit = "kbit/s"\nfrom', "unit = 1\nfrom", "unit: expected a string, found 1"),
        ("[[experiment.claim]]", "[[experiment.clam]]", "clam: unknown key"),
    ],
)
def test_what_only_follows_from_a_mistake_is_not_said(
    tmp_path: Path, old: str, new: str, only: str
) -> None:
    (said,) = refused(tmp_path, (old, new))
    assert only in said


def test_a_misspelt_table_is_all_that_is_said_of_its_parts(tmp_path: Path) -> None:
    small = write_study(tmp_path, STUDY.replace("[[experiment", "[[experiments"))
    with pytest.raises(StudyError) as caught:
        definition.load(small)
    (said,) = str(caught.value).splitlines()
    assert said.endswith("experiments: unknown key (did you mean 'experiment'?)")


def test_what_is_missing_comes_after_the_strange_key_that_may_have_been_meant(
    tmp_path: Path,
) -> None:
    small = write_study(tmp_path, 'title = "t"\npaper = "p"\nruns = 3\n[[quux]]\nid = "A"\n')
    with pytest.raises(StudyError) as caught:
        definition.load(small)
    assert [line.partition("study.toml:")[2] for line in str(caught.value).splitlines()] == [
        "4: quux: unknown key",
        "1: experiment: is missing",
    ]


def test_keys_in_inline_tables_and_long_arrays_have_their_own_lines(tmp_path: Path) -> None:
    claim = "variants = [{ size = 1 }, { size = 2 }]"
    said = refused(tmp_path, (claim, "variants = [\n  { size = 1 },\n  { size = 3 },\n]"))
    line = STUDY[: STUDY.index(claim)].count("\n") + 3
    assert said == [
        f"study.toml:{line}: experiment[0].claim[0].variants[1]: the grid has no size=3 "
        "(did you mean 'size=2'?)"
    ]


def test_a_study_can_be_pickled_and_copied(tmp_path: Path) -> None:
    study = definition.load(write_study(tmp_path))
    assert pickle.loads(pickle.dumps(study)) == copy.deepcopy(study) == study


@pytest.mark.parametrize(
    ("key", "new"),
    [
        ('title = "A small study"', "title = 1"),
        ("key = { size = [1, 2] }", "key = 3"),
        ('unit = "segments"\nfrom', "unit = 3\nfrom"),
        ('id = "E1-lines"', "id = 4"),
        ("{ size = 1 }, { size", "{ size = 7 }, { size"),
        (
            'scale = 1e-3\n\n[[experiment.figure]]\nid = "E2-bars"',
            'scale = "x"\n\n[[experiment.figure]]\nid = "E2-bars"',
        ),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, key: str, new: str) -> None:
    assert STUDY.count(key) == 1
    line = STUDY[: STUDY.index(key)].count("\n") + 1
    folder = write_study(tmp_path, STUDY.replace(key, new))
    with pytest.raises(StudyError, match=f"study.toml:{line}: "):
        definition.load(folder)


def test_the_same_claim_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    claim = STUDY[STUDY.index("[[experiment.claim]]") : STUDY.index('[[experiment]]\nid = "E2"')]
    folder = write_study(tmp_path, STUDY.replace(claim, 2 * claim))
    with pytest.raises(StudyError, match=r"study.toml:76: claim 'faster' is also at .*toml:67"):
        definition.load(folder)


JUDGING = STUDY.replace('id = "faster"', 'id = "faster"\njudges = ["P9-C1"]')


def write_catalogue(folder: Path, study: str, catalogue: str) -> Path:
    small = write_study(folder, study)
    (small / "paper-claims.toml").write_text(catalogue, encoding="utf-8")
    return small


def test_a_catalogue_is_read(tmp_path: Path) -> None:
    study = definition.load(write_catalogue(tmp_path, JUDGING, CATALOGUE))
    assert study.experiments[0].claims[0].judges == ("P9-C1",)
    assert (study.catalogue["P9-C1"].says, study.catalogue["P9-C1"].not_judged) == (
        "it is faster",
        "",
    )
    assert study.catalogue["P9-C2"].contradicts == ("P9-C1",)


@pytest.mark.parametrize(
    ("study", "old", "new", "message"),
    [
        (STUDY, "", "", r"study.toml:67: claim faster: judges: is missing"),
        (
            JUDGING.replace("P9-C1", "P9-C11"),
            "",
            "",
            r"study.toml:67: claim faster: judges: paper-claims.toml has no 'P9-C11'.*'P9-C1'",
        ),
        (
            JUDGING,
            'not-judged = "prices are not simulated"',
            "",
            r"paper-claims.toml:7: P9-C2: no claim of study.toml judges it",
        ),
        (
            JUDGING.replace("P9-C1", "P9-C2"),
            'measure = "goodput: 1 < 2"',
            'not-judged = "so"',
            r"paper-claims.toml:11: P9-C2.not-judged: claim faster judges it \(.*study.toml:67\)",
        ),
        (
            JUDGING,
            '["P9-C1"]',
            '["P9-C3"]',
            r"paper-claims.toml:10: P9-C2.contradicts: no claim 'P9-C3'.*'P9-C",
        ),
        (JUDGING, "says", "sais", r"paper-claims.toml:4: P9-C1.sais: unknown key.*'says'"),
    ],
)
def test_each_claim_of_the_catalogue_is_judged_or_explained(
    tmp_path: Path, study: str, old: str, new: str, message: str
) -> None:
    folder = write_catalogue(tmp_path, study, CATALOGUE.replace(old, new, 1))
    with pytest.raises(StudyError, match=message):
        definition.load(folder)


CALIBRATED = """
[[calibrated]]
experiment = "E1"
metric = "goodput"
variants = [{ size = 2 }]
reason = "the rate was chosen to meet it"
"""


def test_calibrated_cells_have_reasons(tmp_path: Path) -> None:
    study = definition.load(write_study(tmp_path, STUDY + CALIBRATED))
    assert study.calibrated == {("E1", "size=2", "goodput"): "the rate was chosen to meet it"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"E1"', '"E7"', "experiment: expected one of E1, E2, found 'E7'"),
        ('"goodput"', '"godput"', "metric: expected one of .*'goodput'"),
        ("size = 2", "size = 3", "variants.0.: the grid has no size=3"),
        ("reason", "why", "reason: is missing"),
    ],
)
def test_a_calibrated_cell_must_be_one_the_study_computes(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = write_study(tmp_path, STUDY + CALIBRATED.replace(old, new))
    with pytest.raises(StudyError, match=message):
        definition.load(folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size=2", "size=3", r"paper.csv:2: the study computes no E1 size=3 goodput.*size=2"),
        (
            "§2\n",
            "§2\nE1,size=2,goodput,kbit/s,200,,\n",
            r"paper.csv:3: E1 size=2 goodput occurs twice",
        ),
        ("200,", "fast,", r"paper.csv:2: value: expected a number, found 'fast'"),
        ("200,", "2_00,", r"paper.csv:2: value: expected a number, found '2_00'"),
        ("quote", "words", r"paper.csv:1: expected the columns experiment,variant"),
    ],
)
def test_a_number_of_the_paper_must_be_one_the_study_computes(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = write_study(tmp_path, paper=PAPER.replace(old, new, 1))
    with pytest.raises(StudyError, match=message):
        definition.load(folder)


def test_studies_are_found_by_name_and_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_study(tmp_path)
    monkeypatch.setenv("AIRTCP_STUDIES", str(tmp_path))
    assert definition.names() == ["small"]
    assert definition.find("small") == folder
    assert definition.find(str(folder)) == folder
    with pytest.raises(StudyError, match=r"no study 'smal' \(did you mean 'small'\?\)"):
        definition.find("smal")


def test_studies_of_a_checkout_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRTCP_STUDIES", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "packet-control" in definition.names()


@pytest.mark.parametrize("file", sorted(REPOSITORY.glob("studies/*/study.toml")), ids=str)
def test_the_studies_of_the_repository_are_well_formed(file: Path) -> None:
    study = definition.load(file.parent)
    assert (file.parent / "README.md").is_file()
    assert all(experiment.claims or experiment.figures for experiment in study.experiments)


@pytest.mark.parametrize("file", sorted(REPOSITORY.glob("studies/*/study.toml")), ids=str)
def test_every_variant_of_the_repositorys_studies_is_a_scenario(file: Path) -> None:
    study = definition.load(file.parent)
    simulator = Simulator()
    for job in plan.jobs(study, study.experiments, 1):
        simulator.check(job)
