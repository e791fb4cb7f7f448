#!/bin/sh
# ais-stream-decoder 2.1.2 (npm), which reads AIS, the positions that ships send by radio, inverts the rate of turn the
# wrong way. A ship that turns by r degrees a minute sends 4.733 times the root of r (ITU-R M.1371-5, message 1). The
# decoder divides by 4.733 and takes the root (rateOfTurn in format.js), where it should square. So a ship that turns by
# 90 degrees in a minute seems to turn by 3. A turn to port, which is negative, comes out as null, like "not available".
# Nothing is said. pyais 2.9.2 (PyPI) squares.
#
# Seen, degrees a minute: turns of 1, 10, 90 to starboard 1.0, 1.8, 3.1 (pyais 1.0, 10.0, 90.0); to port null (pyais
# -1.0, -10.0, -90.0).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyais==2.9.2
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund ais-stream-decoder@2.1.2
cat >run.js <<'END_JS'
const { writeFileSync } = require('fs')
const { default: AisDecoder } = require('ais-stream-decoder')

/** A position report of a class A station, message 1, with this rate of turn in degrees a minute. */
function report (turn) {
  const rate = Math.sign(turn) * Math.round(4.733 * Math.sqrt(Math.abs(turn)))
  const fields = [[1, 6], [0, 2], [211000000, 30], [0, 4], [rate, 8], [123, 10], [1, 1], [600000 * 10, 28],
    [600000 * 50, 27], [900, 12], [90, 9], [30, 6], [0, 2], [0, 3], [0, 1], [0, 19]]
  const bits = fields.map(([value, size]) => (value >>> 0).toString(2).padStart(32, '0').slice(-size)).join('')
  const payload = bits.match(/.{6}/g).map((six) => {
    const value = parseInt(six, 2)
    return String.fromCharCode(value < 40 ? value + 48 : value + 56)
  }).join('')
  const body = `AIVDM,1,1,,A,${payload},0`
  const check = [...body].reduce((sum, letter) => sum ^ letter.charCodeAt(0), 0)
  return `!${body}*${check.toString(16).toUpperCase().padStart(2, '0')}`
}

const turns = [1, 10, 90, -1, -10, -90]
const sentences = turns.map(report)
writeFileSync('sentences', sentences.join('\n') + '\n')
const told = []
const decoder = new AisDecoder()
decoder.on('data', (message) => told.push(JSON.parse(message).rateOfTurn))
for (const sentence of sentences) decoder.write(sentence)
decoder.end(() => setImmediate(() => {
  const numbers = told.map((turn) => turn === null ? 'null' : turn.toFixed(1))
  console.log('ais-stream-decoder: ' + numbers.join(' '))
}))
END_JS
cat >run.py <<'END_PYTHON'
from pyais.stream import FileReaderStream

turns = [message.decode().turn for message in FileReaderStream("sentences")]
print("pyais: " + " ".join(f"{turn:.1f}" for turn in turns))
END_PYTHON
{ node run.js && env/bin/python run.py; } | tee told
cat >expected <<'END_TOLD'
ais-stream-decoder: 1.0 1.8 3.1 null null null
pyais: 1.0 10.0 90.0 -1.0 -10.0 -90.0
END_TOLD
diff expected told
