#!/bin/sh
# mtr 0.95 shows 16 times the interarrival jitter (field I of --order, "Jint"). It computes it as RFC 1889,
# A.8, does in whole numbers, where the variable holds 16 times the jitter, and leaves out the last step,
# the division by 16 (ui/net.c, net_jinta; so does 0.96, and by its source trippy 0.13.0). Nothing is said.
# The other fields are right, so this smoothed mean of the jitter is above the worst jitter. RFC 3550, A.8,
# which follows RFC 1889, shifts by four bits when it reports; aiortc 1.16.0, which computes in whole
# numbers too, does and gives 10.0 ms.
#
# Seen, round trips of 20 and 30 ms in turn: Javg 9.9, Jmax 10, Jint 159.9; right for the last is 10.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet mtr-tiny=0.95-1 libjansson4 libcap2 libncurses6 libtinfo6 >log 2>&1 ||
    { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >network <<'END'
#!/bin/sh
# Stands in for mtr-packet (its manual has the protocol): the target answers, at exact times.
time=30
while read -r token command _; do
    case $command in
    check-support) echo "$token feature-support support ok" ;;
    send-probe)
        time=$((50 - time))
        echo "$token reply ip-4 127.0.0.1 round-trip-time ${time}000"
        ;;
    esac
done
END
chmod +x network
LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" MTR_PACKET="$dir/network" \
    usr/bin/mtr --json --no-dns --max-ttl 1 --report-cycles 120 --interval 0.02 --order AMXI \
    127.0.0.1 >report
cat >run.py <<'END'
import json
import sys

hub = json.load(open("report"))["report"]["hubs"][-1]
told = [hub[name] for name in ("Avg", "Javg", "Jmax", "Jint")]
print("Avg {} Javg {} Jmax {} Jint {} ms".format(*told))
average, mean, worst, smoothed = told
sys.exit(not (abs(average - 25) < 0.1 and 9.8 < mean <= worst == 10 and 155 < smoothed < 161))
END
python3 run.py
