#!/bin/sh
# tftp 0.1.2 (npm), a TFTP client and server that asks for windows of four blocks by itself (RFC 7440), hands over the
# blocks of a window as they came, not by their numbers: it sorts them only if _windowsSize is above 1, and the field is
# named _windowSize (_onData in protocol/reader.js). So where the path reorders packets, as a radio link that repeats
# frames may, the file is wrong, at the right length and without an error. Where a block is lost, but in the last
# window, the client acknowledges the one before it, but does not move the end of its window: the blocks behind that end
# are ignored, and the transfer ends with "Timed out". And it sends its time-out in milliseconds as the option timeout,
# which is in seconds, 1 to 255 (RFC 2349). By RFC 1350 blocks are put together by number; by RFC 7440 the next window
# begins behind the last block in order and is as large as the others. README.md says that these RFCs are supported.
#
# Seen, 40 blocks from a peer that sends from where it is asked to: in order, right; blocks 1 and 2 swapped, wrong, no
# error; one block lost once, "Timed out" with 8 or 4 blocks of 40. Option timeout: 300, for 0.3 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund tftp@0.1.2
cat >run.js <<'END'
const dgram = require('dgram');
const tftp = require('tftp');

const [BLOCK, COUNT] = [512, 40];
const [RRQ, DATA, ACK, OACK] = [1, 3, 4, 6];
const file = Buffer.alloc(BLOCK * (COUNT - 1) + 100);
for (let at = 0; at < file.length; at++) file[at] = 1 + Math.floor(at / BLOCK);

function words(opcode, ...texts) {
  return Buffer.concat([Buffer.from([0, opcode]), Buffer.from(texts.join('\0') + '\0')]);
}

function data(number) {
  const header = Buffer.alloc(4);
  header.writeUInt16BE(DATA, 0);
  header.writeUInt16BE(number, 2);
  return Buffer.concat([header, file.subarray((number - 1) * BLOCK, number * BLOCK)]);
}

/** A server: each acknowledgement brings the four blocks after it, as the path lets them through. */
function serve(path, asked) {
  const server = dgram.createSocket('udp4');
  server.on('message', (message, { port, address }) => {
    const reply = (bytes) => server.send(bytes, port, address);
    const opcode = message.readUInt16BE(0);
    if (opcode === RRQ) {
      const [, , ...options] = message.subarray(2).toString().split('\0');
      for (let at = 0; at + 1 < options.length; at += 2) asked[options[at]] = options[at + 1];
      reply(words(OACK, 'blksize', BLOCK, 'windowsize', asked.windowsize, 'tsize', file.length));
    } else if (opcode === ACK) {
      const last = message.readUInt16BE(2);
      const window = [1, 2, 3, 4].map((offset) => last + offset).filter((number) => number <= COUNT);
      for (const number of path(window)) reply(data(number));
    }
  });
  return server;
}

function lose(number) {
  let lost = false;
  return (window) => {
    if (lost || !window.includes(number)) return window;
    lost = true;
    return window.filter((other) => other !== number);
  };
}

async function get(name, path) {
  const asked = {};
  const server = serve(path, asked);
  await new Promise((done) => server.bind(0, '127.0.0.1', done));
  const { port } = server.address();
  const stream = tftp.createClient({ host: '127.0.0.1', port, blockSize: BLOCK, timeout: 300 }).createGetStream('file');
  const parts = [];
  stream.on('data', (part) => parts.push(part));
  const error = await new Promise((done) => {
    stream.on('error', (error) => done(error.message));
    stream.on('end', () => done('none'));
  });
  server.close();
  const got = Buffer.concat(parts);
  const right = got.equals(file);
  console.log(`${name}: ${got.length} of ${file.length} bytes, right: ${right}, error: ${error}`);
  return [got.length === file.length, right, error, asked.timeout];
}

(async () => {
  const told = [
    await get('in order', (window) => window),
    await get('blocks 1 and 2 swapped', (window) => (window[0] === 1 ? [2, 1, 3, 4] : window)),
    await get('block 1 lost once', lose(1)),
    await get('block 2 lost once', lose(2)),
  ];
  console.log('option timeout:', told[0][3]);
  const expected = [
    [true, true, 'none', '300'],
    [true, false, 'none', '300'],
    [false, false, 'Timed out', '300'],
    [false, false, 'Timed out', '300'],
  ];
  process.exit(JSON.stringify(told) === JSON.stringify(expected) ? 0 : 1);
})();
END
node run.js
