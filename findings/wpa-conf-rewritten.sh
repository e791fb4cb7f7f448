#!/bin/sh
# Two packages of PyPI read wpa_supplicant.conf, so that programs can change it, and write it again; what they write is
# another configuration where nothing was changed. wpasupplicantconf 0.1 keeps networks by their name, so of two blocks
# with one SSID, as to prefer the 5 GHz of a campus by scan_freq and priority, the last is left. An SSID in hex, which
# has no quotation marks, it writes between them (write), and that is another SSID. chibi-wpa-supplicant 1.0.0 does so
# too (inner_to_string in snippets.py), and with a key in hex, whose 64 digits then are a passphrase. From all other
# values it takes the quotation marks, so an identity or password is read as hex. Neither package says anything;
# wpa_supplicant 2.10 refuses the file of the latter. By its example (wpa_supplicant.conf) an SSID is text in quotation
# marks or hex, and a psk 64 digits or a passphrase of 8 to 63 characters.
#
# Seen: of two blocks "campus" wpasupplicantconf leaves the one of 2412 MHz and priority 1. ssid=6c6162 ("lab") becomes
# ssid="6c6162" in both. In chibi's file psk="0123...", identity=station and password=passphrase.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check wpasupplicantconf==0.1 chibi-wpa-supplicant==1.0.0
cat >wpa_supplicant.conf <<'END'
network={
	ssid="campus"
	scan_freq=5180
	key_mgmt=NONE
	priority=10
}
network={
	ssid="campus"
	scan_freq=2412
	key_mgmt=NONE
	priority=1
}
network={
	ssid=6c6162
	psk=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
}
network={
	ssid="office"
	key_mgmt=WPA-EAP
	identity="station"
	password="passphrase"
}
END
cat >run.py <<'END'
import io

from chibi_wpa_supplicant.snippets import from_string, to_string
from wpasupplicantconf import WpaSupplicantConf

with open("wpa_supplicant.conf") as file:
    text = file.read()


def lines(written):
    return [line.strip() for line in written.splitlines() if line.strip() not in ("", "}")]


out = io.StringIO()
WpaSupplicantConf(text.splitlines()).write(out)
results = {"wpasupplicantconf": out.getvalue(), "chibi-wpa-supplicant": to_string(from_string(text))}
for name, written in results.items():
    print(f"{name}:")
    before, after = lines(text), lines(written)
    for line in sorted(set(before + after)):
        lost = before.count(line) - after.count(line)
        if lost:
            print("  ", "-" if lost > 0 else "+", line)
END
env/bin/python run.py | tee told
cat >expected <<'END'
wpasupplicantconf:
   - key_mgmt=NONE
   - network={
   - priority=10
   - scan_freq=5180
   + ssid="6c6162"
   - ssid="campus"
   - ssid=6c6162
chibi-wpa-supplicant:
   - identity="station"
   + identity=station
   - password="passphrase"
   + password=passphrase
   + psk="0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
   - psk=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
   + ssid="6c6162"
   - ssid=6c6162
END
diff expected told
