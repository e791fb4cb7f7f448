#!/bin/sh
# queuenamics 0.8.4 (PyPI), simulations of queues, is off in three places. After a warm-up period, for which it "resets
# measurement statistics", utilization of a Server and throughput of a Sink (atoms.py) divide what was counted since by
# the time since the beginning, so a warm-up as long as the observation halves them. The printed report has the right
# ones, and so do the averages of the same queue. Its Poisson distribution multiplies random numbers until they are
# below exp(-rate) (distributions.py). From a rate of 746 on that is 0 in double precision, and the product gets there
# after some 746 factors, so no mean is above that: bytes or packets of an interval are soon more. And
# NegativeBinomial draws from a generator of its own, not that of Model(seed=...), which is to make runs reproducible.
#
# Seen, half of the capacity in use, 20000 s after a warm-up as long: utilization 0.25, throughput 0.25 a second (both
# 0.5 without it); mean of 500 Poisson samples 500 for a rate of 500, 746 for 1000 and for 5000; two runs of
# one seed with NegativeBinomial differ.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check queuenamics==0.8.4 rich==15.0.0
cat >run.py <<'END'
import random
import sys

from queuenamics import Constant, Exponential, Model, NegativeBinomial, Poisson, Queue, Server, Sink, Source


def run(service, time: float, warmup: float = 0) -> tuple[float, float]:
    model = Model(seed=1)
    source, queue = Source("source", Exponential(0.5)), Queue("queue")
    server, sink = Server("server", service), Sink("sink")
    for ends in ((source, queue), (queue, server), (server, sink)):
        model.connect(*ends)
    model.run(time=time, warmup=warmup, progress=False)
    return server.utilization, sink.throughput


at_once, after = run(Constant(1.0), 20_000), run(Constant(1.0), 20_000, 20_000)
print(f"utilization and throughput: {at_once[0]:.2f} {at_once[1]:.2f}, after a warm-up {after[0]:.2f} {after[1]:.2f}")
random.seed(1)
means = {rate: sum(Poisson(rate).sample() for _ in range(500)) / 500 for rate in (500, 1000, 5000)}
print("Poisson:", ", ".join(f"rate {rate} mean {mean:.0f}" for rate, mean in means.items()))
same = len({run(NegativeBinomial(2, 0.5), 200) for _ in range(5)}) == 1
print("five runs of one seed are", "the same" if same else "different")
right = max(abs(value - 0.5) for value in at_once) < 0.02 and max(abs(value - 0.25) for value in after) < 0.02
right &= abs(means[500] - 500) < 5 and max(abs(means[rate] - 746) for rate in (1000, 5000)) < 8
sys.exit(not right or same)
END
env/bin/python run.py
