#!/bin/sh
# open-ax25 0.1.0 (PyPI), the link layer of packet radio, never clears its count of retries (RC in connection.py) when a
# frame is acknowledged. Only a new connection does, or 30 s without a frame. So the retries of a whole transfer add up:
# at the eleventh lost frame the link ends, although each of the ten before was sent again after one poll and arrived. A
# long transfer over a radio path that loses frames never comes to its end. The error is "Link failure: T1 expired N2
# times".
# By AX.25 2.2, 6.4.11, N2 bounds the retries of one poll: when T1 runs out in the connected state the count begins at 1
# (state diagrams, appendix C4).
#
# Seen, one frame in ten is lost, the peer answers each poll: of 1000 messages 99 arrive, after 10 polls, each answered
# at the first try. With one frame lost in a hundred it ends after 1089. Without loss all arrive.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check open-ax25==0.1.0
cat >run.py <<'END'
import time

from open_ax25.connection import AX25Connection, ConnectionError
from open_ax25.frame import FrameType, decode_frame, encode_rr, encode_ua

T1 = 0.05


class Peer:
    """The radio path, which loses one I frame in so many, and the station at its other end, which answers at once."""

    def __init__(self, loss):
        self.loss = loss
        self.frames, self.polls, self.received, self.next = 0, 0, [], 0
        self.answers = []

    def connect(self, callsign, ssid):
        pass

    def disconnect(self):
        pass

    def answer(self, final):
        self.answers.append(encode_rr("ME", 0, "PEER", 0, nr=self.next, poll=final, command=False))

    def send_frame(self, raw):
        frame = decode_frame(raw)
        if frame.frame_type == FrameType.SABM:
            self.answers.append(encode_ua("ME", 0, "PEER", 0, final=True))
        elif frame.frame_type == FrameType.RR and frame.poll_final:
            self.polls += 1
            self.answer(final=True)
        elif frame.frame_type == FrameType.I:
            self.frames += 1
            if self.frames % self.loss == 0:
                return
            if frame.ns == self.next:
                self.next = (self.next + 1) % 8
                self.received.append(frame.info)
            self.answer(final=False)

    def receive_frame(self, timeout=5.0):
        if self.answers:
            return self.answers.pop(0)
        time.sleep(min(timeout, T1 / 5))
        return None


def transfer(loss, count):
    peer = Peer(loss)
    connection = AX25Connection(peer, "ME", 0, t1=T1)
    connection.connect("PEER", 0)
    end = "all sent"
    try:
        for number in range(count):
            connection.send_frame(b"%d" % number)
            while connection.V_A != connection.V_S:
                connection.receive_frame(timeout=2 * T1)
    except ConnectionError as error:
        end = str(error)
    assert peer.received == [b"%d" % number for number in range(len(peer.received))]
    print(f"one frame in {loss} lost: {len(peer.received)} of {count} arrive, {peer.polls} polls: {end}")
    return len(peer.received), peer.polls


told = [transfer(10, 1000), transfer(100, 2000), transfer(5000, 2000)]
raise SystemExit(told != [(99, 10), (1089, 10), (2000, 0)])
END
env/bin/python run.py 2>&1
