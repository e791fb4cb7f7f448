#!/bin/sh
# asterix4py 1.0.6 (PyPI) decodes ASTERIX, in which receivers of ADS-B and radars send the positions of aircraft by UDP.
# A datagram is a row of blocks, each with its own category and length (EUROCONTROL-SPEC-0149, Part 1). The parser reads
# the category of the first block and takes all for that one (AsterixParser.py: self.bytes[0:1], where the length goes
# by self.p). So after a block of a category that it does not know, such as the north marker of a radar, all others are
# lost, and after one that it knows they are read as its items: times are others, and items appear that were not sent.
# Nothing is said, unless the bytes run out.
#
# Seen, a plot (category 48) at 43200 s of the day alone: 43200 s. After a north marker (34) nothing. Before the north
# marker: the plot and a second one, at 680.75 s, of a radar that sent one.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check asterix4py==1.0.6
cat >run.py <<'END'
from asterix4py import AsterixParser

RADAR = bytes([25, 1])  # SAC and SIC
NOON = (43200 * 128).to_bytes(3, "big")  # in 1/128 s


def block(category, record):
    return bytes([category]) + (3 + len(record)).to_bytes(2, "big") + record


plot = block(48, bytes([0b11000000]) + RADAR + NOON)  # items 010 and 140
north_marker = block(34, bytes([0b11100000]) + RADAR + bytes([1]) + NOON)  # items 010, 000 and 030
for name, datagram in (
    ("plot", plot),
    ("plot, plot", plot + plot),
    ("north marker, plot", north_marker + plot),
    ("plot, north marker", plot + north_marker),
):
    records = AsterixParser(datagram).get_result().values()
    print(f"{name}:", ", ".join(f"category {record['cat']} at {record['140']['ToD']} s" for record in records))
END
env/bin/python run.py | tee told
cat >expected <<'END'
plot: category 48 at 43200.0 s
plot, plot: category 48 at 43200.0 s, category 48 at 43200.0 s
north marker, plot: 
plot, north marker: category 48 at 43200.0 s, category 48 at 680.75 s
END
diff expected told
