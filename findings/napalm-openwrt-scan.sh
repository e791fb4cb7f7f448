#!/bin/sh
# napalm-openwrt 0.7.0 (PyPI), which reads routers with OpenWrt for NAPALM, tells wrong channels of a scan
# (get_channel_scan in wireless_mixin.py). It numbers the channels of the 6 GHz band one too high: by IEEE 802.11 the
# centre is 5950 MHz and 5 MHz times the number, and it adds 1. Newer iw prints a frequency with its offset, 5180.0,
# which it does not take: the frequency is 0, so every network is in the 2.4 GHz band. And it expects "channel width: 80
# MHz" where iw prints "channel width: 1 (80 MHz)", so the width is 0. A survey for a free channel finds one band full
# and the others empty. Nothing is said.
#
# Seen: 5955 MHz (channel 1) 2, 6135 MHz (channel 37) 38; 5180 MHz, 80 MHz wide: channel 36, 5GHz, width 0; printed as
# 5180.0: 0 MHz, channel 36, 2.4GHz; 6135.0: 0 MHz, channel 0, 2.4GHz.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check napalm-openwrt==0.7.0
cat >run.py <<'END'
import inspect

from napalm_openwrt import wireless_mixin

INTERFACES = """phy#0
\tInterface wlan0
\t\tifindex 5
\t\ttype AP
"""
# As iw prints it: HT and VHT operation are only there up to 5 GHz.
OPERATION = """\tHT operation:
\t\t * primary channel: 36
\t\t * secondary channel offset: above
\t\t * STA channel width: any
\tVHT operation:
\t\t * channel width: 1 (80 MHz)
\t\t * center freq segment 1: 42
"""
NETWORKS = {"5955": "", "6135": "", "5180": OPERATION, "5180.0": OPERATION, "6135.0": ""}


class Router(next(kind for _, kind in inspect.getmembers(wireless_mixin, inspect.isclass)
                  if hasattr(kind, "get_channel_scan"))):
    def _send_command(self, command):
        if "scan" not in command:
            return INTERFACES
        return "".join(
            f"BSS 02:00:00:00:00:0{index}(on wlan0)\n\tfreq: {frequency}\n\tsignal: -60.00 dBm\n\tSSID: {frequency}\n"
            + operation for index, (frequency, operation) in enumerate(NETWORKS.items()))


for network in Router().get_channel_scan()["wlan0"]:
    told = "{frequency} MHz, channel {channel}, {band}, width {channel_width} MHz".format(**network)
    print(f"{network['ssid']}: {told}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
5955: 5955 MHz, channel 2, 6GHz, width 0 MHz
6135: 6135 MHz, channel 38, 6GHz, width 0 MHz
5180: 5180 MHz, channel 36, 5GHz, width 0 MHz
5180.0: 0 MHz, channel 36, 2.4GHz, width 0 MHz
6135.0: 0 MHz, channel 0, 2.4GHz, width 0 MHz
END
diff expected told
