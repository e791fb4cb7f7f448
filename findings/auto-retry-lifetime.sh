#!/bin/sh
# auto-retry 1.4.0 (npm) makes a function of one that returns a promise, which tries again after a failure: maxRetries
# times, 2 unless told otherwise, each time after a longer delay. It counts the retries in the options of the function,
# not of a call (retryFunctionOnReject in src/index.js), and no success resets them. So a program that runs for days
# over a link that loses a request now and then has retries for the first two failures of its life, the second of them
# with the delay of a second retry. From then on each lost request is an error at once. Nothing is said: the error is
# that of the request, as after two vain retries. Its comment says maxRetries is the "total number of retries"; the
# delays "spread out retries" of one request. retry 0.13.1 (npm) counts for each operation.
#
# Seen, six requests of which each fails once: 1 and 2 are retried, after 2 and 4 times the base, 3 to 6 rejected. With
# retry 0.13.1 all six succeed, each after the base.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund auto-retry@1.4.0 retry@0.13.1
cat >run.js <<'END'
const { default: autoRetry } = require('auto-retry')
const retry = require('retry')

const REQUESTS = 6, BASE = 20 // ms

const delays = []
const later = setTimeout
globalThis.setTimeout = (callback, delay, ...rest) => {
  delays.push(Math.round(delay / BASE))
  return later(callback, delay, ...rest)
}
Math.random = () => 0 // no jitter

let fails
const request = async () => {
  if (fails-- > 0) throw new Error('request lost')
  return 'answered'
}

const withRetry = () => new Promise((resolve, reject) => {
  const operation = retry.operation({ retries: 2, minTimeout: BASE })
  operation.attempt(() => request().then(resolve, error => operation.retry(error) || reject(error)))
})

async function run (name, call) {
  for (let number = 1; number <= REQUESTS; number++) {
    fails = 1
    delays.length = 0
    const outcome = await call().catch(error => error.message)
    console.log(`${name}, request ${number}: ${outcome}, delays ${delays.join(' ') || 'none'}`)
  }
}

run('auto-retry', autoRetry(request, { backoffBase: BASE })).then(() => run('retry', withRetry))
END
node run.js | tee told
cat >expected <<'END'
auto-retry, request 1: answered, delays 2
auto-retry, request 2: answered, delays 4
auto-retry, request 3: request lost, delays none
auto-retry, request 4: request lost, delays none
auto-retry, request 5: request lost, delays none
auto-retry, request 6: request lost, delays none
retry, request 1: answered, delays 1
retry, request 2: answered, delays 1
retry, request 3: answered, delays 1
retry, request 4: answered, delays 1
retry, request 5: answered, delays 1
retry, request 6: answered, delays 1
END
diff expected told
