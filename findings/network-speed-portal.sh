#!/bin/sh
# network-speed 2.1.1 (npm) tells the speed of a download from the time between its first and its last chunk and the
# size that the caller expects (checkDownloadSpeed in app.js). It looks neither at the status nor at what was received.
# So where the portal of a hotspot answers with a redirect, or a server with an error, the page of some hundred bytes
# counts as the whole file, received at once: the speed is Infinity, or gigabits where a millisecond went by. An empty
# body gives NaN. Of a file that did come, the first chunk's bytes are counted but not its time. No error is returned;
# by the README the size is the size of the file.
#
# Seen, 5 MB expected, a redirect with a page of 154 bytes in two pieces 20 ms apart: 2000 Mbit/s or a little less, of
# which 0.06 were received; in one piece Infinity. An empty redirect: NaN. 400 kB in two halves a second apart: 3.2
# Mbit/s, as 400 kB in one second; in that second 200 kB came.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund network-speed@2.1.1
cat >run.js <<'END'
const http = require('http')
const NetworkSpeed = require('network-speed')

/** What is told of a response in pieces with a time between them in ms. */
async function tell (status, pieces, gap, expected) {
  const server = http.createServer((_, reply) => {
    reply.writeHead(status, status === 302 ? { Location: 'http://portal.example/' } : {})
    pieces.forEach((piece, index) => setTimeout(() => reply.write(piece), index * gap))
    setTimeout(() => reply.end(), (pieces.length - 1) * gap)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const speed = await new NetworkSpeed().checkDownloadSpeed(`http://127.0.0.1:${server.address().port}/`, expected)
  server.close()
  return Number(speed.mbps)
}

async function main () {
  const page = Buffer.alloc(154)
  const half = Buffer.alloc(200e3)
  const told = [
    await tell(302, [page], 0, 5e6),
    await tell(302, [page.subarray(77), page.subarray(77)], 20, 5e6),
    await tell(302, [], 0, 5e6),
    await tell(200, [half, half], 1000, 400e3)
  ]
  console.log(`redirect in one piece: ${told[0]} Mbit/s; in two: ${told[1]}; empty: ${told[2]}`)
  console.log(`400 kB in two halves a second apart: ${told[3]} Mbit/s`)
  process.exit(told[0] > 1000 && told[1] > 500 && isNaN(told[2]) && Math.abs(told[3] - 3.2) < 0.2 ? 0 : 1)
}

main()
END
node run.js
