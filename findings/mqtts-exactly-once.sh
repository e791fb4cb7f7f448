#!/bin/sh
# mqtts 1.5.0 (npm), an MQTT client that connects again by itself, forgets the messages of quality of service 2 that it
# has begun to receive when the connection is lost (setDisconnected in mqtt.client.js ends all "flows"). It has answered
# PUBREC, so the broker has no copy of the message left and goes on with PUBREL. After the next connection that is an
# unexpected packet: the message, which is to arrive "exactly once", never does, and PUBREL gets no answer, so the
# broker sends it at each connection anew. It happens with "clean: false", where broker and client agree that the
# session goes on. No error is raised: there are two events "warning", "Client disconnected." and "PUBREL", that name no
# message. By MQTT 3.1.1, 4.1, what is received of QoS 2 and not acknowledged to the end is part of a client's session,
# and by [MQTT-4.3.3-2] PUBREL is answered by PUBCOMP. mqtt 5.14.1 (npm) does both.
#
# Seen, the connection lost after PUBREC: mqtts delivers none of the first message, sends no PUBCOMP, and delivers the
# next message, of QoS 1; mqtt delivers both and sends PUBCOMP.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund mqtts@1.5.0 mqtt@5.14.1
cat >run.js <<'END'
const { createServer } = require('node:net')

const CONNECT = 1, PUBACK = 4, PUBREC = 5, PUBREL = 6, PUBCOMP = 7
const publish = (qos, identifier, text) => {
  const body = Buffer.from(`\0\x03log\0${String.fromCharCode(identifier)}${text}`)
  return Buffer.from([0x30 | qos << 1, body.length, ...body])
}

/** A broker that loses the connection when its first message, of QoS 2, has got PUBREC. */
async function run(name, start) {
  let connections = 0
  const [messages, answers] = [[], []]
  const done = new Promise(resolve => {
    const server = createServer(socket => {
      const first = ++connections === 1
      socket.on('error', () => {})
      socket.on('data', data => {
        for (let at = 0; at < data.length; at += 2 + data[at + 1]) {
          const type = data[at] >> 4
          if (type === CONNECT) {
            socket.write(Buffer.from([0x20, 2, first ? 0 : 1, 0])) // The session goes on.
            if (first) socket.write(publish(2, 1, 'alarm'))
            else socket.write(Buffer.from([PUBREL << 4 | 2, 2, 0, 1, ...publish(1, 2, 'reading')]))
          } else if (type === PUBREC) socket.destroy()
          else if (type === PUBCOMP) answers.push('PUBCOMP')
          else if (type === PUBACK) resolve()
        }
      })
    }).listen(0, '127.0.0.1', () => start(server.address().port, text => messages.push(text)))
  })
  await done
  await new Promise(resolve => setTimeout(resolve, 100))
  console.log(`${name}: delivered ${messages.join(', ')}; answered ${answers.join(', ') || 'nothing'}`)
}

const session = { clientId: 'sensor', clean: false }

async function main() {
  await run('mqtts', (port, deliver) => {
    const { MqttClient, TcpTransport } = require('mqtts')
    const client = new MqttClient({ transport: new TcpTransport({ host: '127.0.0.1', port }), autoReconnect: true })
    client.on('message', message => deliver(message.payload.toString()))
    client.connect(session)
  })
  await run('mqtt', (port, deliver) => {
    const client = require('mqtt').connect({ host: '127.0.0.1', port, reconnectPeriod: 1000, ...session })
    client.on('message', (topic, payload) => deliver(payload.toString()))
  })
  process.exit()
}
main()
END
node run.js | tee told
cat >expected <<'END'
mqtts: delivered reading; answered nothing
mqtt: delivered alarm, reading; answered PUBCOMP
END
diff expected told
