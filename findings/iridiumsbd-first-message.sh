#!/bin/sh
# iridiumsbd 0.0.8 (PyPI) receives the messages of Iridium's satellite modems from Iridium's gateway (DirectIP) and
# keeps them in the folder inbox of its data folder. The data folder has to exist, by default it is the current one, yet
# where there is no inbox, it makes both (save_isbd_msg in directip/server.py): os.mkdir raises, as the first is there,
# the connection ends, the message is neither kept nor acknowledged. So unless someone makes the inbox by hand no
# message arrives, again with each try of the gateway, and the same holds for the folder of damaged ones. The
# acknowledgement that it sends otherwise begins with the digit 1, 0x31, rather than the number of the protocol's
# revision, which the gateway's messages have there, 0x01; its own parser refuses it.
#
# Seen, a message with an empty data folder: no reply, nothing kept. With an inbox: kept, 31 00 04 05 00 01 01 in reply,
# which IridiumSBD() does not take; with 01 it does.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps iridiumsbd==0.0.8
mkdir data
cat >run.py <<'END'
import os
import socket
import struct
import threading

from iridiumSBD.directip.server import ThreadedDirectIPServer
from iridiumSBD.iridiumSBD import IridiumSBD

header = struct.pack(">cHI15sBHHI", b"\x01", 28, 7, b"300034012345670", 0, 1, 0, 1714560000)
payload = struct.pack(">cH", b"\x02", 5) + b"hello"
message = struct.pack(">cH", b"\x01", len(header + payload)) + header + payload
assert IridiumSBD(message).payload["data"] == b"hello"

server = ThreadedDirectIPServer(("127.0.0.1", 0), "data")
threading.Thread(target=server.serve_forever, daemon=True).start()


def send() -> bytes:
    with socket.create_connection(server.server_address) as link:
        link.sendall(message)
        return link.recv(100)


for kept in 0, 1:
    reply = send()
    files = [name for *_, names in os.walk("data") for name in names]
    print("inbox:", os.path.isdir("data/inbox"), "reply:", reply.hex(" "), "kept:", len(files))
    assert len(files) == kept and reply == kept * b"1\0\4\5\0\1\1"
    os.makedirs("data/inbox", exist_ok=True)

assert IridiumSBD(b"\x01" + reply[1:]).attributes["confirmation"]["status"] == 1
try:
    IridiumSBD(reply)
    raise SystemExit("taken")
except AssertionError as error:
    print("reply:", error)
END
env/bin/python run.py 2>errors || { cat errors; exit 1; }
grep FileExistsError errors
