#!/bin/sh
# l8nc 0.1.10 (PyPI) pings several targets so that you "see where your internet is breaking", logs them and shows the
# logs again with --replay. It waits for all of a round, two seconds for a target that does not reply, before the
# interval begins (pinger.py), so one silent target makes a second between pings three for all targets. The replay takes
# more than three seconds between two pings for a new session (replay.py, SESSION_GAP_THRESHOLD): with one silent
# target, or an interval of three seconds or more, each ping is a session of its own. And a target without any reply at
# all, which is where it is breaking, is left out of the chart and of the totals, though its log has all the losses and
# the summary at the end of the run told them.
#
# Seen, two targets, one of which never replies, five pings at the default interval: 12 s rather than 4 from first to
# last; the summary tells 100 % loss of 5, the replay "5 sessions" and the other target alone. With the one that replies
# alone: one session.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check l8nc==0.1.10 icmplib==3.0.4 plotext==5.3.2 rich==14.0.0 \
    click==8.1.8
cat >run.sh <<'END'
set -eu
ip link set lo up
ip route add 192.0.2.0/24 dev lo
echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range
env/bin/l8nc --only -c 5 -l one 127.0.0.1
env/bin/l8nc --only -c 5 -l two 127.0.0.1 192.0.2.1
END
unshare --net sh run.sh >told 2>&1 || { cat told; exit 2; }
env/bin/l8nc --replay one >replay.one
env/bin/l8nc --replay two >replay.two
grep loss= told
grep -h -e session -e 'loss ' replay.one replay.two
grep -q '192.0.2.1 .*loss=100.0% (5/5)' told
[ "$(grep -c ',timeout' two/192.0.2.1.csv)" = 5 ]
grep -q ', 1 session$' replay.one
grep -q '([0-9]*s), 5 sessions$' replay.two
grep -q '127.0.0.1 .*(5 pings)' replay.two
! grep -q 192.0.2.1 replay.two
