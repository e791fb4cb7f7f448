#!/bin/sh
# gsm7 1.3.1 (npm), which packs and unpacks the 7-bit alphabet of SMS (3GPP TS 23.038, 6.2.1), writes the escape to the
# extension table for each character that it does not know: it looks one up in both tables and, where it is in neither,
# escapes the code undefined, which is 0 (getCharCode in index.js). The character after it is then one of the extension
# table. Phones and word processors write apostrophes and dashes that are not in the alphabet, so letters become signs:
# an e the euro, a ( a brace. Where the extension has none, a phone shows the letter and drops the other character;
# decode() of this package writes "undefined". The standard has no code for such characters, a message with them goes
# as UCS-2.
#
# Seen, encoded and decoded: l’eau becomes l€au, 5–(2) becomes 5{2), it’s becomes itundefined.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund gsm7@1.3.1
cat >run.js <<'END'
const { decode, encode } = require("gsm7");

for (const text of ["l'eau", "l\u2019eau", "5\u2013(2)", "it\u2019s"]) {
  console.log(`${text}: ${decode(encode(text))}`);
}
END
node run.js | tee told
cat >expected <<'END'
l'eau: l'eau
l’eau: l€au
5–(2): 5{2)
it’s: itundefined
END
diff expected told
