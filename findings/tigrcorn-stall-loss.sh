#!/bin/sh
# QUIC of tigrcorn-transports 0.3.17 (PyPI), the transports of a web server in Python, takes packets for lost that
# nothing has overtaken. After an acknowledgement it sets its loss timer for all that is still under way, and when
# 9/8 of the round trip are over declares it lost, sends it again and halves the window (detect_lost_packets in
# recovery/core.py, and _run_loss_detection). By RFC 9002, 6.1, only packets sent before an acknowledged one can be
# lost; for others there is the probe timeout (6.2), which sends one or two packets and marks none as lost. So on a path
# of 100 ms a pause of 13 ms within a flight, as a radio makes at each handover and many a retransmission of its own,
# halves the window, though all arrives. Nothing is said.
#
# Seen, round trip of 100 ms, ten packets 1 ms apart, of which the first is acknowledged in time and the others late:
# by 10 ms, 0 taken for lost; by 15 ms, all 9; right is 0. Window before 48,000 bytes, after 60,000 and 24,600.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check tigrcorn-transports==0.3.17
cat >run.py <<'END'
from tigrcorn_transports.quic.recovery import QuicLossRecovery

SIZE, ROUND_TRIP, SPACING, FLIGHT = 1200, 0.1, 0.001, 10


def after_pause(pause):
    """Windows before and after, and the packets taken for lost, where a flight's acknowledgements pause for so long."""
    recovery = QuicLossRecovery(max_datagram_size=SIZE)
    now, number = 0.0, 0
    for number in range(30):
        recovery.on_packet_sent(number, SIZE, sent_time=now)
        now += ROUND_TRIP
        recovery.on_ack_received([number], now=now)
    before = recovery.congestion_window
    flight = {number + 1 + index: now + index * SPACING for index in range(FLIGHT)}
    for number, sent in flight.items():
        recovery.on_packet_sent(number, SIZE, sent_time=sent)
    lost = []
    for index, (number, sent) in enumerate(flight.items()):
        now = sent + ROUND_TRIP + (pause if index else 0)
        # The connection's loop runs the timer when it is due.
        while (due := recovery.spaces["application"].loss_time) is not None and due < now:
            lost += recovery.detect_lost_packets(now=due, packet_space="application")
        lost += recovery.on_ack_received([number], now=now)
    return before, recovery.congestion_window, len(lost)


for pause in (0, 10, 15, 30):
    before, after, lost = after_pause(pause / 1000)
    print(f"{pause} ms: {lost} taken for lost, window {before} before, {after} after")
END
env/bin/python run.py | tee told
cat >expected <<'END'
0 ms: 0 taken for lost, window 48000 before, 60000 after
10 ms: 0 taken for lost, window 48000 before, 60000 after
15 ms: 9 taken for lost, window 48000 before, 24600 after
30 ms: 9 taken for lost, window 48000 before, 24600 after
END
diff expected told
