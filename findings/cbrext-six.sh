#!/bin/sh
# cbrext 0.1.0 (PyPI) takes the compressed beamforming reports of 802.11ac out of captures, the angles that a station
# sends back about its channel, from which sensing by WiFi and learned feedback start. With -b it writes them as bits.
# Its table of hexadecimal digits (hex_to_bin_dict in util.py) has 0011 for the 6, which is the 3. So of random
# digits a sixteenth is wrong in two bits. The angles are packed across the digits (VHT Compressed Beamforming Report
# field of IEEE 802.11-2020, 2 to 9 bits each), so wrong ones are all over a report. Nothing shows: the number of bits
# is right. Without -b the digits are as tshark has them.
#
# Seen, digits of which the bits are not those of the number: 6 alone; "66:33" becomes eight times 0011, 16 bits.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cbrext==0.1.0
cat >run.py <<'END'
import json

from src.save import save_json  # so cbrext installs itself

DIGITS = "0123456789abcdef"
save_json("bits.json", [*DIGITS, "66:33"], binary=True)
with open("bits.json") as file:
    *digits, last = (bits.replace(",", "") for bits in json.load(file))
wrong = [digit for digit, bits in zip(DIGITS, digits) if bits != f"{int(digit, 16):04b}"]
print(f"wrong: {wrong}, 66:33 is {last}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
wrong: ['6'], 66:33 is 0011001100110011
END
diff expected told
