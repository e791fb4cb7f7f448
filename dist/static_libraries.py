#!/usr/bin/env python3
"""Adds the libraries in C that come with the crate libbpf-sys to a bill of materials (CycloneDX).

Argument: the crate's folder. Standard input and output: JSON.
"""

import json
import re
import sys
from pathlib import Path

CRATE = "libbpf-sys"
LIBRARIES = {
    "libbpf": (
        "libbpf/src/Makefile",
        r"MAJOR_VERSION := (\d+)\s+\w+MINOR_VERSION := (\d+)\s+\w+PATCH_VERSION := (\d+)",
        "LGPL-2.1-only OR BSD-2-Clause",
    ),
    "libelf": (
        "elfutils/configure.ac",
        r"AC_INIT\(\[elfutils\],\[(\d+)\.(\d+)\]",
        "GPL-2.0-or-later OR LGPL-3.0-or-later",
    ),
    "zlib": ("zlib/zlib.h", r'ZLIB_VERSION "(\d+)\.(\d+)\.(\d+)"', "Zlib"),
}
"""Where each says its version, how, and its licence."""


def main() -> None:
    """Reads the bill from standard input, and writes the whole one."""
    folder = Path(sys.argv[1])
    bill = json.load(sys.stdin)
    crate = next(part["bom-ref"] for part in bill["components"] if part["name"] == CRATE)
    needs = next(entry for entry in bill["dependencies"] if entry["ref"] == crate)
    for name, (file, pattern, licence) in LIBRARIES.items():
        found = re.search(pattern, (folder / file).read_text())
        assert found, f"{file} says no version of {name}"
        version = ".".join(found.groups())
        reference = f"pkg:generic/{name}@{version}"
        bill["components"].append(
            {
                "type": "library",
                "bom-ref": reference,
                "name": name,
                "version": version,
                "scope": "required",
                "licenses": [{"expression": licence}],
                "purl": reference,
            }
        )
        needs.setdefault("dependsOn", []).append(reference)
        bill["dependencies"].append({"ref": reference})
    json.dump(bill, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
