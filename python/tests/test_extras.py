"""What works without the packages of the extras, and what is said of the rest."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_sweep import LOSS, SCENARIO

PACKAGE = Path(__file__).parents[1]

PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
EXTRAS = ("plot", "study", "dask")


def package(requirement: str) -> str:
    return requirement.split(">=", maxsplit=1)[0].replace("-", "_")


MISSING = {
    package(wanted) for extra in EXTRAS for wanted in PROJECT["optional-dependencies"][extra]
}

BLOCK = f"import sys; sys.modules.update(dict.fromkeys({sorted(MISSING)}))\n"
"""As if nothing but the core were installed."""


def python(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "one.toml").write_text(SCENARIO)
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_needs_numpy_and_pandas_alone() -> None:
    assert [package(wanted) for wanted in PROJECT["dependencies"]] == ["numpy", "pandas"]
    assert {"jinja2", "matplotlib", "plotly", "pyarrow", "pydantic", "scipy"} < MISSING


def test_sweeps_need_no_extra(tmp_path: Path) -> None:
    code = f"import airtcp; print(airtcp.sweep('one.toml', {{'{LOSS}': [0.01]}}, 2, out='x.csv'))"
    done = python(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "x.csv").exists()


COMMAND = "from airtcp.__main__ import main; sys.exit(main())"


def test_the_command_sweep_needs_no_extra(tmp_path: Path) -> None:
    done = python(COMMAND, tmp_path, "sweep", "one.toml", "--runs", "2")
    assert done.returncode == 0, done.stderr
    assert "4 rows" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "list"], "airtcp study needs the package "),
        (["sweep", "one.toml", "--out", "x.parquet"], "a Parquet file needs the package pyarrow"),
        (["sweep", "one.toml", "--dask", "tcp://x:1"], "dask needs the package distributed"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = python(COMMAND, tmp_path, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "pip install 'airtcp[" in done.stderr
    assert "Traceback" not in done.stderr


def test_plot_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    code = f"""
import airtcp
table = airtcp.sweep('one.toml', {{'{LOSS}': [0.01]}}, 2)
try:
    airtcp.plot(table, x='{LOSS}', y='goodput')
except ImportError as error:
    print(error)
"""
    done = python(code, tmp_path)
    assert "airtcp.plot needs the package matplotlib: pip install 'airtcp[plot]'" in done.stdout


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
