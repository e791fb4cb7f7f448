#!/bin/sh
# bunyan-tcp 0.9.5 (npm) sends a program's log over TCP, connects again when the connection is lost, and keeps the last
# 100 messages of the time without one (offlineBuffer). It counts the messages kept since the start and does not begin
# anew when they have been sent (MessageBuffer in index.js: drain sets messagesDropped back, not messagesAdded). So the
# place of a message is that of all outages together. When they have had 100 messages, the next ones overwrite some that
# wait in a buffer that is not full, what is left comes in another order, and in later outages lines that read
# "undefined" come where nothing was written. The event dropped_messages tells of messages that were sent, too. By its
# documentation the buffer is the "Number of messages to buffer while disconnected".
#
# Seen, 60 messages in each of two outages and 10 in a third: the first 60 arrive. Of the second 40 do, numbers 41 to 60
# before 21 to 40. Of the third all, between ten lines of "undefined" and ten more, and 10 are told as dropped.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund bunyan-tcp@0.9.5
cat >run.mjs <<'END'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import bunyanTcp from 'bunyan-tcp'

const received = []
const server = net.createServer((socket) => {
  socket.setEncoding('utf8').on('data', (data) => received.push(...data.trimEnd().split('\n')))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address()
const stream = bunyanTcp.createBunyanStream({ server: '127.0.0.1', port, reconnectDelay: 50 })
stream.on('socketError', () => {})
let dropped = 0
stream.on('dropped_messages', (count) => { dropped = count })
await once(stream, 'connect')

/** What arrives of so many messages, written while there is no connection. */
async function outage (count) {
  stream.socket.destroy()
  await once(stream, 'disconnect')
  await sleep(10)
  received.length = dropped = 0
  for (let number = 1; number <= count; number++) stream.write({ number })
  await once(stream, 'connect')
  await sleep(300)
  const numbers = received.map((line) => line === 'undefined' ? line : JSON.parse(line).number)
  const parts = []
  for (const number of numbers) {
    const last = parts.at(-1)
    if (last && (number === last[1] + 1 || number === last[1])) last.splice(1, 2, number, last[2] + 1)
    else parts.push([number, number, 1])
  }
  const show = ([first, last, count]) => first === 'undefined' ? `${count} undefined` : `${first} to ${last}`
  console.log(`${count} messages: ${parts.map(show).join(', ')}; told as dropped: ${dropped}`)
}

for (const count of [60, 60, 10]) await outage(count)
process.exit()
END
node run.mjs | tee told
cat >expected <<'END'
60 messages: 1 to 60; told as dropped: 0
60 messages: 41 to 60, 21 to 40; told as dropped: 20
10 messages: 10 undefined, 1 to 10, 10 undefined; told as dropped: 10
END
diff expected told
