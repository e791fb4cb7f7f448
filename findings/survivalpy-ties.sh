#!/bin/sh
# The Kaplan-Meier estimate of SurvivalPy 1.0.2 (PyPI) takes observations that were cut off at the very time of an
# event out of those at risk at that time (compute in survival.py subtracts what is censored up to and including the
# end of an interval before it divides). By convention these are still at risk: what was cut off at t lasted at least
# to t (Kaplan and Meier, J. Am. Stat. Assoc. 53, 1958). The log-rank test of the same package counts them (logrank.py).
# Outages in whole seconds, of which some are cut off because a run of fixed length ended, are full of such ties. So
# they seem to be over sooner than they are. Events at time 0, as outages shorter than the clock, count as if they had
# happened at the first later event. Nothing is said. lifelines 0.30.3 (PyPI) has the convention.
#
# Seen, ten outages, three over after 10 s, five cut off then by the end of the run, one over and one cut off after
# 20 s: 40 % last longer than 10 s, where 70 % do (lifelines 70 %). Ten outages, four of 0 s, three of 5, three of 10:
# all last longer than 0 s, where 60 % do.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check SurvivalPy==1.0.2 lifelines==0.30.3
cat >run.py <<'END'
from lifelines import KaplanMeierFitter
from survivalpy.survival import Analyzer, Datum


def survivalpy(outages, time):
    """The share that lasts longer: each interval has that of the time after its start."""
    intervals = Analyzer([Datum(end, censored) for end, censored in outages]).compute()
    return next(interval.cumulative for interval in intervals if interval.start <= time < interval.end)


def lifelines(outages, time):
    times, censored = zip(*outages)
    return KaplanMeierFitter().fit(times, [not cut for cut in censored]).predict(time)


cut_off = [(10, False)] * 3 + [(10, True)] * 5 + [(20, False), (20, True)]  # s, cut off
short = [(0, False)] * 4 + [(5, False)] * 3 + [(10, False)] * 3
for name, outages, time in (("cut off at 10 s", cut_off, 10), ("four of 0 s", short, 0)):
    shares = [f"{estimate.__name__} {100 * estimate(outages, time):.0f} %" for estimate in (survivalpy, lifelines)]
    print(f"{name}, longer than {time} s: {', '.join(shares)}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
cut off at 10 s, longer than 10 s: survivalpy 40 %, lifelines 70 %
four of 0 s, longer than 0 s: survivalpy 100 %, lifelines 60 %
END
diff expected told
