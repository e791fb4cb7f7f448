#!/bin/sh
# arqsim 0.1 (PyPI) simulates ARQ, for teaching. In its windowed modes (arq_sim in core.py) a packet that was lost is
# acknowledged like one that arrived: the ACK is drawn by its own loss only. So packets lost on the way cost nothing.
# With all of them lost the transfer is done in one window, with none sent. In stop_and_wait a packet that was not lost
# has a bit error with a probability that is drawn anew and evenly, a half on average, which no input can change, and
# all its bits count as wrong. And the reliability is what is left of the packets after the retransmissions, below 0
# where there are more of them than packets, although each arrived. Nothing is said. By arithmetic stop-and-wait
# succeeds at a share (1 - p)(1 - q) of its transmissions, where packets are lost with p and ACKs with q.
#
# Seen: arq_sim, all packets lost: done, 0 sent, no timeout. stop_and_wait of 20000 packets, without loss: efficiency
# 50 %, reliability 0 %, BER 50 %; right are 100, 100 and 0. A third of them lost: efficiency 33 %, right is 67;
# reliability -100 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check arqsim==0.1
cat >run.py <<'END'
import builtins
import contextlib
import io
import random
import re

from arqsim import arq_sim, stop_and_wait

COUNT = 20000


def printed(function, *arguments):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        function(*arguments)
    return output.getvalue()


def waiting(loss):
    """Efficiency, reliability and bit error rate in %."""
    answers = iter([str(loss), "0", "1000", str(COUNT), "100"])
    builtins.input = lambda prompt: next(answers)
    text = printed(stop_and_wait)
    assert "failed" not in text
    told = [float(re.search(name + r": (-?[\d.]+)%", text)[1]) for name in ("Efficiency", "Reliability", "BER")]
    print("stop_and_wait, loss %.3f: efficiency %.1f %%, reliability %.1f %%, BER %.1f %%" % (loss, *told))
    return told


def close(told, expected):
    return all(abs(value - right) < 3 for value, right in zip(told, expected))


random.seed(1)
text = printed(arq_sim, 5, 0, 1.0, 0.0, "GBN")
windowed = text.count("lost"), text.count("Timeout"), "Total sent: 0" in text
print("arq_sim, all packets lost: %d lost, %d timeouts; none sent: %s" % windowed)
same = [windowed == (5, 0, True), close(waiting(0), [50, 0, 50]), close(waiting(1 / 3)[:2], [33.3, -100])]
raise SystemExit(not all(same))
END
env/bin/python run.py
