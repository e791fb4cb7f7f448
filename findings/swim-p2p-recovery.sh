#!/bin/sh
# swim-p2p 1.2.6 (PyPI) limits how many messages a node sends a second by latency, queue and errors (CongestionDetector
# in swim/integration/messaging/congestion.py). Heavy congestion halves the rate. When it is over, the rate grows by a
# tenth once, and never again: it changes only where the level of congestion does (_check_congestion). So each outage of
# a link takes 45 % of what was left, for good: after four a node sends 11 messages a second instead of 100, over a link
# that is idle. The time "to wait before attempting recovery" (recovery_delay) is used nowhere. Nothing is said; the
# level is normal. TCP takes up what there is again, with each round trip (RFC 5681, 3.1).
#
# Seen, four outages with 20 ms and no queue between them: 55.0, 30.3, 16.6 and 11.0 messages a second; 6 s after the
# last the same.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check swim-p2p==1.2.6 pydantic==2.11.7 pyzmq==27.0.0 \
    aiohttp==3.12.14 psutil==7.0.0
cat >run.py <<'END'
import asyncio

from swim.integration.messaging.congestion import CongestionDetector

OUTAGES, CHECKS = 4, 10


def record(detector, latency, queue):
    """As many samples as the detector keeps; latency in ms."""
    for _ in range(100):
        detector.record_latency(latency)
        detector.record_queue_depth(queue)
        detector.record_throughput(50)


async def level(detector, wanted):
    for _ in range(100):
        await asyncio.sleep(detector.monitor_interval)
        if detector.current_level.name == wanted:
            return
    raise SystemExit(f"{detector.current_level} instead of {wanted}")


async def main():
    detector = CongestionDetector("node")
    detector.monitor_interval = 0.05  # s
    await detector.start()
    for outage in range(1, OUTAGES + 1):
        record(detector, latency=3000, queue=2000)
        for _ in range(50):
            detector.record_error("timeout")
        await level(detector, "HEAVY")
        record(detector, latency=20, queue=0)
        await level(detector, "NORMAL")
        await asyncio.sleep(CHECKS * detector.monitor_interval)
        print(f"after outage {outage}: {detector.get_current_rate_limit():.1f} messages a second")
    await asyncio.sleep(detector.config.recovery_delay + 1)
    status = detector.get_congestion_status()
    print(f"later: {status['current_rate_limit']:.1f} messages a second, {status['congestion_level']}")
    await detector.stop()


asyncio.run(main())
END
env/bin/python run.py 2>log | grep -v loaded | tee told
cat >expected <<'END'
after outage 1: 55.0 messages a second
after outage 2: 30.3 messages a second
after outage 3: 16.6 messages a second
after outage 4: 11.0 messages a second
later: 11.0 messages a second, NORMAL
END
diff expected told
