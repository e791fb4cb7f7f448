#!/bin/sh
# omnetinireader 1.8.2 (PyPI), which reads and changes the configurations of OMNeT++ simulations (omnetpp.ini), finds
# other values than OMNeT++ runs with. A section may extend several others, which extend others again. OMNeT++ puts them
# into one order by C3, as Python does its classes (it tests "config inheritance (C3 linearization)"): here, what a
# section extends comes before the next section of the list. omnetinireader takes the whole list first, and then what
# these extend (update_selection_hierarchy in config_parser.py). And it cuts a value at a "#" behind a blank, also
# within quotes (inline_comment_prefixes), where OMNeT++ skips strings in its search for the comment (findEndContent in
# src/envir/inifilereader.cc). Nothing is said. Its documentation says that it follows the manual of OMNeT++, with an
# example in which both orders are the same.
#
# Seen, "extends = Tcp, Fast", where Tcp extends Base, and Base and Fast set a bit rate: Study, Tcp, Fast, Base, with 54
# Mbit/s; OMNeT++ takes Study, Tcp, Base, Fast, with 2 Mbit/s. The label "run #1 of 3" is cut to "run, without its end
# quote.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check omnetinireader==1.8.2 hjson==3.1.0
cat >omnetpp.ini <<'END_INI'
[General]
network = Wireless
**.host.label = "run #1 of 3"   # a comment

[Config Base]
**.radio.bitrate = 2Mbps

[Config Tcp]
extends = Base
**.tcp.mss = 1452B

[Config Fast]
**.radio.bitrate = 54Mbps

[Config Study]
extends = Tcp, Fast
END_INI
cat >run.py <<'END_PYTHON'
import sys

from omnetinireader.config_parser import OppConfigFileBase

general = type("General", (), {"bitrate": None})
base = type("Base", (general,), {"bitrate": "2Mbps"})
tcp = type("Tcp", (base,), {})
fast = type("Fast", (general,), {"bitrate": "54Mbps"})
right = type("Study", (tcp, fast), {})  # Python inherits by C3 as well.

study = OppConfigFileBase.from_path("omnetpp.ini", "Study")
order = [section.removeprefix("Config ") for section in study.section_hierarchy]
told = order, study["**.radio.bitrate"], study["**.host.label"]
print(f"omnetinireader: {', '.join(order)}; bitrate {told[1]}, label {told[2]}")
print(f"right: {', '.join(kind.__name__ for kind in right.mro()[:-1])}; bitrate {right.bitrate}")
sys.exit(told != (["Study", "Tcp", "Fast", "Base", "General"], "54Mbps", '"run'))
END_PYTHON
env/bin/python run.py
