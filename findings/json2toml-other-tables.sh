#!/bin/sh
# json2toml 6.1.2 (npm) writes a scenario as another one. It does not know that a key belongs to the last table header
# above it, until the next. In index.js, values that follow an array of tables come after its last entry, and are in it;
# a table that has both values and an array of tables gets no header for its values, which go to the table before; and a
# table within an entry of an array loses the path to it. So a seed becomes a setting of the last flow, the rate of the
# radio one of the simulation, and the link of a flow one of all. It is valid TOML, and nothing is said. By TOML 1.0
# (Table, Array of Tables) a key belongs to the header above. And a time gets the local time of the machine with a Z for
# UTC, without its fraction: in Paris in winter each is an hour late.
#
# Seen, in TOML's own terms: flow[1].seed = 7 for seed = 7; simulation.rate = 54 for radio.rate = 54; link.delay = 20
# for flow[0].link.delay = 20; 04:04:05Z for 03:04:05.678Z.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund json2toml@6.1.2 smol-toml@1.9.1
cat >run.mjs <<'END'
import json2toml from 'json2toml'
import { parse } from 'smol-toml'

const scenarios = [
  { flow: [{ start: 0 }, { start: 10 }], seed: 7 },
  { simulation: { time: 60 }, radio: { rate: 54, station: [{ x: 0 }, { x: 50 }] } },
  { flow: [{ start: 0, link: { delay: 20 } }] },
  { begin: new Date('2026-01-02T03:04:05.678Z') },
]
for (const scenario of scenarios) {
  console.log('given  ', JSON.stringify(scenario))
  console.log('written', JSON.stringify(parse(json2toml(scenario))))
}
END
TZ=Europe/Paris node run.mjs | tee told
cat >expected <<'END'
given   {"flow":[{"start":0},{"start":10}],"seed":7}
written {"flow":[{"start":0},{"start":10,"seed":7}]}
given   {"simulation":{"time":60},"radio":{"rate":54,"station":[{"x":0},{"x":50}]}}
written {"simulation":{"time":60,"rate":54},"radio":{"station":[{"x":0},{"x":50}]}}
given   {"flow":[{"start":0,"link":{"delay":20}}]}
written {"flow":[{"start":0}],"link":{"delay":20}}
given   {"begin":"2026-01-02T03:04:05.678Z"}
written {"begin":"2026-01-02T04:04:05.000Z"}
END
diff expected told
