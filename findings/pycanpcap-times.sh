#!/bin/sh
# pycanpcap 0.3 (PyPI) makes captures of logs of a CAN bus, as of a ship's NMEA 2000 or of a car. Those of the logger of
# python-can it takes too: it reads the time of each frame and drops it (read_packet in log.py: t). In the capture each
# frame has the time at which it was read from the log. So an hour of positions and speeds is a burst of milliseconds
# that happened now, and no rate, gap or delay can be read from it. Logs of candump, which it reads by scapy, keep their
# times. Nothing is said. In a capture the time is when the frame was captured (draft-ietf-opsawg-pcap, 5).
#
# Seen, three frames at 1700000000, 1 and 11 s later: from candump's log so; from python-can's all three within half a
# second, now.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps pycanpcap==0.3 scapy==2.5.0 python-can==4.5.0 \
    wrapt==1.17.2 packaging==25.0 typing_extensions==4.13.2 msgpack==1.1.0
cat >run.py <<'END'
import time

import can
from pycanpcap.log import CandumpReader, PythonCanLoggerReader
from scapy.utils import rdpcap, wrpcap

START, FRAMES = 1_700_000_000, (0, 1, 11)  # s
POSITION = 0x09F80123  # NMEA 2000, PGN 129025, from address 0x23

messages = [
    can.Message(timestamp=START + offset, arbitration_id=POSITION, is_extended_id=True, data=bytes(range(8)))
    for offset in FRAMES
]
with open("candump", "w") as file:
    for message in messages:
        file.write(f"({message.timestamp:.6f}) can0 {POSITION:08X}#{message.data.hex().upper()}\n")
with open("python-can", "w") as file:
    for message in messages:
        file.write(f"{message}\n")
for name, reader in {"candump": CandumpReader, "python-can": PythonCanLoggerReader}.items():
    wrpcap("pcap", reader(name).read_all())
    told = [float(frame.time) for frame in rdpcap("pcap")]
    apart = " ".join(f"{moment - told[0]:.0f}" for moment in told)
    print(f"{name}: {apart} s; of the log: {told[0] == START}, of now: {abs(told[0] - time.time()) < 60}")
END
env/bin/python -W ignore run.py 2>log | tee told
cat >expected <<'END'
candump: 0 1 11 s; of the log: True, of now: False
python-can: 0 0 0 s; of the log: False, of now: True
END
diff expected told || { cat log; exit 1; }
