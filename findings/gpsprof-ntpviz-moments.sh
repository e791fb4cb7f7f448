#!/bin/sh
# Two programs of Debian 12 that profile receivers and clocks, gpsprof of gpsd 3.22 (gpsd-clients) and ntpviz of ntpsec
# 1.2.2, tell wrong moments of the errors. Both take the third and fourth powers of each error less the standard
# deviation, where they are of the error less its mean (pow(fix[index] - sigma, 3) and pow(val - self.sigma, 3)). So
# normal errors have a skewness of -4 and a kurtosis of 10 where the mean is 0, as with gpsprof it always is, and with
# the offset of a clock anything. Both programs say themselves: "a normal distribution has a skewness of zero" and "a
# kurtosis of three", and over three is "heavy tailed". gpsprof also exchanges the standard deviations of latitude and
# longitude: MeterOffset gives the offset to the east first, which it takes for the one to the north. Smallest and
# largest error stand in the right row. Nothing is said.
#
# Seen, 1000 fixes with normal errors of 3 m to the north, 2 m to the east and 5 m in height: latitude 2.003, longitude
# 2.999 and height 4.999 m, each with a skewness of -4.0 and a kurtosis of 10.0. 1000 offsets of 3 -+ 1 ms: a skewness
# of 14.0 and a kurtosis of 43.1. Right are 3, 2 and 5 m, 0 and 3.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet gpsd-clients=3.22-4.1+deb12u1 python3-gps=3.22-4.1+deb12u1 \
	ntpsec-ntpviz=1.2.2+dfsg1-1+deb12u1 python3-ntp=1.2.2+dfsg1-1+deb12u1 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >fixes.py <<'END'
import json
from statistics import NormalDist

COUNT = 1000
# The same normal errors in three orders without correlation.
errors = [NormalDist().inv_cdf((i + 0.5) / COUNT) for i in range(COUNT)]
device = {"class": "DEVICE", "path": "/dev/ttyACM0", "driver": "u-blox", "bps": 9600, "stopbits": 1, "cycle": 1.0}
print(json.dumps({"class": "DEVICES", "devices": [device]}))
for i in range(COUNT):
    fix = {"class": "TPV", "device": "/dev/ttyACM0", "mode": 3, "time": f"2024-01-01T00:{i // 60:02}:{i % 60:02}.000Z"}
    fix["lat"] = 48 + 3 * errors[i] / 111_200  # metres per degree, here
    fix["lon"] = 8 + 2 * errors[617 * i % COUNT] / 74_500
    fix["alt"] = fix["altHAE"] = 200 + 5 * errors[383 * i % COUNT]
    print(json.dumps(fix))
with open("stats/loopstats.20240101", "w") as file:
    for i in range(COUNT):
        offset = 0.003 + 0.001 * errors[617 * i % COUNT]
        file.write(f"60310 {64 * i}.000 {offset:.9f} 1.000 0.000001000 0.000100 6\n")  # 60310 is 2024-01-01
END
mkdir stats
python3 fixes.py >fixes.json
PYTHONPATH=usr/lib/python3/dist-packages python3 usr/bin/gpsprof --redo --formatter space <fixes.json >plot 2>log || {
	cat log >&2
	exit 2
}
# In the plot it is one label, whose lines are parted by "\n".
grep skewness plot | sed 's/\\n/\n/g' | grep -E "skewness|meters" | tr -s " " | tee told
# Of ntpviz the table is enough: a stand-in draws nothing.
printf '#!/bin/sh\n' >gnuplot
chmod +x gnuplot
export TZ=UTC LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu/ntp:$dir/usr/lib/x86_64-linux-gnu" PATH="$dir:$PATH"
PYTHONPATH=usr/lib/python3/dist-packages python3 usr/bin/ntpviz --datadir stats --outdir out \
	--starttime 2024-01-01T00:00:00 --endtime 2024-01-02T00:00:00 >log 2>&1 || { cat log >&2; exit 2; }
sed -n 's/^Local Clock Time Offset,//p' out/summary.csv |
	awk -F, '{ printf "mean %.1f, sigma %.1f ms, skewness %.1f, kurtosis %.1f\n", $13, $11, $15, $16 }' | tee -a told
cat >expected <<'END'
 min max sigma skewness kurtosis
 -9.871 9.871 2.003 meters -4.0 10.0
 -6.592 6.592 2.999 meters -4.0 10.0
 -16.453 16.453 4.999 meters -4.0 10.0
mean 3.0, sigma 1.0 ms, skewness 14.0, kurtosis 43.1
END
diff expected told
