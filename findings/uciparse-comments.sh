#!/bin/sh
# uciparse 0.3.0 (PyPI, the newest for Python 3.11) reads the configuration of OpenWrt, such as its wireless settings,
# and writes it in one form "without changing the semantics of the file" (uci.py). By its own specification there, a "#"
# outside of a string begins a comment. If a comment after a value has the same quote in it, the value goes on until the
# last of them: the regular expression is to exclude the opening quote from the value by [^\\\10], but in brackets \10
# is no reference but the character with the octal number 10. What it writes has the comment within the value, so the
# router gets a channel or a mode that does not exist. What `uci export` writes for a value with a quote, 'Joe'\''s', it
# rejects, since it allows no backslash. Then "an error will be returned": it is printed, but the exit status is 0, and
# a script that goes by it replaces the configuration with an empty file.
#
# Seen, option channel '36'  # was '44': "36'  # was '44" is the value; option htmode "VHT80"  # not "HT40": likewise;
# option country 'DE'  # don't change: DE. A file that it rejects: exit status 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check uciparse==0.3.0
cat >wireless <<'END'
config wifi-device 'radio0'
	option channel '36'  # was '44'
	option htmode "VHT80"  # not "HT40"
	option country 'DE'  # don't change
END
env/bin/uciparse wireless | tee told
cat >expected <<'END'

config wifi-device radio0
    option channel "36'  # was '44"
    option htmode 'VHT80"  # not "HT40'
    option country 'DE'  # don't change
END
diff expected told
cat >exported <<'END'
config wifi-iface 'home'
	option ssid 'Joe'\''s'
END
env/bin/uciparse exported 2>&1 >out | tee told
env/bin/uciparse exported 2>/dev/null
echo "exit status: $?"
grep -q 'Error on line 2' told
