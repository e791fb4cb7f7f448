#!/bin/sh
# access-points 0.4.73 (PyPI), which scans for WiFi on several systems and from whose scans the package whereami learns
# places, tells the quality of an access point in four scales (__init__.py). From NetworkManager and Windows it is a
# percentage. Of iwlist, for Linux without NetworkManager, it keeps the 53 of "Quality=53/70" and drops the 70: -57 dBm
# is 53, and the best there is 70. On a Mac and in Termux it is 2 (dBm + 100) without a limit, so -40 dBm is 120 and
# -110 is -20; Windows, whose scale this is, ends at 0 and 100 (Microsoft's wlanSignalQuality). Nothing is said; it is
# to give "access point information and signal quality". So a place is another one once NetworkManager is installed or
# the scan is the phone's, and no threshold fits two systems.
#
# Seen, -57, -40 and -110 dBm: iwlist 53 70 0, Termux 86 120 -20. The percentages of NetworkManager stay as they are.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check access-points==0.4.73
cat >run.py <<'END'
import json

from access_points import IwlistWifiScanner, NetworkManagerWifiScanner, TermuxWifiScanner

LEVELS = -57, -40, -110

# As iwlist writes what drivers of cfg80211 tell: the level from -110 to -40 dBm, as 0 to 70.
iwlist = "wlan0     Scan completed :\n" + "".join(
    f"""          Cell {number:02} - Address: 02:00:00:00:00:{number:02}
                    Channel:6
                    Frequency:2.437 GHz (Channel 6)
                    Quality={level + 110}/70  Signal level={level} dBm
                    Encryption key:on
                    ESSID:"place"
"""
    for number, level in enumerate(LEVELS, 1)
)
termux = json.dumps([{"ssid": "place", "bssid": f"02:00:00:00:00:0{-level % 10}", "rssi": level} for level in LEVELS])
nmcli = "".join(rf"place:02\:00\:00\:00\:00\:0{part % 7}:{part}:WPA2" + "\n" for part in (72, 100, 0))
for scanner, text in (
    (IwlistWifiScanner("wlan0"), iwlist),
    (TermuxWifiScanner(), termux),
    (NetworkManagerWifiScanner(), nmcli),
):
    name = type(scanner).__name__.removesuffix("WifiScanner")
    print(f"{name}: {' '.join(str(point.quality) for point in scanner.parse_output(text))}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
Iwlist: 53 70 0
Termux: 86 120 -20
NetworkManager: 72 100 0
END
diff expected told
