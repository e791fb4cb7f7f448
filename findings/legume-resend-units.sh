#!/bin/sh
# Legume 0.5 (PyPI), reliable messages over UDP for games, takes milliseconds for seconds when it sends again. It pings
# its peer every 2 s, notes the round trip in milliseconds (add_sample in Connection.update, connection.py) and waits
# that number of seconds before a message that was not acknowledged goes out again (_create_packet). So until the first
# answer a lost message is repeated after 0.3 s, its default; from then on, on a path of 100 ms, after 100 s. Nothing is
# said, and the connection stays, as the pings are answered. By its own comments a message is not sent again until twice
# the round trip, in "ms", has passed, and the default is high so as not to send too much before there is a round trip.
#
# Seen, a round trip that it measures as 130 ms, with the first copy of a message lost: sent before the first answer it
# arrives after 0.37 s, sent 5 s later after 130 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check Legume==0.5 2>log || { cat log >&2; exit 2; }
cat >run.py <<'END'
import logging
import socket
import struct

import legume
from legume import messages, timing

logging.disable(logging.CRITICAL)
STEP, ONE_WAY = 0.005, 0.05
timing.test_mode(True)  # its own clock for tests: time is what it is told
now = 0.0


class Number(messages.BaseMessage):
    MessageTypeID = messages.BASE_MESSAGETYPEID_USER
    MessageValues = {"number": "int"}


messages.message_factory.add(Number)


def udp_socket():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    made.setblocking(False)
    return made


relay, probe = udp_socket(), udp_socket()
server_address = probe.getsockname()
probe.close()
arrived, under_way, lost = {}, [], set()
client_address = None


def carry():
    """Passes datagrams on, each after the delay, without those to be lost."""
    global client_address
    while True:
        try:
            data, source = relay.recvfrom(65_536)
        except BlockingIOError:
            break
        if source != server_address:
            client_address = source
        marks = [number for number in lost if struct.pack("!i", number) in data]
        lost.difference_update(marks)
        if not marks:
            under_way.append((now + ONE_WAY, data, client_address if source == server_address else server_address))
    while under_way and under_way[0][0] <= now:
        _, data, target = under_way.pop(0)
        relay.sendto(data, target)


def run(seconds):
    global now
    end = now + seconds
    while now < end:
        now += STEP
        timing.set_test_time(now)
        client.update()
        server.update()
        carry()


def send(number):
    lost.add(number)
    message = Number()
    message.number.value = number
    client.send_reliable_message(message)
    return now


server, client = legume.Server(), legume.Client()
server.OnMessage += lambda peer, message: arrived.setdefault(message.number.value, now)
server.listen(server_address)
client.connect(relay.getsockname())
run(1)
first = send(0x12345601)
run(5)
second = send(0x12345602)
run(150)
print(f"lost before an answer to a ping: arrives after {arrived[0x12345601] - first:.2f} s")
print(f"lost after it: {arrived[0x12345602] - second:.0f} s; connected: {client.connected}")
print(f"round trip as measured: {client._connection.latency:.0f} ms")
END
env/bin/python run.py | tee told
cat >expected <<'END'
lost before an answer to a ping: arrives after 0.37 s
lost after it: 130 s; connected: True
round trip as measured: 130 ms
END
diff expected told
