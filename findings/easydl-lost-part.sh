#!/bin/sh
# easydl 1.2.0 (npm) downloads a file in parts and is to retry a part that fails, three times by default (maxRetry). It
# does so for a wrong status only. Where the connection is lost within a part, it emits "error" and then goes on as if
# the part were there: what has come is renamed to the whole part (_download in dist/index.js), the parts are put
# together, and "end" is emitted, which by its README is so when "the file being downloaded is ready". The file lacks
# the rest of the part, and all that follows is too far ahead. The parts are deleted, so nothing is left to resume from.
# Who waits for the promise gets the error, and then the same file. By its README it is "resilient" and retries "on
# failure". RFC 9110, 8.6, and RFC 9112, 8: a response shorter than its Content-Length is incomplete.
#
# Seen, a file of six parts, A to F, the third cut off in its middle, that is half a letter each: "aborted", no retry,
# "end", AABBCDDEEFF. Refused with 503 once, a retry and AABBCCDDEEFF, right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund easydl@1.2.0
cat >run.js <<'END'
const { createServer } = require('node:http')
const { readFileSync } = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const EasyDl = require('easydl')

const PART = 100_000
const HALF = PART / 2
const file = Buffer.concat([...'ABCDEF'].map(letter => Buffer.alloc(PART, letter)))

/** Downloads from a server that fails once, in part C. */
async function download(name, fail) {
  let failed = false
  const server = createServer((request, response) => {
    response.setHeader('Accept-Ranges', 'bytes')
    if (request.method === 'HEAD') return response.writeHead(200, { 'Content-Length': file.length }).end()
    const [start, end] = request.headers.range.match(/\d+/g).map(Number)
    const failing = start === 2 * PART && !failed
    if (failing) failed = true
    if (failing && fail === 'refuse') return response.writeHead(503).end()
    const headers = { 'Content-Length': end - start + 1, 'Content-Range': `bytes ${start}-${end}/${file.length}` }
    response.writeHead(206, headers)
    if (failing) response.write(file.subarray(start, start + HALF), () => response.socket.end())
    else response.end(file.subarray(start, end + 1))
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))

  const url = `http://127.0.0.1:${server.address().port}/`
  const options = { chunkSize: PART, retryDelay: 100, retryBackoff: 0 }
  let ended = false
  new EasyDl(url, name, options)
    .on('error', error => console.log(`${name}: error ${error.message}`))
    .on('retry', () => console.log(`${name}: retry`))
    .on('end', () => { ended = true })
    .start()
  for (let wait = 0; wait < 100 && !ended; wait++) await sleep(100)
  const got = readFileSync(name)
  const letters = Array.from({ length: got.length / HALF }, (_, number) => String.fromCharCode(got[number * HALF]))
  console.log(`${name}: ${ended ? 'end' : 'no end'}, ${letters.join('')}`)
}

async function main() {
  await download('lost', 'lose')
  await download('refused', 'refuse')
  process.exit()
}
main()
END
node run.js | tee told
cat >expected <<'END'
lost: error aborted
lost: end, AABBCDDEEFF
refused: retry
refused: end, AABBCCDDEEFF
END
diff expected told
