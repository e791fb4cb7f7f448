#!/bin/sh
# daytone 0.3.4 (PyPI; a program in Rust), a discrete-event simulator of networks, sends several packets at once over a
# link where one arrives at the very time at which another has been sent: it starts at once, beside the one that waited
# longer, as if the port were idle. Sources with a fixed spacing bring that about as a rule, for all times are multiples
# of it; its documentation gives a rate so ("low = 0.0008, high = 0.0008", "10Mbps"). So a link takes two or four times
# its rate, no queue builds up and nothing is dropped. A spacing that never meets the end of a transmission, or a random
# one, is right. By its documentation port_rate is the bit rate of each port. Nothing is said.
#
# Seen, packets of 1000 bytes for 900 s at a port of 8 kbit/s, one second each, with room for ten: with a spacing of 0.5
# s 1800 of 1800 arrive, with 0.25 s all 3600, after 0.2 and 0.4 s in the queue; with 0.45 s 910 of 2000, after 9.6 s,
# which is right. In 1000 s the port can send 1000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check daytone==0.3.4
cat >run.py <<'END'
import csv
import subprocess
import sys

CONFIGURATION = """
seed = 1
edges = [[0, 1]]
hosts = [0, 1]
duration = 1000.0
ui_interval = 1000.0
num_threads = 1
log_path = "."

[switch]
port_rate = 8000
capacity = 10
weights = [1]
discipline = "FIFO"
drop = "TailDrop"

[[flow]]
flow_type = "PacketDistribution"
graph = [[0, 1]]
[flow.traffic]
    initial_delay = 0.0
    duration = 900.0
    arr_dist = {type = "Uniform", low = %s, high = %s}
    pkt_size_dist = {type = "Uniform", low = 1000, high = 1000}
"""


def read(name, key):
    with open(name) as file:
        return next(csv.DictReader(file))[key]


changed = False
for spacing, expected in (0.5, "1800 1800 0.2"), (0.25, "3600 3600 0.4"), (0.45, "2000 910 9.6"), (2, "450 450 0.0"):
    with open("run.toml", "w") as file:
        file.write(CONFIGURATION % (float(spacing), float(spacing)))
    subprocess.run(["env/bin/daytone", "run.toml"], check=True, capture_output=True)
    sent, received = read("sources.csv", "sent_packets"), read("sinks.csv", "received_packets")
    queued = f"{float(read('sinks.csv', 'queueing_delay_mean')):.1f}"
    print(f"every {spacing} s: {received} of {sent} packets in 1000 s, after {queued} s in the queue")
    changed |= f"{sent} {received} {queued}" != expected
sys.exit(changed)
END
env/bin/python run.py
