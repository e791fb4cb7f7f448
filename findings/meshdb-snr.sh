#!/bin/sh
# meshdb 0.2.0 (PyPI), a database of what a node of Meshtastic (a mesh of LoRa radios) hears, keeps no signal-to-noise
# ratio of a node that is attached in the usual ways, by serial line or TCP. It takes the ratio from the key snr of a
# packet (_packet_meta_values and handle_packet in db_handler.py). In the packets of meshtastic 2.7.0 (PyPI), which it
# requires and which reads those nodes, the key is rxSnr, beside the rxRssi that it keeps. Only for a virtual node over
# UDP it renames the field itself (normalize_packet in network.py). The column is there and empty; nothing is said. LoRa
# receives below the noise, so this ratio, not the signal strength, shows how far a link is from failing. And the ratio
# of a node stays what it was when the list of nodes was imported.
#
# Seen, one packet with -12.5 dB and -120 dBm: UDP -12.5 and -120, serial and TCP None and -120; node -12.5 and None.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check meshdb==0.2.0 meshtastic==2.7.0
cat >run.py <<'END'
import os
import sqlite3

import meshdb
from meshtastic.mesh_interface import MeshInterface
from meshtastic.protobuf import mesh_pb2, portnums_pb2

OWNER, SENDER, EVERYONE = 1, 2, 0xFFFFFFFF
packet = mesh_pb2.MeshPacket(to=EVERYONE, id=3, rx_time=1_700_000_000, rx_snr=-12.5, rx_rssi=-120, hop_limit=3)
setattr(packet, "from", SENDER)
packet.decoded.portnum = portnums_pb2.TEXT_MESSAGE_APP
packet.decoded.payload = b"text"

# As the library reads it from a node, without one.
interface = MeshInterface(noProto=True)
interface.nodes, interface.nodesByNum = {}, {}
interface._handlePacketFromRadio(packet)
from_node = interface.nodesByNum[SENDER]["lastReceived"]

for transport, received in {"udp": packet, "tcp": from_node, "serial": from_node}.items():
    directory = f"kept-{transport}"
    os.mkdir(directory)
    meshdb.set_default_db_path(directory)
    meshdb.handle_packet(meshdb.normalize_packet(received, transport), node_database_number=OWNER)
    database = sqlite3.connect(f"{directory}/{OWNER}.db")
    snr, rssi = database.execute(f'SELECT rx_snr, rx_rssi FROM "{OWNER}_0_messages"').fetchone()
    (node_snr,) = database.execute(f'SELECT snr FROM "{OWNER}_nodedb"').fetchone()
    print(f"{transport}: packet {snr} dB, {rssi} dBm, node {node_snr} dB")
END
env/bin/python run.py | tee told
cat >expected <<'END'
udp: packet -12.5 dB, -120 dBm, node -12.5 dB
tcp: packet None dB, -120 dBm, node None dB
serial: packet None dB, -120 dBm, node None dB
END
diff expected told
