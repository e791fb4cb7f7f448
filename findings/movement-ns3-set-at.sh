#!/bin/sh
# Ns2MobilityHelper of ns-3 3.44 takes a position that a node is set to later (`$ns_ at 20 "$node_(0)
# set X_ 300"`, which its own documentation lists as valid) for the node's first position too: the node
# starts there and goes its first way from there, whatever it was set to at first. Nothing is said. A
# jump written as a fast `setdest` is read as meant.
#
# Seen, node 0 from 1 m at 10 m/s since 1 s, its x at 2 s: 11 without the later line, 310 with it.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet ns3==3.44.post0 cppyy==3.5.0
cat >plain.tcl <<'END'
$node_(0) set X_ 1.0
$node_(0) set Y_ 5.0
$node_(0) set Z_ 0.0
$ns_ at 1.0 "$node_(0) setdest 101.0 5.0 10.0"
END
cp plain.tcl jump.tcl
cat >>jump.tcl <<'END'
$ns_ at 20.0 "$node_(0) set X_ 300.0"
END
cat >run.py <<'END'
import sys

from ns import ns

nodes = ns.NodeContainer()
nodes.Create(1)
ns.Ns2MobilityHelper(sys.argv[1]).Install()
ns.Simulator.Stop(ns.Seconds(2))
ns.Simulator.Run()
model = nodes.Get(0).__deref__().GetObject[ns.MobilityModel]()
print(f"{sys.argv[1]} {model.__deref__().GetPosition().x:g}")
END
for trace in plain jump; do venv/bin/python run.py $trace.tcl 2>>log; done | tee seen
printf 'plain.tcl 11\njump.tcl 310\n' >expected
cmp seen expected
