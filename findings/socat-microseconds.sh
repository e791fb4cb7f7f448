#!/bin/sh
# socat 1.7.4.4 (Debian 12), asked to show what it forwards (-v or -x), begins each block with the time of day. It
# prints microseconds as if they were nanoseconds, with nine digits after the point (socat.c: tv_nsec / 1000 with
# F_tv_nsec, "%09ld"): 19:00:00.25 is 19:00:00.000250000. So within a second all times are a thousandth of what they
# are: an answer after 600 ms comes after 0.6 ms, or, across a full second, after 1 s less 0.4 ms. The manual does not
# say what the digits are; in socat's own log (-lu) they are six and right. Who reads these dumps inherits it:
# socat2pcap 0.1.0 (PyPI), which makes captures of them, takes the first six digits for microseconds (read in socat.py),
# so that of 250 ms 250 microseconds are left. Nothing is said.
#
# Seen, ten lines sent 0.15 s apart: all ten fractions below 0.001 s; read as microseconds all are right. In the capture
# by socat2pcap all are below 0.001 s too.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet socat=1.7.4.4-2 libwrap0 libnsl2 libtirpc3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps socat2pcap==0.1.0
cat >run.py <<'END'
import re
import struct
import subprocess
import time

LINES, SPACING, TOLERANCE = 10, 0.15, 0.2  # s

socat = subprocess.Popen(
    ["usr/bin/socat", "-x", "-u", "STDIN", "OPEN:/dev/null"],
    stdin=subprocess.PIPE,
    stderr=subprocess.PIPE,
    bufsize=0,
)
sent = []
for _ in range(LINES):
    time.sleep(SPACING)
    sent.append(time.time() % 1)
    socat.stdin.write(b"sample\n")
socat.stdin.close()
dump = socat.stderr.read().decode()
with open("dump", "w") as file:
    file.write(dump)
digits = re.findall(r":\d\d\.(\d+) ", dump)


def right(scale):
    """How many of the fractions of a second are those at which the line was sent."""
    offsets = [abs(int(told) / scale - fraction) for told, fraction in zip(digits, sent, strict=True)]
    return sum(min(offset, 1 - offset) < TOLERANCE for offset in offsets)


small = sum(int(told) < 1e6 for told in digits)
print(f"{set(map(len, digits))} digits; below 0.001 s: {small} of {len(digits)}; as microseconds right: {right(1e6)}")
subprocess.run(["env/bin/python", "-m", "socat2pcap", "--output", "pcap", "dump"], check=True)
with open("pcap", "rb") as file:
    capture = file.read()[24:]
fractions = []
while capture:
    _, fraction, length, _ = struct.unpack("IIII", capture[:16])
    fractions.append(fraction)
    capture = capture[16 + length :]
print(f"capture: below 0.001 s: {sum(fraction < 1000 for fraction in fractions)} of {len(fractions)}")
END
python3 run.py | tee told
cat >expected <<'END'
{9} digits; below 0.001 s: 10 of 10; as microseconds right: 10
capture: below 0.001 s: 10 of 10
END
diff expected told
