#!/bin/sh
# The receiver of xmodem 0.5.0 (PyPI), files over a serial line or radio modem, rejects each block that does not have
# the number it waits for (recv in __init__.py). Where an acknowledgement is lost the sender repeats the block before.
# The receiver answers NAK to it as if it were broken, the sender repeats it again, and after 16 times both give up. So
# one lost byte ends a transfer, though the block arrived and was written. The caller gets None and False, the causes
# are in the log. A lost or damaged block does no harm. By Christensen's description of the protocol (1982; in
# Forsberg's XMODEM/YMODEM Protocol Reference, 1988) a repeat of the block before only tells that the ACK was lost, and
# is acknowledged and dropped. yesterwind-xyzmodem 0.1.2 (PyPI) does so, and by its source ymodem 1.5.3.
#
# Seen, 20 blocks: a block lost, all 2560 bytes arrive; the third ACK lost, None after 16 NAKs, 384 bytes written;
# yesterwind-xyzmodem receiving from the same sender, all 2560.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check xmodem==0.5.0 yesterwind-xyzmodem==0.1.2
cat >run.py <<'END'
import asyncio
import io
import logging
import queue
import threading
import time

from xmodem import XMODEM
from yesterwind_xyzmodem import xmodem as other

SCALE = 20  # times shorter than the packages' seconds
DATA = bytes(range(1, 129)) * 20
logging.disable(logging.CRITICAL)


class Line:
    """One direction of a serial line, which loses one of the writes."""

    def __init__(self, lost=None):
        self.lost, self.writes, self.naks = lost, 0, 0
        self.bytes = queue.Queue()

    def write(self, data, timeout=1):
        self.writes += 1
        self.naks += data == b"\x15"
        if self.writes != self.lost:
            for byte in bytes(data):
                self.bytes.put(byte)
        return len(data)

    def read(self, size, timeout=1):
        read, end = b"", time.monotonic() + timeout / SCALE
        while len(read) < size:
            try:
                read += bytes([self.bytes.get(timeout=max(0, end - time.monotonic()))])
            except queue.Empty:
                break
        return read or None


class Transport:
    """The line as yesterwind-xyzmodem wants it."""

    def __init__(self, line_in, line_out):
        self.line_in, self.line_out = line_in, line_out

    async def write(self, data):
        self.line_out.write(data)

    async def read_with_timeout(self, size, timeout):
        read = await asyncio.to_thread(self.line_in.read, size, timeout)
        if read is None or len(read) < size:
            raise asyncio.TimeoutError
        return read

    async def read_byte_with_timeout(self, timeout):
        return (await self.read_with_timeout(1, timeout))[0]


def transfer(name, receive, lost_block=None, lost_answer=None):
    there, back = Line(lost_block), Line(lost_answer)
    written, results = io.BytesIO(), {}
    receiver = threading.Thread(target=lambda: results.update(received=receive(there, back, written)))
    receiver.start()
    results["sent"] = XMODEM(back.read, there.write).send(io.BytesIO(DATA), quiet=True, timeout=5)
    receiver.join()
    told = results["sent"], results["received"], len(written.getvalue()), back.naks
    assert DATA.startswith(written.getvalue())
    print(f"{name}: send {told[0]}, recv {told[1]}, {told[2]} of {len(DATA)} bytes written, {told[3]} NAKs")
    return told


def by_xmodem(there, back, written):
    return XMODEM(there.read, back.write).recv(written, quiet=True, timeout=20)


def by_other(there, back, written):
    receiver = other.XModem(Transport(there, back), timeout=20)
    return asyncio.run(receiver.receive(written))


block = transfer("a block lost", by_xmodem, lost_block=3)
# The first answer is the C that asks for the file.
ack = transfer("the third ACK lost", by_xmodem, lost_answer=4)
right = transfer("the third ACK lost, yesterwind-xyzmodem", by_other, lost_answer=4)
good = block[:3] == (True, 2560, 2560) and right[::2] == (True, 2560)
raise SystemExit(not good or ack[:3] != (False, None, 384) or ack[3] < 16)
END
env/bin/python run.py
