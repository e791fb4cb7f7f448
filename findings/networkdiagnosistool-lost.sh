#!/bin/sh
# networkdiagnosistool 1.0.4 (npm), which does as mtr does with the ping of the system, takes lost pings on Linux for
# answered ones. It looks for the first number of milliseconds in what ping prints (executePing in lib/mtr.js), and the
# ping of Linux (iputils) ends with how long it took in all: "1 packets transmitted, 0 received, 100% packet loss, time
# 0ms". So a lost ping is an answer within 0 ms. There is never any loss, the best round trip is 0, and the more is lost
# the shorter the average: a host that answers nothing has 0 % loss and 0 ms. Nothing is said. By its documentation
# (Requirements) it is for this very ping.
#
# Seen, pings of ping 20221126 of which the last three of five are lost: loss 0 and best 0; all lost: loss 0, best,
# worst and average 0. Right is 60 and 100 % loss.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet iputils-ping=3:20221126-1+deb12u1 libcap2 libidn2-0 libunistring2 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" PATH="$dir/bin:$PATH"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund networkdiagnosistool@1.0.4
cat >run.js <<'END'
const { writeFileSync } = require('fs')
const { runMtrCycles } = require('networkdiagnosistool/lib/mtr')

const CYCLES = 5
const answer = yes => writeFileSync('/proc/sys/net/ipv4/icmp_echo_ignore_all', yes ? '0' : '1')

async function main () {
  const told = []
  for (const answered of [CYCLES, 2, 0]) {
    answer(answered > 0)
    const heard = ({ cycle }) => answer(cycle < answered)
    const [{ loss, best, worst, avg }] = await runMtrCycles([{ hop: 1, ip: '127.0.0.1' }], CYCLES, heard, 10)
    const right = 100 * (CYCLES - answered) / CYCLES
    console.log(`${answered} of ${CYCLES} answered: loss ${loss} %, right ${right}; ` +
      `best ${best}, average ${avg}, worst ${worst} ms`)
    told.push([loss, best])
  }
  // The pings over loopback that are answered take some hundredths of a millisecond, which is 0.0 as it is told.
  process.exit(told.every(([loss, best]) => loss === 0 && best < 1) ? 0 : 1)
}
main()
END
unshare --net sh -c 'ip link set lo up; node run.js'
