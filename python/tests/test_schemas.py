"""The JSON Schemas, by which editors complete keys and mark mistakes: what `airtcp check` takes,
they take."""

from __future__ import annotations

import json
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from airtcp.study.command import main as study
from tests.needs import native

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("examples/*.toml"), *ROOT.glob("studies/*/scenarios/**/*.toml")])
OPTION = {"scenario": [], "gateway": ["--gateway"], "link": ["--link"]}
STUDIES = sorted(ROOT.glob("studies/*/study.toml"))
LINK = {
    "drop-tail": 'queue = { limit = "60 kB" }\n',
    "red": 'queue = { kind = "red", min-threshold = "4 packets" }\n',
    "dualpi2": 'queue = { kind = "dualpi2", limit = "1000 packets" }\n',
    "loss": 'loss = { kind = "bernoulli", p = 0.01 }\n[down]\nrate = "5 Mbit/s"\n',
}


def airtcp(*words: str | Path) -> str:
    return subprocess.run([native(), *words], check=True, capture_output=True, text=True).stdout


@cache
def schema(kind: str) -> dict[str, object]:
    keys: dict[str, object] = json.loads(airtcp("schema", *OPTION[kind]))
    return keys


def check(file: Path) -> None:
    # The key files that an example for a gateway names are not on this machine.
    gateway = file.name.startswith("gateway")
    kind = "gateway" if gateway else airtcp("check", file).split("ok (")[1].split(")")[0]
    # JSON has no dates.
    keys = json.loads(json.dumps(tomllib.loads(file.read_text()), default=str))
    jsonschema.validate(keys, schema(kind))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_an_editor_marks_nothing_in_a_valid_file(file: Path) -> None:
    check(file)


@pytest.mark.parametrize("name", LINK)
def test_a_key_may_mean_something_else_with_each_word_of_a_choice(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "link.toml"
    file.write_text(LINK[name])
    check(file)


def test_an_editor_marks_a_mistake() -> None:
    with pytest.raises(jsonschema.ValidationError, match="'60 kb'"):
        jsonschema.validate({"queue": {"limit": "60 kb"}}, schema("link"))


@pytest.fixture
def study_schema(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert study(["schema"]) == 0
    keys: dict[str, object] = json.loads(capsys.readouterr().out)
    return keys


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.name)
def test_an_editor_marks_nothing_in_a_study(file: Path, study_schema: dict[str, object]) -> None:
    keys = json.loads(json.dumps(tomllib.loads(file.read_text()), default=str))
    jsonschema.validate(keys, study_schema)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('reference = "ns-2.35"', 'refrence = "ns-2.35"'),
        ("runs = 200", "runs = 0"),
        ('kind = "lines"', 'kind = "line"'),
        ('test = "gain"', 'test = "gains"'),
        ('scenario = "scenarios', 'scene = "scenarios'),
        ('unit = "%"', 'unit = "kbit/s"'),
        ('key = { tcp = "reno" }', 'keys = { tcp = "reno" }'),
    ],
)
def test_an_editor_marks_a_mistake_in_a_study(
    right: str, wrong: str, study_schema: dict[str, object]
) -> None:
    text = (ROOT / "studies/packet-control/study.toml").read_text()
    assert right in text
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text.replace(right, wrong, 1)), study_schema)
