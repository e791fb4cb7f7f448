#!/bin/sh
# ripe.atlas.sagan 2.0.1 (PyPI), RIPE NCC's reader of RIPE Atlas results, rounds the round trips of NTP to three digits
# (Packet in ntp.py), as it does those of ping. But ping is in milliseconds and NTP in seconds, so what is rounded to
# microseconds there is rounded to milliseconds here: a round trip of 0.4 ms is 0, and least, median and greatest are
# whole milliseconds. The offset, whose error the round trip bounds, is not rounded. The root delay, also in seconds, is
# read as an integer, so 60 ms are 0. Nothing is said. By RFC 5905, 8, the round trip follows from the four timestamps
# of a packet, which it hands out as they are.
#
# Seen, round trips of 1.487, 1.391 and 0.432 ms: least 0.0, median and greatest 0.001 s. By the timestamps 1.487, 1.391
# and 0.432 ms. Root delay of 0.0604 s: 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ripe.atlas.sagan==2.0.1
cat >run.py <<'END'
from ripe.atlas.sagan import NtpResult

TIME = 3_909_000_000.0  # of the client, in seconds since 1900


def packet(number, there, server, back):
    """A result whose parts of the round trip take so many seconds; the clocks agree."""
    times = [TIME + number]
    for part in (there, server, back):
        times.append(times[-1] + part)
    names = "origin-ts", "receive-ts", "transmit-ts", "final-ts"
    return dict(zip(names, times), rtt=there + back, offset=(there - back) / 2)


packets = [packet(0, 0.000_9, 0.000_1, 0.000_587), packet(1, 0.000_8, 0.000_1, 0.000_591)]
packets.append(packet(2, 0.000_2, 0.000_05, 0.000_232))
header = {"fw": 5080, "type": "ntp", "timestamp": 1_700_000_000, "msm_id": 1, "prb_id": 1, "af": 4, "proto": "UDP"}
header |= {"dst_addr": "192.0.2.1", "version": 4, "li": "no", "mode": "server", "stratum": 1, "ref-id": "GPS"}
read = NtpResult(header | {"root-delay": 0.0604, "root-dispersion": 0.0011, "result": packets})
print(f"round trips: least {read.rtt_min}, median {read.rtt_median}, greatest {read.rtt_max} s")
for packet in read.packets:
    held = packet.transmitted_timestamp - packet.received_timestamp
    trip = packet.final_timestamp - packet.origin_timestamp - held
    print(f"told {packet.rtt} s; by its timestamps {1000 * trip:.3f} ms; offset {1000 * packet.offset:.4f} ms")
print(f"root delay: {read.root_delay}, dispersion: {read.root_dispersion}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
round trips: least 0.0, median 0.001, greatest 0.001 s
told 0.001 s; by its timestamps 1.487 ms; offset 0.1565 ms
told 0.001 s; by its timestamps 1.391 ms; offset 0.1045 ms
told 0.0 s; by its timestamps 0.432 ms; offset -0.0160 ms
root delay: 0, dispersion: 0.0011
END
diff expected told
