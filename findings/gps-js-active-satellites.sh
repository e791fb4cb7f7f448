#!/bin/sh
# gps 0.9.0 (npm), which reads NMEA 0183, forgets the satellites that the fix is made from (state.satsActive). It keeps
# those of a GSA sentence by its last field, the system (updateState in gps.mjs). NMEA 0183 has that field since 4.10;
# from a receiver that speaks an earlier version, as u-blox 8 does unless told otherwise (4.0), the sentence ends with
# VDOP, and the list stays empty beside a fix in three dimensions. A program that judges a fix by its satellites takes
# all of these for none.
#
# Seen, the same GSA with the system: 4 5 9 12 24; without it: none; fix 3D in both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund gps@0.9.0
cat >run.mjs <<'END'
import { GPS } from "gps";

function sentence(body) {
  const sum = [...body].reduce((sum, character) => sum ^ character.charCodeAt(0), 0);
  return `$${body}*${sum.toString(16).toUpperCase().padStart(2, "0")}`;
}

const body = "GPGSA,A,3,04,05,,09,12,,,24,,,,,2.5,1.3,2.1";
for (const [name, end] of [["4.10", ",1"], ["4.0", ""]]) {
  const gps = new GPS();
  if (!gps.update(sentence(body + end))) process.exit(1);
  console.log(`${name}: ${gps.state.fix}, active: ${gps.state.satsActive.join(" ") || "none"}`);
}
END
node run.mjs | tee told
cat >expected <<'END'
4.10: 3D, active: 4 5 9 12 24
4.0: 3D, active: none
END
diff expected told
