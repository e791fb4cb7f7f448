#!/bin/sh
# @serenityjs/raknet 0.8.21 (npm), a server of RakNet (reliable messages over UDP, as Minecraft has them), sends a lost
# datagram again only when the client asks for it by a NACK. There is no time-out: what is not acknowledged is forgotten
# after 30 s (nack and tick of Connection in index.js). But a NACK may be lost as well, and a client of RakNet sends one
# for each gap. RakNet itself sends again what is not acknowledged in time (CCRakNetUDT.h, its list of what to do;
# manual, Reliability Types: reliable packets arrive eventually). So the first lost NACK loses a reliable message and,
# where messages are ordered, all that come after it. If each way loses 5 %, it is one datagram in 400. The connection
# stays up, and nothing is said.
#
# Seen, 1000 ordered messages, each 20th datagram lost: 1000 delivered. The same and the third NACK lost: 57 delivered,
# then none in 5 s; the 58th was sent once.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @serenityjs/raknet@0.8.21
cat >run.js <<'END'
const { createSocket } = require('dgram')
const { Server, Frame, Reliability, Priority } = require('@serenityjs/raknet')

const [PORT, COUNT, LOST_NACK] = [19132, 1000, Number(process.argv[2])]
const MAGIC = Buffer.from('00ffff00fefefefefdfdfdfd12345678', 'hex')
const wait = time => new Promise(resolve => setTimeout(resolve, time))
const bytes = (...parts) => Buffer.concat(parts.map(part => Buffer.isBuffer(part) ? part : Buffer.from([part])))
const number = (value, size) => { const buffer = Buffer.alloc(size); buffer.writeUIntBE(value, 0, size); return buffer }
const little = value => number(value, 3).reverse()

// A client as RakNet's: it acknowledges what arrives, asks once for each gap and puts the messages in order.
const socket = createSocket('udp4')
const send = buffer => socket.send(buffer, PORT, '127.0.0.1')
let sequence = 0
const sendOrdered = payload => {
  const frame = bytes(3 << 5, number(payload.length * 8, 2), little(sequence), little(sequence), 0, payload)
  send(bytes(0x84, little(sequence++), frame))
}
let [next, nacks, delivered] = [0, 0, 0]
const messages = new Set()
const copies = new Map()
socket.on('message', buffer => {
  if (buffer[0] === 0x06) { // the answer to the first request
    const address = bytes(4, 0x80, 0xff, 0xff, 0xfe, number(PORT, 2))
    return send(bytes(0x07, MAGIC, address, number(1400, 2), Buffer.alloc(8)))
  }
  if (buffer[0] === 0x08) return sendOrdered(bytes(0x09, Buffer.alloc(17)))
  if ((buffer[0] & 0xf0) !== 0x80) return
  const message = buffer.length === 18 ? buffer.readUInt16BE(16) : undefined // none in the handshake
  copies.set(message, (copies.get(message) || 0) + 1)
  const received = buffer.readUIntLE(1, 3)
  if (message !== undefined && received % 20 === 0) return // lost
  send(bytes(0xc0, 0, 1, 1, little(received)))
  if (received > next && ++nacks !== LOST_NACK) send(bytes(0xa0, 0, 1, 0, little(next), little(received - 1)))
  next = Math.max(next, received + 1)
  messages.add(message)
  while (messages.has(delivered)) delivered++
})

async function main () {
  const server = new Server({ address: '127.0.0.1', port: PORT })
  let connection
  server.on('connect', made => { connection = made })
  server.start()
  await new Promise(resolve => socket.bind(0, '127.0.0.1', resolve))
  send(bytes(0x05, MAGIC, 11, Buffer.alloc(1400)))
  await wait(500)
  sendOrdered(bytes(0x13, Buffer.alloc(200)))
  await wait(500)
  for (let index = 0; index < COUNT; index++) {
    const frame = new Frame()
    frame.reliability = Reliability.ReliableOrdered
    frame.orderChannel = 0
    frame.payload = bytes(0xfe, 0, number(index, 2))
    connection.sendFrame(frame, Priority.Immediate)
    await wait(1)
  }
  await wait(5000)
  const sent = copies.get(delivered)
  const rest = delivered === COUNT ? '' : `, the next one sent ${sent === 1 ? 'once' : sent + ' times'}`
  console.log(`${LOST_NACK ? `NACK ${LOST_NACK}` : 'no NACK'} lost: ${delivered} of ${COUNT} delivered${rest}`)
  process.exit()
}
main()
END
{ node run.js 0; node run.js 3; } | tee told
cat >expected <<'END'
no NACK lost: 1000 of 1000 delivered
NACK 3 lost: 57 of 1000 delivered, the next one sent once
END
diff expected told
