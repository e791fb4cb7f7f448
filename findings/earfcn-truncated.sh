#!/bin/sh
# freq2earfcn of earfcn 0.0.3 (PyPI) cuts off what it has computed with floats where it should round: 1805.1 MHz,
# 1 above the lowest channel of band 3, is 1805.1 - 1805 = 0.0999 MHz, so no channel above. Two of five channels
# of the bands 1, 2, 3, 4, 7 and 10 come out one too low, that is 100 kHz beside the carrier, where a modem that
# is told to finds no cell. It does not even return what its own earfcn2freq was given. Nothing is said. An
# EARFCN is 10 (F - F_low) + N_offset, a whole number on the raster of 100 kHz (TS 36.101, 5.7.3); nrarfcn 2.6.0
# has all of them right.
#
# Seen, channels of each band and those one too low: band 1 600, 240; 3 750, 300; 7 700, 280; 8 350, 70;
# 20 300, 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet earfcn==0.0.3 nrarfcn==2.6.0
cat >"$dir/run.py" <<'END'
import sys

import nrarfcn
from earfcn.convert import earfcn2freq, freq2earfcn

changed = False
for band, first, last, expected in (
    (1, 0, 599, 240), (3, 1200, 1949, 300), (7, 2750, 3449, 280), (8, 3450, 3799, 70), (20, 6150, 6449, 0)
):
    channels = range(first, last + 1)
    low = 0
    for channel in channels:
        frequency = round(earfcn2freq(channel), 1)
        told = dict(freq2earfcn(frequency))[band]
        low += told == channel - 1
        changed |= told not in (channel, channel - 1)
        changed |= channel not in nrarfcn.get_lte_earfcn_by_frequency(frequency)
    print(f"band {band}: {low} of {len(channels)} channels one too low")
    changed |= low != expected
print(f"1805.1 MHz: {dict(freq2earfcn(1805.1))[3]}, right 1201")
sys.exit(changed)
END
"$dir/venv/bin/python" "$dir/run.py"
