#!/usr/bin/env python3
"""Prints the licences of all crates that are part of airtcp's programs, for those who get copies.

Standard input: `cargo metadata --locked --format-version 1 --filter-platform TARGET`.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

PROGRAMS = {"airtcp-cli", "airtcp-python"}


def main() -> None:
    """Reads cargo's metadata from standard input."""
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

    # What is only needed to build or to test is not a part.
    parts: set[str] = set()
    waiting = [id_ for id_ in nodes if packages[id_]["name"] in PROGRAMS]
    while waiting:
        id_ = waiting.pop()
        if id_ not in parts:
            parts.add(id_)
            waiting.extend(
                dependency["pkg"]
                for dependency in nodes[id_]["deps"]
                if any(kind["kind"] is None for kind in dependency["dep_kinds"])
            )

    crates = sorted(
        (package["name"], package["version"], package)
        for package in map(packages.__getitem__, parts)
        if package["source"]
    )
    print("airtcp's programs contain these crates of Rust, under these licences.\n")
    texts: dict[str, list[str]] = defaultdict(list)
    for name, version, package in crates:
        print(f"{name} {version}: {package['license']}")
        folder = Path(package["manifest_path"]).parent
        for file in sorted(folder.iterdir()):
            is_licence = file.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "UNLICENSE"))
            if is_licence and file.is_file():
                texts[file.read_text(errors="replace").strip()].append(f"{name} {file.name}")
    for text, files in texts.items():
        print(f"\n{'=' * 80}\n{', '.join(files)}\n{'=' * 80}\n{text}")


if __name__ == "__main__":
    main()
