#!/bin/sh
# argparse-manpage 4.8 (PyPI), which makes manual pages of Python's command lines, loses help texts that begin with a
# dot or an apostrophe, and such lines of a description. It doubles backslashes and escapes dashes, but writes each text
# at the beginning of a line as it is (manpage.py), where a dot or an apostrophe makes the line a request to the
# formatter (groff(7), Requests; a \& before it prevents that). One of an unknown name is ignored. So the help of
# "--trace", ".pcap to read", is not in the manual, nor is "'worst' is the 99th percentile". Nothing is said, and --help
# of the program shows all.
#
# Seen by man: of three options with help, "--trace" and "--report" without any, "--seed" with its own.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check argparse-manpage==4.8
cat >linktest.py <<'END'
import argparse


def parser():
    made = argparse.ArgumentParser(prog="linktest", description="Plays a trace.")
    made.add_argument("--trace", help=".pcap to read")
    made.add_argument("--report", help="'worst' is the 99th percentile")
    made.add_argument("--seed", help="of the random numbers")
    return made
END
env/bin/argparse-manpage --pyfile linktest.py --function parser --project-name linktest --version 1 >linktest.1
man --local-file linktest.1 2>log | sed -n '/^OPTIONS/,/^linktest/p' | grep '^  ' | tee told
cat >expected <<'END'
       --trace TRACE
       --report REPORT
       --seed SEED
              of the random numbers
END
diff expected told
