#!/bin/sh
# tcpick 0.2.1 (Debian 12) writes the streams of TCP connections in a capture to files (-wR). It drops a segment sent
# again only if the first one has been written, and that is when it is acknowledged, or next in line (addfr and
# flush_ack in fragments.c). But a segment is sent again because no acknowledgement came. So in a capture at the sender,
# where two segments in a row are lost, as a radio loses them, the second is in the file twice. A segment sent again in
# vain is too, after all that was under way. Of a segment that the capture lacks nothing is left, not even a gap: what
# follows moves up. Nothing is said, and tcpick ends with 0. By its manual "the flow is rebuilded, reordered and the
# duplicates are dropped", so files can be had "without data corruption (you can see this with md5sum)". By RFC 9293,
# 3.4, each octet has a sequence number, by which duplicates are told.
#
# Seen, six segments, A to F. B lost and sent again: ABCDEF, right. B and C lost and sent again: ABCCDEF. C sent again
# in vain: ABCDEFC. B captured late, and only once: ABCDEF, right. C not captured: ABDEF.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download --quiet tcpick=0.2.1-10 libpcap0.8 libdbus-1-3 >log 2>&1 || { cat log >&2; exit 2; }
for package in ./*.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
cat >capture.py <<'END'
import struct

SIZE, FIRST = 1000, 1001
CLIENT, SERVER = (bytes([10, 0, 0, 1]), 40_000), (bytes([10, 0, 0, 2]), 5001)
SYN, ACK = 2, 16


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return ~(total % 0xFFFF) & 0xFFFF


def packet(source, destination, sequence, acknowledged, flags, data=b""):
    (sender, port), (receiver, peer) = source, destination
    length = 20 + len(data)
    ports = struct.pack(">HHII", port, peer, sequence, acknowledged)
    pseudo = sender + receiver + struct.pack(">HH", 6, length)
    total = checksum(pseudo + ports + struct.pack(">BBHHH", 0x50, flags, 65_535, 0, 0) + data)
    tcp = ports + struct.pack(">BBHHH", 0x50, flags, 65_535, total, 0) + data
    header = struct.pack(">BBHHHBB", 0x45, 0, 20 + length, 0, 0x4000, 64, 6)
    total = checksum(header + sender + receiver)
    return bytes(12) + b"\x08\x00" + header + struct.pack(">H", total) + sender + receiver + tcp


def data(letter):
    offset = "ABCDEF".index(letter) * SIZE
    return packet(CLIENT, SERVER, FIRST + offset, 5001, ACK, letter.encode() * SIZE)


def acknowledge(letter):
    return packet(SERVER, CLIENT, 5001, FIRST + "ABCDEF".index(letter) * SIZE + SIZE, ACK)


def write(name, *packets):
    start = packet(CLIENT, SERVER, FIRST - 1, 0, SYN), packet(SERVER, CLIENT, 5000, FIRST, SYN | ACK)
    everything = [*start, packet(CLIENT, SERVER, FIRST, 5001, ACK), *packets, acknowledge("F")]
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for number, frame in enumerate(everything):
            file.write(struct.pack("<IIII", 1_700_000_000, number * 10_000, len(frame), len(frame)) + frame)


again = [acknowledge("A")] * 3
write("lost", *map(data, "ABCD"), *again, *map(data, "BEF"))
write("two lost", *map(data, "ABCD"), *again, *map(data, "BCEF"))
write("vain", *map(data, "ABCCDEF"))
write("late", *map(data, "ACDBEF"))
write("gap", *map(data, "ABDEF"))
END
cat >tell.py <<'END'
import itertools
import sys

with open(sys.argv[1], "rb") as file:
    runs = [(chr(byte), len(list(run))) for byte, run in itertools.groupby(file.read())]
print("".join(letter * (length // 1000) for letter, length in runs))
END
python3 capture.py
for name in lost 'two lost' vain late gap; do
    mkdir "$name.files"
    (cd "$name.files" && ../usr/sbin/tcpick -wR -r "../$name" >../log 2>&1)
    echo "$name: $(python3 tell.py "$name".files/*)"
done | tee told
cat >expected <<'END'
lost: ABCDEF
two lost: ABCCDEF
vain: ABCDEFC
late: ABCDEF
gap: ABDEF
END
diff expected told
