#!/bin/sh
# aiortc 1.16.0 and aiortp 0.8.0 (both PyPI) subtract RTP timestamps as whole numbers without a bound
# (StreamStatistics.add), not modulo 2^32. Timestamps begin at random and wrap around, at 90 kHz once in 13 hours, so
# one call of an hour in 13 has it. There the interarrival jitter jumps to 2^28, 50 minutes at 90 kHz, and takes some
# 300 packets to come down again, on a path without any. It is in the statistics and in the receiver reports, so the
# sender sees it too. Nothing is said. RFC 3550, A.8, computes in unsigned numbers of 32 bits, which wrap by themselves.
# By its source str0m 0.25.0 does.
#
# Seen, 100 packets, one each 20 ms, timestamps wrap around before the last: jitter below 5 ms until then, afterwards
# 2982616 ms; without a wrap below 5 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet aiortc==1.16.0 aiortp==0.8.0
cat >"$dir/run.py" <<'END'
import sys
import time

import aiortc.rtcrtpreceiver
import aiortc.rtp
import aiortp.packet
import aiortp.stats

CLOCK_RATE, SPACING = 90_000, 0.02  # Hz, s
COUNT = 100


def jitter(module, packet_class, first: int) -> float:
    """The jitter after all packets, in ms."""
    statistics = module.StreamStatistics(clockrate=CLOCK_RATE)
    for number in range(COUNT):
        timestamp = (first + round(number * SPACING * CLOCK_RATE)) % 2**32
        statistics.add(packet_class(sequence_number=number, timestamp=timestamp))
        time.sleep(SPACING)
    return statistics.jitter / CLOCK_RATE * 1000


wraps = 2**32 - round((COUNT - 1) * SPACING * CLOCK_RATE)
changed = False
for name, module, packet_class in (
    ("aiortc", aiortc.rtcrtpreceiver, aiortc.rtp.RtpPacket),
    ("aiortp", aiortp.stats, aiortp.packet.RtpPacket),
):
    even, wrapped = (jitter(module, packet_class, first) for first in (0, wraps))
    print(f"{name}: jitter {even:.1f} ms, after a wrap {wrapped:.0f} ms")
    changed |= not (even < 5 and 2_982_000 < wrapped < 2_983_000)
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
