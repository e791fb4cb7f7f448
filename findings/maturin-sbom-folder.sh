#!/bin/sh
# maturin 1.16.0 (PyPI) puts a list of what is inside into each wheel (PEP 770, sboms/NAME.cyclonedx.json), made by
# cargo-cyclonedx. In it the package's own crates have the absolute path of the folder in which they were built, also
# with SOURCE_DATE_EPOCH and with --remap-path-prefix, which take all other traces of the machine out. So the wheel of
# a release tells the builder's home, and built again elsewhere from the same sources with the same tools it has other
# bytes: only this file and its hash in RECORD differ. The guide (sbom.md) says how to switch it off, and nothing of
# paths.
#
# Seen: two folders, one crate without dependencies. The program, METADATA and WHEEL are equal, the SBOM is not:
# "bom-ref": "path+file:///.../one#finding@0.1.0". With rust = false in [tool.maturin.sbom] the wheels are equal.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check maturin==1.16.0
# build FOLDER: the wheel of a small program.
build() (
    mkdir -p "$1/src"
    cd "$1"
    printf '[package]\nname = "finding"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
    echo 'fn main() {}' >src/main.rs
    cat >pyproject.toml <<'END'
[build-system]
requires = ["maturin==1.16.0"]
build-backend = "maturin"
[project]
name = "finding"
version = "0.1.0"
[tool.maturin]
bindings = "bin"
END
    [ -z "${2-}" ] || printf '[tool.maturin.sbom]\n%s\n' "$2" >>pyproject.toml
    export SOURCE_DATE_EPOCH=1700000000 RUSTFLAGS="--remap-path-prefix=$PWD=/build" CARGO_TARGET_DIR="$PWD/target"
    ../env/bin/maturin build --quiet --release --strip --compatibility linux --out wheel >/dev/null
)
build one
build two
build three 'rust = false'
build four 'rust = false'
env/bin/python - <<'END'
import glob
import sys
import zipfile


def content(folder):
    (wheel,) = glob.glob(f"{folder}/wheel/*.whl")
    with zipfile.ZipFile(wheel) as files:
        return {name: files.read(name) for name in files.namelist()}


one, two, three, four = map(content, ("one", "two", "three", "four"))
differ = sorted(name.split("/", 1)[1] for name in one if one[name] != two[name])
print("differ:", *differ)
(bom,) = (text.decode() for name, text in one.items() if "sboms" in name)
paths = bom.count("/one")
print("the folder's name in the SBOM:", paths, "times")
print("without it", "equal" if three == four else "not equal")
sys.exit(0 if differ == ["RECORD", "sboms/finding.cyclonedx.json"] and paths and three == four else 1)
END
