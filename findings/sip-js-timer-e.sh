#!/bin/sh
# sip 0.0.6 (npm), a SIP stack for Node.js, has one rule for both kinds of requests over UDP: the time between copies
# doubles without an end (createClientTransaction in sip.js). So of a MESSAGE, OPTIONS or REGISTER 7 copies go out in
# 32 s, the last two 16 s apart; after an outage of 10 s the next one goes out at 15.5 s, where 11.5 is right. And once
# the peer says 100 Trying, all timers are stopped: if the answer is lost, no copy asks for it again, and the caller is
# never told that the time is over. By RFC 3261, 17.1.2.2, the interval of such a request grows to T2, 4 s, and no
# further; in the state Proceeding copies go on every T2, and after 32 s Timer F ends it with 408. By RFC 4320, 4.1, a
# peer that cannot answer by the fourth copy says 100. An INVITE, whose interval doubles by the RFC too, is right.
#
# Seen, no answer: copies at 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s, 408 at 32 s; right are 11, every 4 s from 3.5 s on.
# 100 at the fourth copy, then nothing: no copy after that, and no end in 64 s; right are 7 more, and 408 at 32 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund sip@0.0.6
cat >run.js <<'END'
// All timers of this process, so those of the package too, run faster by this factor.
const SPEED = 5;
const wait = setTimeout;
globalThis.setTimeout = (task, ms, ...words) => wait(task, ms / SPEED, ...words);

const dgram = require('dgram');
const sip = require('sip');

const [OWN, PEER] = ['127.0.0.1', '127.0.0.2'];
const begin = performance.now();
const seconds = () => Math.round(((performance.now() - begin) * SPEED) / 100) / 10;
const copies = { OPTIONS: [], MESSAGE: [] };
const answers = { OPTIONS: [], MESSAGE: [] };

const probe = dgram.createSocket('udp4');
probe.bind(0, OWN, () => {
  const { port } = probe.address();
  probe.close(() => {
    const peer = dgram.createSocket('udp4');
    peer.on('message', (bytes) => {
      const request = sip.parse(bytes.toString());
      copies[request.method].push(seconds());
      if (request.method === 'MESSAGE' && copies.MESSAGE.length === 4) {
        peer.send(sip.stringify(sip.makeResponse(request, 100, 'Trying')), port, OWN);
      }
    });
    peer.bind(0, PEER, () => {
      sip.start({ address: OWN, port, tcp: false }, () => {});
      for (const method of Object.keys(copies)) {
        const headers = {
          to: { uri: `sip:peer@${PEER}` },
          from: { uri: `sip:own@${OWN}`, params: { tag: 'tag' } },
          'call-id': method,
          cseq: { method, seq: 1 },
        };
        const request = { method, uri: `sip:peer@${PEER}:${peer.address().port}`, headers };
        sip.send(request, ({ status }) => answers[method].push(`${status} at ${seconds()} s`));
      }
    });
  });
});

setTimeout(() => {
  for (const method of Object.keys(copies)) {
    console.log(`${method}: copies at ${copies[method].join(', ')} s; told: ${answers[method].join(', ')}`);
  }
  const near = (times, right) =>
    times.length === right.length && times.every((time, at) => Math.abs(time - right[at]) < 1);
  const same =
    near(copies.OPTIONS, [0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5]) &&
    near(copies.MESSAGE, [0, 0.5, 1.5, 3.5]) &&
    answers.OPTIONS.length === 1 &&
    answers.OPTIONS[0].startsWith('408') &&
    answers.MESSAGE.length === 1 &&
    answers.MESSAGE[0].startsWith('100');
  process.exit(same ? 0 : 1);
}, 64000);
END
node run.js
