#!/bin/sh
# huge-uploader 1.2.0 (npm) sends a file from the browser in chunks, "offline aware and mobile ready". When the browser
# says that it is online again it sends the next chunk (the listener in src/index.js), even if a chunk is on its way.
# And a short outage ends no request: TCP sends again what was lost. From then on two chains send chunks at once. The
# chunk that was on its way is sent and counted twice, so "finish" comes when one chunk is still missing, and again when
# that is there. A page that goes on at "finish", as it should, cuts the last chunk off. An upload that is done goes on
# too, with an empty chunk after the last. Nothing is said. By its README the progress is a "number between 0 and 100",
# the last chunk is one less than how many there are, and what is paused while offline is resumed.
#
# Seen, six chunks, 0 to 5. An outage while the second is on its way: "finish" when 0 1 1 2 3 4 are answered and again
# after 5, progress up to 117 %. After the end: "finish" after 0 1 2 3 4 5, right, and again after a chunk 6, 117 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund huge-uploader@1.2.0
cat >run.js <<'END'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

// What a browser has and Node.js lacks, with a window for each upload.
globalThis.FileReader = class {
  #busy = false

  async readAsArrayBuffer(blob) {
    if (this.#busy) throw new DOMException('already reading', 'InvalidStateError')
    this.#busy = true
    this.result = await blob.arrayBuffer()
    this.#busy = false
    this.onload()
  }
}
const HugeUploader = createRequire(import.meta.url)('huge-uploader')

async function upload(lost) {
  globalThis.window = new EventTarget()
  const outage = () => ['offline', 'online'].forEach(name => window.dispatchEvent(new Event(name)))

  // The server answers each request when it has come, or while two chains send, when the next has.
  const [pending, answered] = [[], []]
  const answer = () => {
    const { number, response } = pending.shift()
    answered.push(number)
    response.end()
  }
  let [depth, quiet] = [1, null]
  const server = createServer((request, response) => {
    request.resume()
    const number = request.headers['uploader-chunk-number']
    pending.push({ number, response })
    if (number === lost && depth === 1) {
      depth = 2
      outage()
    } else if (pending.length === depth) answer()
    clearTimeout(quiet)
    quiet = setTimeout(() => pending.length && answer(), 2000)
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))

  const uploader = new HugeUploader({
    endpoint: `http://127.0.0.1:${server.address().port}/`,
    file: new File(['x'.repeat(6000)], 'log'),
    chunkSize: 0.001 // MB
  })
  let [progress, ends] = [0, 0]
  uploader.on('progress', event => { progress = Math.max(progress, event.detail) })
  uploader.on('finish', () => {
    console.log('finish after', answered.join(' '))
    if (++ends === 1 && !lost) setTimeout(outage)
  })
  for (let wait = 0; wait < 100 && ends < 2; wait++) await sleep(100)
  console.log(`progress up to ${progress} %`)
}

console.log('outage while the second chunk is on its way')
await upload('1')
console.log('outage after the end')
await upload()
process.exit()
END
node run.js | tee told
cat >expected <<'END'
outage while the second chunk is on its way
finish after 0 1 1 2 3 4
finish after 0 1 1 2 3 4 5
progress up to 117 %
outage after the end
finish after 0 1 2 3 4 5
finish after 0 1 2 3 4 5 6
progress up to 117 %
END
diff expected told
