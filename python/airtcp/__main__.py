"""The `airtcp` command: `study` is Python, everything else the native command line."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command line on `sys.argv`; returns the exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["study"]:
        from airtcp.study.command import main as study  # noqa: PLC0415 - keeps `airtcp run` quick

        return study(arguments[1:])

    from airtcp._native import cli_main  # noqa: PLC0415

    # Python's handler would only set a flag that native code never looks at.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return cli_main(["airtcp", *arguments])


if __name__ == "__main__":
    sys.exit(main())
