#!/bin/sh
# A receiver with two antennas writes into radiotap the signal of the frame first, then, after further
# words of "present", the signal and the number of each antenna (so do Linux's mac80211, net/mac80211/
# rx.c, and iwlwifi). tshark 4.0.17 takes the last of them for the frame's: wlan_radio.signal_dbm is
# that of the last antenna, here 30 dB below. The Rust crate radiotap 1.3.0 does the same
# (`antenna_signal`); scapy 2.6.1 has the frame's. What helps: the first value of radiotap.dbm_antsignal.
#
# Seen: tshark -50,-51,-80 in radiotap, -80 in wlan_radio; scapy -50.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet scapy==2.6.1
version=4.0.17-0+deb12u3 # of Debian 12
apt-get download --quiet tshark=$version libwireshark16=$version libwiretap13=$version \
    libwsutil14=$version libbrotli1 libc-ares2 libglib2.0-0 libicu72 libk5crypto3 libkrb5-3 \
    libkrb5support0 libkeyutils1 liblua5.2-0 libnghttp2-14 libpcap0.8 libdbus-1-3 libpcre2-8-0 \
    libsmi2ldbl libsnappy1v5 libxml2 >log 2>&1
for package in ./*.deb; do dpkg -x "$package" .; done
cat >run.py <<'END'
import struct
import subprocess
import sys

from scapy.layers.dot11 import RadioTap

TSFT, FLAGS, RATE, CHANNEL, SIGNAL, ANTENNA, RX_FLAGS = (1 << bit for bit in (0, 1, 2, 3, 5, 11, 14))
MORE = 1 << 29 | 1 << 31  # another word of radiotap's own fields follows

words = [TSFT | FLAGS | RATE | CHANNEL | SIGNAL | RX_FLAGS | MORE, SIGNAL | ANTENNA | MORE, SIGNAL | ANTENNA]
frame = struct.pack("<QBBHHbxH", 1_000_000, 0, 12, 5180, 0x140, -50, 0)
antennas = struct.pack("<bBbB", -51, 0, -80, 1)
fields = struct.pack("<3I", *words) + frame + antennas
ack = bytes.fromhex("d4000000" "020000000001")
packet = struct.pack("<BBH", 0, 0, 4 + len(fields)) + fields + ack

with open("ack.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 127))
    file.write(struct.pack("<IIII", 1_700_000_000, 0, len(packet), len(packet)) + packet)
names = ("radiotap.dbm_antsignal", "radiotap.antenna", "wlan_radio.signal_dbm", "wlan.ra")
fields_asked = [word for name in names for word in ("-e", name)]
command = ["usr/bin/tshark", "-r", "ack.pcap", "-T", "fields", *fields_asked]
told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split()
by_scapy = RadioTap(packet).dBm_AntSignal
print(f"tshark {told} scapy {by_scapy}")
sys.exit((told[:3], by_scapy) != (["-50,-51,-80", "0,1", "-80"], -50))
END
LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu" WIRESHARK_CONFIG_DIR="$dir" \
    venv/bin/python run.py 2>>log || { tail -3 log >&2; exit 1; }
