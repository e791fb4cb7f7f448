#!/bin/sh
# @dsnp/parquetjs 1.8.9 (npm; 1.9.3 came without its code), Parquet for JavaScript, reads other numbers than a
# file has. It has no conversion for unsigned integers (UINT_32 and UINT_64 in lib/types.js) and gives them as signed
# ones. So half of all TCP sequence numbers and RTP timestamps are negative, and so are an SSRC or a hash of a flow. And
# of a column of flags in a data page of version 2 all are false: there they are run-length encoded, with one bit each,
# and it decodes them with a width that it does not have (decodeDataPageV2 in lib/reader.js: bitWidth, the column's
# typeLength). Nothing is said. By the Parquet format (LogicalTypes, Encodings) UINT types have no sign, and RLE is for
# Boolean values too. hyparquet 1.31.5 reads both.
#
# Seen, written by pyarrow 17.0.0: sequence numbers 2147483647, 2147483648, 4294967295 as 2147483647, -2147483648, -1;
# a hash of 2^64 - 1 as -1; flags of lost packets "no, yes, no" as they are in a page of version 1, all no in version 2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyarrow==17.0.0
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund @dsnp/parquetjs@1.8.9 hyparquet@1.31.5
cat >write.py <<'END'
import pyarrow
import pyarrow.parquet

table = pyarrow.table(
    {
        "sequence": pyarrow.array([2**31 - 1, 2**31, 2**32 - 1], pyarrow.uint32()),
        "hash": pyarrow.array([1, 2**63, 2**64 - 1], pyarrow.uint64()),
        "lost": [False, True, False],
    }
)
for version in "1.0", "2.0":
    pyarrow.parquet.write_table(table, f"pages-{version}", data_page_version=version)
END
env/bin/python write.py
cat >run.mjs <<'END'
import parquetjs from '@dsnp/parquetjs'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'

for (const version of ['1.0', '2.0']) {
  const path = `pages-${version}`
  const reader = await parquetjs.ParquetReader.openFile(path)
  const rows = []
  for await (const row of reader) rows.push(row)
  await reader.close()
  const read = { parquetjs: rows, hyparquet: await parquetReadObjects({ file: await asyncBufferFromFile(path) }) }
  for (const [name, rows] of Object.entries(read)) {
    const columns = ['sequence', 'hash', 'lost'].map((column) => rows.map((row) => row[column]).join(' '))
    console.log(`${version}, ${name}: ${columns.join('; ')}`)
  }
}
END
node run.mjs | tee told
cat >expected <<'END'
1.0, parquetjs: 2147483647 -2147483648 -1; 1 -9223372036854775808 -1; false true false
1.0, hyparquet: 2147483647 2147483648 4294967295; 1 9223372036854775808 18446744073709551615; false true false
2.0, parquetjs: 2147483647 -2147483648 -1; 1 -9223372036854775808 -1; false false false
2.0, hyparquet: 2147483647 2147483648 4294967295; 1 9223372036854775808 18446744073709551615; false true false
END
diff expected told
