#!/bin/sh
# yamux-js 0.2.0 (npm), many streams over one connection, gives the sender a stream's window back as bytes arrive, not
# as the reader takes them (updateRecvWindow in stream.js; the buffer that it would subtract is never set). So nothing
# holds the sender back: a reader that waits, as one does whose own way out is a slow radio link, gets everything into
# memory. By its README yamux has "Back-pressure to prevent overwhelming a receiver". By yamux's specification a stream
# starts with a window of 256 kB, and in the original in Go it opens again by what was read. And a session takes each
# chunk that a read of the connection gives for the rest of a message (_transform in session.js): if a message of data
# is cut, as in TCP it may be wherever a segment ends, what came of it so far is dropped. What follows is taken for its
# content. Nothing is said, the stream stays open.
#
# Seen: a reader that never reads holds all 32 MB written; right is 256 kB. A message of 10000 bytes in chunks of 1448:
# nothing arrives; in one chunk all. No error, no warning.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund yamux-js@0.2.0
cat >run.js <<'END'
const { Transform } = require('stream');
const { setImmediate: turn } = require('timers/promises');
const { Client, Server } = require('yamux-js');

const MB = 1e6;
const WINDOW = 256 * 1024;

/** A client and a server in one process; the server's chunks are at most so long. */
async function connect(chunk) {
  const told = [];
  const config = { enableKeepAlive: false, logger: (...words) => told.push(words.join(' ')) };
  let accepted;
  const server = new Server((stream) => (accepted = stream), config);
  const client = new Client(config);
  for (const session of [server, client]) session.on('error', (error) => told.push(error.message));
  const cut = new Transform({
    transform(data, _, done) {
      for (let at = 0; at < data.length; at += chunk) this.push(data.subarray(at, at + chunk));
      done();
    },
  });
  client.pipe(cut).pipe(server).pipe(client);
  const stream = client.open();
  while (!accepted) await turn();
  return { stream, accepted, told };
}

/** MB that lie with a reader that does not read, of 32 written as fast as the stream takes them. */
async function unread() {
  const { stream, accepted, told } = await connect(Infinity);
  for (let count = 0; count < 32000; count++) {
    stream.write(Buffer.alloc(1000));
    for (let wait = 0; stream.writableNeedDrain && wait < 1000; wait++) await turn();
    if (stream.writableNeedDrain) break;
  }
  for (let wait = 0; wait < 100; wait++) await turn();
  console.log(`unread ${accepted.readableLength / MB} MB, right ${WINDOW / MB}; told: ${told.length}`);
  return [accepted.readableLength, told.length];
}

/** Bytes that arrive of one write. */
async function written(length, chunk) {
  const { stream, accepted, told } = await connect(chunk);
  let arrived = 0;
  accepted.on('data', (data) => (arrived += data.length));
  stream.write(Buffer.alloc(length, 1));
  for (let wait = 0; wait < 100; wait++) await turn();
  console.log(`${length} bytes in chunks of ${chunk}: ${arrived} arrive; told: ${told.length}`);
  return [arrived, told.length];
}

(async () => {
  const told = [await unread(), await written(10000, Infinity), await written(10000, 1448)];
  const expected = [
    [32 * MB, 0],
    [10000, 0],
    [0, 0],
  ];
  process.exit(JSON.stringify(told) === JSON.stringify(expected) ? 0 : 1);
})();
END
node run.js
