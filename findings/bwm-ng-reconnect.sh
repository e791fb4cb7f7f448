#!/bin/sh
# bwm-ng 0.6.3 (Debian 12), which shows or logs the traffic of interfaces, takes a counter that is less than before for
# one that wrapped around at 2^64 (calc_new_values in process.c, WRAP_AROUND). So where an interface comes back with its
# counters at 0, as ppp0 or wwan0 does when a modem connects again, that sample is of 1.8e19 bytes a second. In the CSV
# it is a row like all others. Average, sum and maximum (-T avg, sum, max) have it in them from then on: a link of 1
# Mbit/s that was away once averages exabytes a second. Nothing is said, and its manual does not speak of it. At 10
# Gbit/s such a counter wraps around after 467 years; one that begins again is a discontinuity, across which a
# difference means nothing (RFC 2863, ifCounterDiscontinuityTime). ifstat 1.1 (Debian 12) warns and tells 0.
#
# Seen, 1 Mbit/s, interface away for a moment: one of 6 samples is 1.8e19 bytes a second, and so is the maximum to the
# end; the average is more than 1e17.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet bwm-ng=0.6.3-2+b1 libstatgrab10 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >run.py <<'END'
import os
import subprocess
import time

RATE, BEFORE, AWAY, END = 125_000, 500_000_000, 3.5, 8  # bytes a second, bytes, s, s
HEADER = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n"

start = time.monotonic()


def count():
    """Writes the counters of now; they begin at 0 again when the interface comes back."""
    elapsed = time.monotonic() - start
    told = BEFORE + elapsed * RATE if elapsed < AWAY else (elapsed - AWAY) * RATE
    with open("dev.new", "w") as file:
        counters = f"{told:.0f} {told // 1000:.0f} 0 0 0 0 0 0"
        file.write(f"{HEADER}  ppp0: {counters} {counters}\n")
    os.replace("dev.new", "dev")


count()
runs = {}
for kind in "rate", "avg", "max":
    command = f"usr/bin/bwm-ng -i proc -f dev -I ppp0 -o csv -t 1000 -c 6 -T {kind}".split()
    runs[kind] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
while time.monotonic() - start < END:
    count()
    time.sleep(0.01)
for kind, run in runs.items():
    rows = [row.split(";") for row in run.communicate()[0].splitlines()]
    rates = [float(row[2]) for row in rows if row[1] == "ppp0"]
    if kind == "rate":
        sane = sum(0.5 * RATE < rate < 1.5 * RATE for rate in rates)
        wild = [f"{rate:.1e}" for rate in rates if rate > 1e9]
        print(f"rate: {len(rates)} samples, {sane} of about 1 Mbit/s, others {' '.join(wild)} bytes/s")
    else:
        print(f"{kind}: at last {'exabytes' if rates[-1] > 1e17 else 'no exabytes'} a second")
END
python3 run.py | tee told
cat >expected <<'END'
rate: 6 samples, 5 of about 1 Mbit/s, others 1.8e+19 bytes/s
avg: at last exabytes a second
max: at last exabytes a second
END
diff expected told
