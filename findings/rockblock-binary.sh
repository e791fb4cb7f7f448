#!/bin/sh
# adafruit-circuitpython-rockblock 1.4.2 (PyPI), for an Iridium modem at a microcontroller or a Linux board, cuts what
# it receives at ends of line. data_in reads the reply to AT+SBDRB, a length of two bytes, the message in binary and a
# checksum of two (Iridium's ISU AT Command Reference), by lines, takes the second and leaves out two bytes at either
# end. So a message with a 10 or 13 in it ends there, less two bytes, and one of 10 or 13 bytes is lost, as its length
# is such a byte; of random messages of 50 bytes a third. Neither length nor checksum, which tell, is looked at.
# system_time and geolocation, "always expressed in UTC", count from Iridium's epoch as if that were local time: where
# there is summer time, they are an hour off in winter.
#
# Seen, 1 2 3 4 5 6: right; 1 2 3 13 5 6: 1; ten bytes: none; 340 of 1000 random messages of 50 bytes damaged, without
# an exception as a rule. 2024-01-15 12:00:00: 11:00:00 in Berlin; in July and with TZ=UTC right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps adafruit-circuitpython-rockblock==1.4.2
cat >run.py <<'END'
import io
import os
import random
import time
from datetime import datetime, timezone

from adafruit_rockblock import RockBlock


class Modem:
    message, ticks = b"", 0

    def reset_input_buffer(self):
        self.reply = io.BytesIO()

    def write(self, command):
        replies = {
            b"AT+SBDSX\r": b"\r\n+SBDSX: 0, 0, 1, 0, 0, 0\r\n\r\nOK\r\n",
            b"AT+SBDRB\r": len(self.message).to_bytes(2, "big")
            + self.message
            + (sum(self.message) & 0xFFFF).to_bytes(2, "big")
            + b"\r\nOK\r\n",
            b"AT-MSSTM\r": b"\r\n-MSSTM: %x\r\n\r\nOK\r\n" % self.ticks,
        }
        self.reply = io.BytesIO(command + replies.get(command, b"\r\nOK\r\n"))

    def readline(self):
        return self.reply.readline()


modem = Modem()
rockblock = RockBlock(modem)


def received(message: bytes):
    modem.message = bytes(message)
    try:
        return rockblock.data_in
    except IndexError as error:
        return error


for message, told in (
    (bytes([1, 2, 3, 4, 5, 6]), bytes([1, 2, 3, 4, 5, 6])),
    (bytes([1, 2, 3, 13, 5, 6]), bytes([1])),
    (bytes(range(20, 30)), b""),
):
    print(list(message), received(message))
    assert received(message) == told
generator = random.Random(1)
messages = [generator.randbytes(50) for _ in range(1000)]
damaged = sum(received(message) != message for message in messages)
print("damaged", damaged)
assert 250 < damaged < 450
for zone, hours in ("Europe/Berlin", (11, 12)), ("UTC", (12, 12)):
    os.environ["TZ"] = zone
    time.tzset()
    for month, hour in zip((1, 7), hours):
        now = datetime(2024, month, 15, 12, tzinfo=timezone.utc)
        modem.ticks = round((now - datetime(2014, 5, 11, 14, 23, 55, tzinfo=timezone.utc)).total_seconds() / 0.09)
        print(zone, now, time.strftime("%F %T", rockblock.system_time))
        assert rockblock.system_time.tm_hour == hour
END
env/bin/python run.py
