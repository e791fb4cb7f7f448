#!/bin/sh
# pyroute2 0.9.7 reads the window scales of a connection (sock_diag's tcp_info) and gives the one that
# this host applies to the peer's window for both: tcpi_rcv_wscale is the low half of the byte again,
# not the high one. Whoever computes advertised windows from it is wrong wherever the two ends differ.
# `struct tcp_info` in Linux's include/uapi/linux/tcp.h has snd_wscale in the low four bits of byte 6
# and rcv_wscale in the high four.
#
# Seen, with a listener whose buffer is smaller than the client's: kernel (5, 10) or the like,
# pyroute2 (5, 5).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet pyroute2==0.9.7
cat >"$dir/run.py" <<'END'
import socket
import sys

from pyroute2 import DiagSocket

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
listener.bind(("127.0.0.1", 0))
listener.listen()
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
byte = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[6]
kernel = (byte & 15, byte >> 4)
if kernel[0] == kernel[1]:
    sys.exit(f"both ends chose the scale {kernel[0]}: nothing to see here")
with DiagSocket() as diag:
    diag.bind()
    port = client.getsockname()[1]
    found = [
        message.get_attr("INET_DIAG_INFO")
        for message in diag.get_sock_stats(family=socket.AF_INET, extensions=0xFF)
        if message["idiag_sport"] == port
    ]
told = (found[0]["tcpi_snd_wscale"], found[0]["tcpi_rcv_wscale"])
print(f"kernel {kernel} pyroute2 {told}")
sys.exit(told != (kernel[0], kernel[0]))
END
"$dir/venv/bin/python" "$dir/run.py"
