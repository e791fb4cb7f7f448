#!/bin/sh
# stomp-client 0.9.0 (npm) connects again when a connection is lost, but keeps what it has read of a frame that did not
# arrive whole (StompClient in client.js makes its parser once, and nothing resets it). The next connection begins with
# the frame CONNECTED. That is taken for the rest of the message, so the message is delivered with its end missing and
# protocol text in its place. CONNECTED itself is not seen: there is no event "reconnect", and the count of retries,
# which it would reset, goes on towards its limit over outages that are hours apart. The broker sends the message again,
# whole, under the same message-id; who drops duplicates keeps the broken one. No error is raised. STOMP 1.2 runs on a
# reliable stream (Protocol Overview) and ends a frame with a NULL octet, so half a frame at the end of a stream is
# none. By its README "reconnect" is emitted "when the client has successfully reconnected".
#
# Seen, the connection lost in the middle of message 2: "temperature 21.5CONNECTED\nsession:2\n\n", then it again,
# right; no "reconnect". Lost after message 2: messages 1 to 3, right, and "reconnect".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund stomp-client@0.9.0
cat >run.js <<'END'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import StompClient from 'stomp-client'

const message = (id, body) => `MESSAGE\ndestination:/queue/a\nmessage-id:${id}\n\n${body}\0`
const second = message(2, 'temperature 21.5 degrees')

/** A broker whose first connection is lost when so many bytes of the second message are sent. */
async function lose(bytes) {
  let connections = 0
  const server = createServer(socket => {
    const first = ++connections === 1
    socket.write(`CONNECTED\nsession:${connections}\n\n\0`)
    socket.on('data', data => {
      if (!data.includes('SUBSCRIBE')) return
      if (first) socket.end(message(1, 'one') + second.slice(0, bytes))
      else socket.write((bytes < second.length ? second : '') + message(3, 'three'))
    })
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))

  const { port } = server.address()
  const client = new StompClient({ address: '127.0.0.1', port, reconnectOpts: { retries: 5, delay: 50 } })
  client.on('reconnect', () => console.log('reconnect'))
  let last
  client.connect(() => client.subscribe('/queue/a', (body, headers) => {
    last = headers['message-id']
    console.log(last, JSON.stringify(body))
  }))
  for (let wait = 0; wait < 100 && last !== '3'; wait++) await sleep(100)
}

console.log('lost in message 2')
await lose(second.indexOf(' degrees'))
console.log('lost after message 2')
await lose(second.length)
process.exit()
END
node --no-deprecation run.js | tee told
cat >expected <<'END'
lost in message 2
1 "one"
2 "temperature 21.5CONNECTED\nsession:2\n\n"
2 "temperature 21.5 degrees"
3 "three"
lost after message 2
1 "one"
2 "temperature 21.5 degrees"
reconnect
3 "three"
END
diff expected told
