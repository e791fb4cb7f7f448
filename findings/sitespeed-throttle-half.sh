#!/bin/sh
# @sitespeed.io/throttle 5.0.1 (npm), which imitates slow networks by tc, does less than it says where not both rates
# are set (setLimits in tc.js, on Linux). Packet loss belongs to the download rate: without --down there is none, with
# an upload rate, a round trip or both. And half of the round trip belongs to each rate: with one rate alone the path
# has half of it. Yet it prints what it was asked for: "Started throttler: Up:400kbit/s RTT:200ms PacketLoss:5%" for 100
# ms and no loss. Loss is never set for uploads, and what arrives over IPv6 is not slowed at all (the filter takes
# "protocol ip", which is IPv4), although what leaves is. By its README.md one may set "the download/upload speed and/or
# RTT", and adds loss by --packetLoss, whatever the rest.
#
# Seen, its calls of tc: --up 400 --rtt 200 --packetLoss 5: netem delay 100ms rate 400kbit for the way out, nothing for
# the way in. --rtt 200 --packetLoss 5: 100 ms for each way, no loss. With --up 400 --down 400 as well all is there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @sitespeed.io/throttle@5.0.1
# Takes the place of sudo: writes what it is to do into a file, and knows one interface.
mkdir bin
cat >bin/sudo <<'END'
#!/bin/sh
case "$*" in
    "ip route") echo "default via 192.0.2.1 dev eth0" ;;
    *) echo "$@" >>calls ;;
esac
END
chmod +x bin/sudo
for options in "--up 400 --rtt 200 --packetLoss 5" "--down 400 --rtt 200 --packetLoss 5" \
    "--rtt 200 --packetLoss 5" "--up 400 --down 400 --rtt 200 --packetLoss 5"; do
    : >calls
    echo "throttle $options"
    # The words are its arguments.
    # shellcheck disable=SC2086
    PATH=$dir/bin:$PATH node_modules/.bin/throttle $options
    grep -o 'dev .* netem .*' calls
    grep -o 'protocol [^ ]*' calls
done | tee told
cat >expected <<'END'
throttle --up 400 --rtt 200 --packetLoss 5
Started throttler: Up:400kbit/s RTT:200ms PacketLoss:5%
dev eth0 root handle 1:0 netem delay 100ms rate 400kbit
protocol ip
throttle --down 400 --rtt 200 --packetLoss 5
Started throttler: Down:400kbit/s RTT:200ms PacketLoss:5%
dev ifb0 root handle 1:0 netem delay 100ms rate 400kbit loss 5%
protocol ip
throttle --rtt 200 --packetLoss 5
Started throttler: RTT:200ms PacketLoss:5%
dev ifb0 root handle 1:0 netem delay 100ms
dev eth0 root handle 1:0 netem delay 100ms
protocol ip
throttle --up 400 --down 400 --rtt 200 --packetLoss 5
Started throttler: Down:400kbit/s Up:400kbit/s RTT:200ms PacketLoss:5%
dev ifb0 root handle 1:0 netem delay 100ms rate 400kbit loss 5%
dev eth0 root handle 1:0 netem delay 100ms rate 400kbit
protocol ip
END
diff expected told
