"""What packages say of airtcp: the same version everywhere, and nothing missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import airtcp
from airtcp.__main__ import native_binary

ROOT = Path(__file__).parents[2]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
VERSION = WORKSPACE["package"]["version"]


def manifests() -> dict[str, dict[str, object]]:
    """The `[package]` of each member that is published, by name."""
    packages = [
        tomllib.loads((ROOT / member / "Cargo.toml").read_text())["package"]
        for member in WORKSPACE["members"]
    ]
    return {package["name"]: package for package in packages if package.get("publish", True)}


def test_each_published_crate_says_what_it_is() -> None:
    for name, package in manifests().items():
        for key in ("description", "license", "readme", "keywords", "categories", "rust-version"):
            assert key in package, f"{name} has no {key}"


def test_published_crates_depend_on_the_version_that_they_have() -> None:
    versions = {
        name: entry.get("version")
        for name, entry in WORKSPACE["dependencies"].items()
        if isinstance(entry, dict) and "path" in entry and name in manifests()
    }
    assert versions
    assert set(versions.values()) == {VERSION}


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()


def test_tools_of_releases_have_versions() -> None:
    requirements = (ROOT / "dist" / "requirements.txt").read_text().splitlines()
    assert all(line.startswith("#") or "==" in line for line in requirements)


def test_examples_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    airtcp.Scenario.load(airtcp.EXAMPLES / "quickstart.toml")


def test_a_wheel_runs_its_own_binary_and_finds_its_own_files(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    package = site / "airtcp"
    source = Path(airtcp.__file__).parent
    # As installed: the package's files and what scripts/dist adds.
    package.mkdir(parents=True)
    for file in source.iterdir():
        if file.name != "__pycache__":
            (package / file.name).symlink_to(file)
    for module in ("__init__.py", "__main__.py"):
        (package / module).unlink()
        (package / module).write_bytes((source / module).read_bytes())
    (package / "examples").symlink_to(ROOT / "examples")
    binary = package / "bin" / "airtcp"
    binary.parent.mkdir()
    binary.write_text("")
    program = (
        "import airtcp, airtcp.__main__ as main;"
        "print(airtcp.EXAMPLES, main.native_binary(), sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == [str(package / "examples"), str(binary)]


def test_aside_from_wheels_the_environment_names_the_binary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRTCP_NATIVE", "/no/such/airtcp")
    assert native_binary() == Path("/no/such/airtcp")
