#!/bin/sh
# freq2earfcn of earfcn 0.0.3 (PyPI) computes with floats and cuts off where it should round: 1805.1 MHz, the
# second channel of band 3, is 0.0999 MHz above 1805 MHz, so it is taken for the first. Two of five channels of
# the bands 1, 2, 3, 4, 7 and 10 come out one too low, 100 kHz off the carrier, and its own earfcn2freq gives
# another frequency back. Nothing is said. An EARFCN is 10 (F - F_low) + N_offset, a whole number on the raster
# of 100 kHz (TS 36.101, 5.7.3). nrarfcn 2.6.0 has all of them right.
#
# Seen, channels one too low: band 1 240 of 600, band 3 300 of 750, band 7 280 of 700, band 8 70 of 350, band 20
# none of 300.
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
