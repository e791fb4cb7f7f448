#!/bin/sh
# robust-websocket 1.0.0 (npm) is "aware of online and offline": when the browser says that it is offline the socket is
# closed, and opened again when it says online. But the timer of an attempt to connect (timeout, 4 s) is stopped only if
# that attempt succeeds. If it fails and the next succeeds, the timer of the first goes off later on the open connection
# (newWebSocket in robust-websocket.js): there is an event "timeout", and offline and online are no longer listened to.
# So after a start with bad coverage, a phone that goes through flight mode or to another network keeps a dead socket
# with readyState OPEN, until TCP gives up. And an attempt that does time out is not ended, nor is another one made.
# Nothing is said. By its README the listening ends only with ignoreConnectivityEvents, and after the timeout "a
# connection is considered to have timed out".
#
# Seen, offline and online again. First attempt answered: closed and connected anew. Refused, the second answered:
# "timeout" on the open connection, and offline and online change nothing. Not answered: "timeout", then nothing, still
# connecting.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund robust-websocket@1.0.0 ws@8.18.3
cat >run.js <<'END'
const { createServer } = require('node:http')
const { setTimeout: sleep } = require('node:timers/promises')
const { WebSocket, WebSocketServer } = require('ws')

// What a browser has.
globalThis.window = new EventTarget()
Object.defineProperty(globalThis, 'navigator', { value: { onLine: true }, configurable: true })
globalThis.WebSocket = WebSocket
const RobustWebSocket = require('robust-websocket')

/** Goes offline and online, after a first attempt that is answered, refused or left without an answer. */
async function run(first) {
  let [attempts, connections] = [0, 0]
  const server = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    const answer = ++attempts > 1 ? 'answered' : first
    if (answer === 'refused') return socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
    if (answer === 'not answered') return
    connections++
    sockets.handleUpgrade(request, socket, head, () => {})
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))

  const options = { timeout: 1000, shouldReconnect: () => 100 }
  const socket = new RobustWebSocket(`ws://127.0.0.1:${server.address().port}/`, null, options)
  const events = []
  for (const name of ['timeout', 'open', 'close']) socket.addEventListener(name, () => events.push(name))
  socket.onerror = () => {}
  await sleep(2000)
  events.push('offline')
  window.dispatchEvent(new Event('offline'))
  await sleep(500)
  events.push('online')
  window.dispatchEvent(new Event('online'))
  await sleep(1000)
  console.log(`${first}: ${events.join(', ')}; ${connections} connections, state ${socket.readyState}`)
  socket.close()
}

async function main() {
  for (const first of ['answered', 'refused', 'not answered']) await run(first)
  process.exit()
}
main()
END
node run.js | tee told
cat >expected <<'END'
answered: open, offline, close, online, open; 2 connections, state 1
refused: close, open, timeout, offline, online; 1 connections, state 1
not answered: timeout, offline, online; 0 connections, state 0
END
diff expected told
