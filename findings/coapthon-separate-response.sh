#!/bin/sh
# CoAPthon3 1.0.2 (PyPI), CoAP for Python, has a client (HelperClient) that goes by the message ID where CoAP goes by
# the token (RFC 7252, 5.3.2). A server that needs longer, as a sensor or a proxy of a radio network, acknowledges a
# request at once and sends the response in a message of its own with an ID of its own (5.2.2). The client
# acknowledges that and drops it (send_request in helperclient.py), so that request never ends, or not before the
# timeout given. Of responses that are not confirmed it takes any. So where one comes after its timeout, it is the
# answer to the next request, and each answer from then on to the one before: a wrong value with a right code, for as
# long as the client lives. And of the four times that a request is to be sent again (MAX_RETRANSMIT; 4.2) it does
# three, and waits as long as for five sendings all the same (_retransmit in client/coap.py). Nothing is said.
#
# Seen. A response in the acknowledgement arrives, a separate one is acknowledged, and get ends with None at its
# timeout. First response 1 s late: get_non gives None, then "first" for the second request and "second" for the
# third. No answer: 4 datagrams, right is 5.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check coapthon3==1.0.2
cat >run.py <<'END'
import logging
import os
import socket
import threading
import time

from coapthon import defines
from coapthon.client.helperclient import HelperClient

logging.disable(logging.CRITICAL)
CONFIRMABLE, NON_CONFIRMABLE, ACKNOWLEDGEMENT = range(3)
EMPTY, CONTENT = 0, 0x45


def message(kind, code, number, token=b"", payload=b""):
    head = bytes([0x40 | kind << 4 | len(token), code]) + number.to_bytes(2, "big") + token
    return head + (b"\xff" + payload if payload else b"")


def start(answer):
    """A client, and the messages that its server gets; answer(send, number, token, count) answers a request."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    got = []

    def run():
        while True:
            data, peer = server.recvfrom(2000)
            got.append(data)
            if data[1] != EMPTY:
                number, token = int.from_bytes(data[2:4], "big"), data[4 : 4 + (data[0] & 0xF)]
                answer(lambda *parts: server.sendto(message(*parts), peer), number, token, len(got))

    threading.Thread(target=run, daemon=True).start()
    return HelperClient(server.getsockname()), got


def payload(response):
    return response and response.payload


def piggybacked(send, number, token, count):
    send(ACKNOWLEDGEMENT, CONTENT, number, token, b"21.5")


def separate(send, number, token, count):
    send(ACKNOWLEDGEMENT, EMPTY, number)
    time.sleep(0.2)
    send(CONFIRMABLE, CONTENT, 40_000, token, b"21.5")


def late(send, number, token, count):
    name = [b"first", b"second", b"third"][count - 1]
    delay = 2 if count == 1 else 0.2
    threading.Timer(delay, send, (NON_CONFIRMABLE, CONTENT, 40_000 + count, token, name)).start()


told = []
for answer in piggybacked, separate:
    client, got = start(answer)
    value = payload(client.get("temperature", timeout=4))
    acknowledged = any(data[0] >> 4 & 3 == ACKNOWLEDGEMENT for data in got)
    told.append((value, acknowledged))
    print(f"{answer.__name__}: {value}, acknowledged: {acknowledged}")

client, got = start(late)
values = [payload(client.get_non("temperature", timeout=1))]
time.sleep(2)
values += [payload(client.get_non("temperature", timeout=4)) for _ in range(2)]
print(f"late: {values}")

defines.ACK_TIMEOUT = 0.1
client, got = start(lambda *_: None)
begin = time.monotonic()
value = client.get("temperature")
print(f"no answer: {value} after {time.monotonic() - begin:.1f} s, {len(got)} datagrams")
right = told == [("21.5", False), (None, True)] and values == [None, "first", "second"] and len(got) == 4
os._exit(not right)
END
env/bin/python -u run.py
