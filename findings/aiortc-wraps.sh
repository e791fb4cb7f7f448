#!/bin/sh
# aiortc 1.16.0 and aiortp 0.8.0 (both PyPI) forget in two places that numbers of RTP wrap around. They subtract
# timestamps without a bound (StreamStatistics.add), where RFC 3550, A.8, has unsigned numbers of 32 bits. These begin
# at random and wrap, at 90 kHz, once in 13 hours. There the interarrival jitter jumps to 2^28, 50 minutes, and takes
# hundreds of packets to come down again, on a path without any; it is in the receiver reports too. And in a NACK
# (RtcpRtpfbPacket.parse) the sequence number after 65535 is 65536, which no packet has: a packet just after the wrap
# that is lost with the one before it is not sent again (RFC 4585, 6.2.1: sequence numbers modulo 2^16). At 500
# packets/s that wrap comes every 131 s. Nothing is said. By its source str0m 0.25.0 has timestamps modulo 2^32.
#
# Seen, 100 packets, one each 20 ms, timestamps wrap before the last: jitter 2982617 ms or so; without a wrap below 5
# ms. A NACK of 65535 and 0 is read as 65535 and 65536.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet aiortc==1.16.0 aiortp==0.8.0
cat >"$dir/run.py" <<'END'
import struct
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


NACK = struct.pack(">BBHIIHH", 0x81, 205, 3, 1, 2, 65535, 1)  # 65535 and the one after it
wraps = 2**32 - round((COUNT - 1) * SPACING * CLOCK_RATE)
changed = False
for name, statistics, packets in (
    ("aiortc", aiortc.rtcrtpreceiver, aiortc.rtp), ("aiortp", aiortp.stats, aiortp.packet)
):
    even, wrapped = (jitter(statistics, packets.RtpPacket, first) for first in (0, wraps))
    [nack] = packets.RtcpPacket.parse(NACK)
    print(f"{name}: jitter {even:.1f} ms, after a wrap {wrapped:.0f} ms; NACK of {nack.lost}")
    changed |= not (even < 100 and 2_980_000 < wrapped < 2_985_000 and nack.lost == [65535, 65536])
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
