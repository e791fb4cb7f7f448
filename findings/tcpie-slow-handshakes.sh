#!/bin/sh
# tcpie 11.0.1 (npm), which measures latency and reliability by TCP handshakes, keeps one start time, one socket and one
# flag "done" for all of its attempts (index.js: start). By default an attempt may last 3 s and the next begins after 1.
# A handshake whose SYN is lost takes 1 s more (RFC 6298, 2.1). Then the next attempt has begun: what comes first of the
# two ends it, by the start time of the later one, and what comes second is not counted at all, neither as sent, nor as
# answered or timed out. So a lost SYN, the very thing that it is to find on a wireless path, is told as a short round
# trip or not at all. Nothing is said. With an interval above the timeout it is right.
#
# Seen, an attempt each 0.4 s, a server whose queue is full for 0.9 s, so that the first three SYNs are lost and sent
# again after 1 s: seven handshakes, three of which took 1 s. Told: 5 sent, 5 succeeded, the longest 0.2 s, the others
# 0.0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund tcpie@11.0.1
cat >run.mjs <<'END'
import { tcpie } from 'tcpie'

const seconds = []
const pie = tcpie('127.0.0.1', Number(process.argv[2]), { count: 5, interval: 400, timeout: 3000 })
pie.on('connect', ({ rtt }) => seconds.push((rtt / 1000).toFixed(1)))
pie.on('error', error => { throw error })
pie.on('end', ({ sent, success, failed }) => {
  console.log(`tcpie: ${sent} sent, ${success} succeeded, ${failed} failed, in s ${seconds.join(' ')}`)
  process.exit()
})
console.log('begins')
pie.start()
END
cat >run.py <<'END'
import socket
import subprocess
import time

listener = socket.create_server(("127.0.0.1", 0), backlog=0)
port = listener.getsockname()[1]
fills_queue = socket.create_connection(("127.0.0.1", port))
client = subprocess.Popen(["node", "run.mjs", str(port)], stdout=subprocess.PIPE, text=True)
client.stdout.readline()
time.sleep(0.9)
listener.listen(64)
listener.settimeout(1.5)
listener.accept()[0].close()
count = 0
try:
    while True:
        listener.accept()[0].close()
        count += 1
except TimeoutError:
    print(client.communicate()[0], end="")
    print(f"server: {count} handshakes")
END
python3 run.py | tee told
cat >expected <<'END'
tcpie: 5 sent, 5 succeeded, 0 failed, in s 0.2 0.0 0.0 0.0 0.0
server: 7 handshakes
END
diff expected told
