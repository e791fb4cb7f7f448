#!/bin/sh
# CSIKit 2.5 (PyPI), which reads channel state information of WiFi receivers, tells two things wrong of traces of the
# Intel 5300, by the Linux 802.11n CSI Tool. Times are its counter of microseconds, 32 bits long, less the first one
# (reader/readers/read_bfee.py), without a thought of the wrap: after at most 71.6 minutes, and at any time before, as
# the counter runs since the receiver began, they go back by 4295 s. The trace has a negative length and no sample rate.
# And "Average RSSI" in dBm is the largest of the three numbers of the antennas as they are (get_metadata in
# csi/csidata.py). By the tool (get_total_rss.m), and by the same package's get_total_rss, the power is their sum in mW,
# less 44 dB and the gain control. Nothing is said.
#
# Seen, a packet each second for 100 s with the wrap in the middle, antennas at 33, 30 and 27 and a gain of 40: length
# -4195.97 s, rate 0, RSSI 33.0 dBm; right are 99 s, 1 Hz and -48.6 dBm, which is what get_total_rss says.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps csikit==2.5 numpy==1.26.4
cat >write.py <<'END'
import struct

RX, TX, SUBCARRIERS, RSSI, NOISE, GAIN = 3, 1, 30, (33, 30, 27), -92, 40


def record(time):
    """One beamforming record: length, code 0xbb, header, CSI of 8 + 8 bits after 3 bits for each subcarrier."""
    packed, bit = 0, 0
    for _ in range(SUBCARRIERS):
        bit += 3
        for _ in range(RX * TX):
            packed |= 10 << bit | 10 << bit + 8
            bit += 16
    size = (SUBCARRIERS * (RX * TX * 16 + 3) + 7) // 8
    antennas = 0 | 1 << 2 | 2 << 4
    header = struct.pack("<IHHBBBBBbBBHH", time, 1, 0, RX, TX, *RSSI, NOISE, GAIN, antennas, size, 0x1101)
    body = b"\xbb" + header + packed.to_bytes(size, "little")
    return struct.pack(">H", len(body)) + body


with open("trace.dat", "wb") as file:
    for second in range(100):
        file.write(record((2**32 - 50_000_000 + second * 1_000_000) % 2**32))
END
python3 write.py
env/bin/csikit --info trace.dat | grep -E 'Frame Count|Length|Rate|RSSI' | tee told
env/bin/python - <<'END' | tee -a told
from CSIKit.reader.readers.read_bfee import IWLBeamformReader

print(f"get_total_rss: {IWLBeamformReader.get_total_rss(33, 30, 27, 40):.1f} dBm")
END
cat >expected <<'END'
Frame Count: 100
Length: -4195.97s
Average Sample Rate: 0.00Hz
Average RSSI: 33.0dBm
get_total_rss: -48.6 dBm
END
diff expected told
