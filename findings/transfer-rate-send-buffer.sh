#!/bin/sh
# transfer-rate 2.2.0 (npm) tells how fast a server of Node sent a response: the bytes written, divided by the time to
# "finish" (transfer-rate.js). Node emits that when it has handed the last byte to the system. So a response that fits
# into the send buffer, which grows to 4 MB on Linux (tcp_wmem), has the speed of the server's memory, whatever the
# path. And what the connection had sent before is kept in 32 bits with a sign (~~ in response), so on a connection that
# is kept open and has sent more than 2 GiB each response has 4 GiB on top. Nothing is said; by its README it calculates
# the transfer rate of a response.
#
# Seen, 400 kB to a client that reads 100 kB a second, within 4 s: more than 10 MB/s. A response of 400 kB over loopback
# after 2.2 GB on the same connection: more than 10 GB/s, in this run 4.4 TB/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund transfer-rate@2.2.0
cat >run.js <<'END'
const http = require('http')
const transfer = require('transfer-rate')

const rate = transfer({ data: 'Byte', output: false })
const told = []
const server = http.createServer((request, reply) => {
  const start = process.hrtime()
  rate(request, reply, start) // sets reply.transferRate when finished
  const size = Number(request.url.slice(1))
  reply.setHeader('Content-Length', size)
  const piece = Buffer.alloc(Math.min(size, 1e6))
  let left = size
  const write = () => {
    while (left > 0) {
      left -= piece.length
      if (left === 0) reply.end(piece)
      else if (!reply.write(piece)) return reply.once('drain', write)
    }
  }
  write()
  reply.on('finish', () => setImmediate(() => told.push(Number(reply.transferRate))))
})

/** How many seconds it takes to get so many bytes, read at no more than a rate in bytes per second if there is one. */
function get (size, agent, limit) {
  return new Promise(resolve => {
    const start = Date.now()
    let received = 0
    http.get({ port: server.address().port, host: '127.0.0.1', path: `/${size}`, agent }, reply => {
      reply.on('data', chunk => {
        received += chunk.length
        if (!limit) return
        reply.pause()
        setTimeout(() => reply.resume(), Math.max(0, start + received / limit * 1000 - Date.now()))
      })
      reply.on('end', () => resolve((Date.now() - start) / 1000))
    })
  })
}

async function main () {
  const time = await get(400e3, false, 100e3)
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  await get(2200e6, agent)
  await get(400e3, agent)
  agent.destroy()
  server.close()
  const [slow, , kept] = told
  console.log(`400 kB, received in ${time.toFixed(1)} s: ${(slow / 1e6).toFixed(0)} MB/s`)
  console.log(`400 kB after 2.2 GB: ${(kept / 1e9).toFixed(0)} GB/s`)
  process.exit(time > 3 && slow > 1e7 && kept > 1e10 ? 0 : 1)
}
server.listen(0, '127.0.0.1', main)
END
node run.js
