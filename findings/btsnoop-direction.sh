#!/bin/sh
# btsnoop-parser 0.10.0 (PyPI), which reads what Android and BlueZ record of Bluetooth and converts it for Wireshark,
# changes the time, the direction and the length. It counts the microseconds of a record from the year 1
# (BTSNOOP_EPOCH_DELTA_US in core.py). Android, BlueZ and Wireshark take 0x00dcddb30f2f8000 for 1970, 378 days more. It
# takes these days for a fault of some Androids, and removes them only where a record would be later than its file or
# now. So of a capture that was copied or downloaded a year after it was made, each time is 378 days late. In a pcap the
# direction is in network byte order (LINKTYPE_BLUETOOTH_HCI_H4_WITH_PHDR, tcpdump.org). It writes the other one
# (write_pcap in pcap.py), so all packets are sent and none is received: who looks for the time from a request to its
# answer finds no answer. And each packet is marked as cut by a byte. Nothing is said; the directions are right where it
# prints them itself.
#
# Seen, two packets sent and two received on 2024-01-01: read as 2025-01-13; converted, all four sent, 4 of 5 bytes and
# so on. tshark 4.0.17 reads the capture itself right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check btsnoop-parser==0.10.0
version=4.0.17-0+deb12u3 # of Debian 12
apt-get download --quiet tshark=$version libwireshark16=$version libwiretap13=$version libwsutil14=$version \
    libbrotli1 libc-ares2 libglib2.0-0 libicu72 libk5crypto3 libkrb5-3 libkrb5support0 libkeyutils1 liblua5.2-0 \
    libnghttp2-14 libpcap0.8 libdbus-1-3 libpcre2-8-0 libsmi2ldbl libsnappy1v5 libxml2 \
    >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
cat >write.py <<'END'
import struct

SENT, RECEIVED = 0, 1
START, SPACING_US = 1_704_067_200, 30_000  # 2024-01-01
UNIX_EPOCH = 0x00DCDDB30F2F8000
HCI_UART = 1002
PACKETS = [
    (SENT, "01 030c 00"),  # reset
    (RECEIVED, "04 0e 04 01 030c 00"),  # is complete
    (SENT, "02 4020 0700 0300 0400 0a 0400"),  # read an attribute
    (RECEIVED, "02 4020 0700 0300 0400 0b 0400"),  # it is empty
]
with open("capture.log", "wb") as file:
    file.write(b"btsnoop\0" + struct.pack(">II", 1, HCI_UART))
    for index, (direction, octets) in enumerate(PACKETS):
        packet, time = bytes.fromhex(octets), UNIX_EPOCH + START * 1_000_000 + index * SPACING_US
        file.write(struct.pack(">IIIIq", len(packet), len(packet), direction, 0, time) + packet)
END
cat >convert.py <<'END'
from btsnoop_parser import parse_btsnoop_file
from btsnoop_parser.pcap import write_pcap

records = list(parse_btsnoop_file("capture.log"))
for record in records:
    print(f"read: {record['timestamp']:%Y-%m-%d}, {record['direction']}")
write_pcap(records, "converted.pcap")
END
tell() {
    LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu:lib/x86_64-linux-gnu usr/bin/tshark -r "$1" -T fields -E separator=' ' \
        -e frame.time_epoch -e frame.p2p_dir -e frame.len -e frame.cap_len 2>log |
        while read -r time direction length captured; do
        echo "$2: $(date --utc --date="@$time" +%F), direction $direction, $captured of $length bytes"
    done
}
python3 write.py
env/bin/python convert.py >read
{ tell capture.log tshark; cat read; tell converted.pcap converted; } | tee told
cat >expected <<'END'
tshark: 2024-01-01, direction 0, 4 of 4 bytes
tshark: 2024-01-01, direction 1, 7 of 7 bytes
tshark: 2024-01-01, direction 0, 12 of 12 bytes
tshark: 2024-01-01, direction 1, 12 of 12 bytes
read: 2025-01-13, TX
read: 2025-01-13, RX
read: 2025-01-13, TX
read: 2025-01-13, RX
converted: 2025-01-13, direction 0, 4 of 5 bytes
converted: 2025-01-13, direction 0, 7 of 8 bytes
converted: 2025-01-13, direction 0, 12 of 13 bytes
converted: 2025-01-13, direction 0, 12 of 13 bytes
END
diff expected told
