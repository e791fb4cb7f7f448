#!/bin/sh
# hdlcontroller 0.5.2 (PyPI), HDLC with acknowledgements over a serial line or radio modem, has no number of the frame
# that comes next. Its receiver hands over each data frame that arrives, and acknowledges it (Receiver.run in
# hdlcontroller.py). So where an acknowledgement is lost, the frame that is sent again is handed over twice; where a
# frame is lost, those behind it come first, up to a window of 3 by default. What get_data gives has no number, so the
# caller cannot tell: a command is carried out twice, a file is wrong. Nothing is said. By HDLC (ISO/IEC 13239) a
# receiver takes only the frame with the number V(R), the next in sequence, and N(R) acknowledges all before it.
#
# Seen, 6 frames: without loss, 0 1 2 3 4 5; the second acknowledgement lost, 0 1 2 3 4 5 1; the second frame lost,
# 0 2 3 4 5 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check hdlcontroller==0.5.2
cat >run.py <<'END'
import queue
import time

from hdlcontroller.hdlcontroller import HDLController

TIMEOUT = 0.5


class Line:
    """One direction of a serial line, on which one write is lost."""

    def __init__(self, lost):
        self.lost, self.writes, self.frames = lost, 0, queue.Queue()

    def write(self, frame):
        self.writes += 1
        if self.writes != self.lost:
            self.frames.put(frame)

    def read(self):
        try:
            return self.frames.get(timeout=0.01)
        except queue.Empty:
            return b""


def transfer(name, lost_frame=None, lost_acknowledgement=None):
    there, back = Line(lost_frame), Line(lost_acknowledgement)
    sender = HDLController(back.read, there.write, sending_timeout=TIMEOUT)
    receiver = HDLController(there.read, back.write)
    receiver.start()
    sender.start()
    for number in range(6):
        sender.send(b"%d" % number)
        # In the order of their numbers: each sender is a thread of its own.
        while there.writes <= number:
            time.sleep(0.01)
    received = []
    try:
        while True:
            received.append(receiver.frames_received.get(timeout=3 * TIMEOUT).decode())
    except queue.Empty:
        pass
    sender.stop()
    receiver.stop()
    print(f"{name}: {' '.join(received)}")
    return " ".join(received)


told = [
    transfer("no loss"),
    transfer("second acknowledgement lost", lost_acknowledgement=2),
    transfer("second frame lost", lost_frame=2),
]
raise SystemExit(told != ["0 1 2 3 4 5", "0 1 2 3 4 5 1", "0 2 3 4 5 1"])
END
timeout 60 env/bin/python run.py
