#!/bin/sh
# The ZMODEM receiver of yesterwind-xyzmodem 0.1.2 (PyPI), files over a serial line or radio modem, resumes each file
# that exists already (receive in zmodem.py): it asks for the bytes behind the size of the one on disk, and appends
# them, whatever the sender wants. So a log or a reading that is fetched again under its name, and has become longer, is
# the head of the old file with the tail of the new one. The sender returns the bytes it sent, the receiver the path,
# and both end well. Its documentation says nothing of resuming. By Forsberg's ZMODEM protocol (1988, 11.3, ZFILE) a
# transfer is resumed where the sender sets ZCRESUM in ZF0, and this one sets none; otherwise it begins at 0.
#
# Seen, a file of 5000 bytes B fetched onto one of 3000 bytes A: 3000 A and 2000 B; without an old file 5000 B.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check yesterwind-xyzmodem==0.1.2
cat >run.py <<'END'
import asyncio
import io
import pathlib

from yesterwind_xyzmodem.zmodem import ZModem

NEW = b"B" * 5000


class Line:
    """Both directions of a serial line without errors, as one end sees it."""

    def __init__(self, there, back):
        self.there, self.back = there, back

    async def write(self, data):
        for byte in data:
            self.there.put_nowait(byte)

    async def read_byte_with_timeout(self, timeout):
        return await asyncio.wait_for(self.back.get(), timeout)


async def fetch(name, old):
    """Numbers of As and Bs in the file received onto this old one, if any."""
    folder = pathlib.Path(name)
    folder.mkdir()
    if old:
        (folder / "log").write_bytes(old)
    one, other = asyncio.Queue(), asyncio.Queue()
    sender, receiver = ZModem(Line(one, other), timeout=5), ZModem(Line(other, one), timeout=5)
    sent, received = await asyncio.gather(
        sender.send([("log", io.BytesIO(NEW), len(NEW))]), receiver.receive(str(folder))
    )
    data = (folder / "log").read_bytes()
    told = data.count(b"A"), data.count(b"B")
    assert data == b"A" * told[0] + b"B" * told[1]
    print(f"{name}: sent {sent}, received {received}: {told[0]} bytes A, {told[1]} bytes B")
    return told


async def main():
    told = [await fetch("new", None), await fetch("again", b"A" * 3000)]
    raise SystemExit(told != [(0, 5000), (3000, 2000)])


asyncio.run(main())
END
env/bin/python run.py
