#!/bin/sh
# @hazae41/kcp 1.1.3 (npm), the KCP protocol for the web, stops repeating a segment that was not acknowledged 3 s after
# it was first sent (highDelay, 3000 by default; onWrite in kcp/writer.mjs). What comes later waits at the peer for the
# missing number. So an outage of 4 s, as a tunnel or a change of cells brings, ends the stream for good: nothing more
# is delivered, what is written is accepted and acknowledged, and neither end gets an error or is closed. An outage of
# 2 s does no harm. The delay between copies stays 300 ms, and there is no window. README.md does not name the limit.
# KCP in C (ikcp.c) repeats a segment at growing intervals, and after 20 copies marks the connection as dead.
#
# Seen, a write before the outage, one in it and 5 after it: outage of 2 s, all 7 arrive; of 4 s, one of 7, the last 5
# acknowledged, no error, not closed, in the 5 s after them.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @hazae41/kcp@1.1.3 @hazae41/binary@1.3.11 @hazae41/cursor@1.2.4
cat >run.mjs <<'END'
import { setTimeout as sleep } from 'timers/promises';
import { Opaque } from '@hazae41/binary';
import { Cursor } from '@hazae41/cursor';
import { KcpDuplex, KcpSegment } from '@hazae41/kcp';

const ACK = KcpSegment.commands.ack;

async function transfer(outage) {
  let up = true;
  let acknowledged = 0;
  let arrived = 0;
  const told = [];
  const end = () =>
    new KcpDuplex({ conversation: 7, error: () => told.push('error'), close: () => told.push('closed') });
  const [sender, receiver] = [end(), end()];

  async function carry(from, to) {
    const writer = to.inner.writable.getWriter();
    for await (const segment of from.inner.readable) {
      const bytes = new Uint8Array(segment.sizeOrThrow());
      segment.writeOrThrow(new Cursor(bytes));
      if (!up) continue;
      acknowledged += segment.command === ACK;
      await writer.write(new Opaque(bytes));
    }
  }

  async function read() {
    for await (const _ of receiver.outer.readable) arrived++;
  }

  carry(sender, receiver);
  carry(receiver, sender);
  read();
  const writer = sender.outer.writable.getWriter();
  const write = (byte) => writer.write(new Opaque(new Uint8Array([byte])));
  await write(0);
  await sleep(200);
  up = false;
  await write(1);
  await sleep(outage * 1000);
  up = true;
  const before = acknowledged;
  for (let byte = 2; byte < 7; byte++) await write(byte);
  await sleep(5000);
  const after = acknowledged - before >= 5;
  console.log(`outage of ${outage} s: ${arrived} of 7 arrive; later ones acknowledged: ${after}; told: ${told.length}`);
  return [arrived, after, told.length];
}

const told = await Promise.all([transfer(2), transfer(4)]);
process.exit(JSON.stringify(told) === '[[7,true,0],[1,true,0]]' ? 0 : 1);
END
node run.mjs
