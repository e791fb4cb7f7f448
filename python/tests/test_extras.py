"""What the wheel and its dependencies do, and what is said of the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_sweep import LOSS, SCENARIO

PACKAGE = Path(__file__).parents[1]

PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that pip installs for these requirements."""
    found: set[str] = set()
    wanted = [Requirement(text) for text in requirements]
    while wanted:
        one = wanted.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        try:
            wanted += map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue  # of another system
        found.add(name)
    return found


def others() -> list[str]:
    """The installed modules that do not come with the wheel."""
    installed = closure(PROJECT["dependencies"])
    return sorted(
        module
        for module, owners in metadata.packages_distributions().items()
        if module != "airtcp" and installed.isdisjoint(map(canonicalize_name, owners))
    )


BLOCK = f"import sys; sys.modules.update(dict.fromkeys({others()}))\n"
"""As if only the wheel were installed, with its dependencies."""

COMMAND = BLOCK + "from airtcp.__main__ import main; sys.exit(main())"


def python(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "one.toml").write_text(SCENARIO)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_others_are_what_no_dependency_brings() -> None:
    blocked = others()
    assert "pytest" in blocked
    assert "numpy" not in blocked


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["study", "list"], "packet-control"),
        (["study", "check", "packet-control"], "packet-control: ok"),
        (
            [
                "study",
                "run",
                "packet-control",
                "--only",
                "P3-one-loss",
                "--runs",
                "2",
                "--out",
                "made",
            ],
            "report: made/report.html",
        ),
        (["plot", "one.toml"], "one.svg"),
        (["plot", "one.toml", "--out", "one.html"], "one.html"),
        (["sweep", "one.toml", "--runs", "2"], "4 rows"),
        (["sweep", "one.toml", "--runs", "2", "--out", "x.parquet"], "x.parquet: 4 rows"),
    ],
)
def test_the_wheel_and_its_dependencies_do(
    tmp_path: Path, arguments: list[str], output: str
) -> None:
    done = python(COMMAND, tmp_path, *arguments)
    # Two runs may refute a claim (4) or leave it undecided (3).
    assert done.returncode in {0, 3, 4}, done.stderr
    assert output in done.stdout


def test_the_wheel_and_its_dependencies_draw_a_sweep(tmp_path: Path) -> None:
    code = f"""{BLOCK}
import airtcp
table = airtcp.sweep('one.toml', {{'{LOSS}': [0.01]}}, 2, out='x.csv')
print(airtcp.plot(table, x='{LOSS}', y='goodput'))
"""
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Axes" in done.stdout
    assert (tmp_path / "x.csv").exists()


def test_a_command_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    done = python(COMMAND, tmp_path, "sweep", "one.toml", "--dask", "tcp://x:1")
    assert done.returncode == 1
    needed = "dask needs the package distributed: pip install 'airtcp[dask]'"
    assert done.stderr == f"airtcp sweep: {needed}\n"


def test_texts_name_no_extra_that_is_not_there() -> None:
    root = PACKAGE.parent
    texts = [root / "README.md", root / "dist" / "README.md", PACKAGE / "README.md"]
    texts += [*(root / "docs").rglob("*.md"), *(PACKAGE / "airtcp").rglob("*.py")]
    texts += [*(root / "studies").rglob("*.md"), root / "CHANGELOG.md"]
    named = {
        extra
        for text in texts
        for group in re.findall(r"(?:airtcp|\.whl)\[(\w+(?:,\w+)*)\]", text.read_text())
        for extra in group.split(",")
    }
    assert named == {"dask"}
    assert named <= PROJECT["optional-dependencies"].keys()


def test_importing_the_package_loads_none_of_its_dependencies() -> None:
    code = "import sys, airtcp; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    needed = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert loaded & needed == set()


def test_sweeps_take_nothing_from_studies() -> None:
    code = "import airtcp.sweeps.command, airtcp.sweeps.plot, airtcp.runs.cluster, airtcp.stats\n"
    code += "print([name for name in sys.modules if name.startswith('airtcp.study')])"
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "[]\n"
    files = [*PACKAGE.glob("airtcp/*.py"), *PACKAGE.glob("airtcp/sweeps/*.py")]
    files += PACKAGE.glob("airtcp/runs/*.py")
    naming = {file.name for file in files if "airtcp.study" in file.read_text()}
    assert naming == {"__main__.py"}
