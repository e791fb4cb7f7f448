#!/bin/sh
# django-network-conditions 1.1.1 (PyPI), a middleware that makes responses as slow as a network would, misreads its own
# settings (LatencyMiddleware in middleware.py). By its documentation LATENCY and JITTER are milliseconds and
# KB_PER_SECOND is a speed. It sleeps for LATENCY seconds, and one second more for each KB_PER_SECOND bytes: with its
# documented example, 20 ms and 1024 kB/s, 10 kB take half a minute, not 30 ms. The random delay is drawn once, when the
# server starts, so there is no jitter; and as the requests that "time out" are those with the longest delays, a server
# fails none or all. With a JITTER of 0, by the documentation "no jitter", all fail, for the quantile is no number then.
# What times out is answered at once, with 403. Nothing is said, but for a warning of NumPy in the last case.
#
# Seen, as documented, 10 kB, four requests each to two servers: 46.24 s four times and 23.88 s four times. TIMEOUT_PCT
# 50: a server without a failure or one with failures only. JITTER 0: 403, all.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check django==4.2.16 numpy==2.2.6 scipy==1.15.3 \
    django-network-conditions==1.1.1
cat >run.py <<'END'
import sys
from unittest import mock

import numpy
from django.conf import settings
from django.http import HttpResponse

SIZE, REQUESTS = 10_240, 4  # bytes
DOCUMENTED = {"LATENCY": 20, "KB_PER_SECOND": 1024, "JITTER": 10, "TIMEOUT_PCT": 5, "PRINT_LOGS": False}
settings.configure(NETWORK_CONDITIONS=dict(DOCUMENTED))

from django_network_conditions.middleware import LatencyMiddleware  # noqa: E402


def serve(**changes):
    """Status and delay, in s, of each request to a server that starts with these settings."""
    settings.NETWORK_CONDITIONS = DOCUMENTED | changes
    middleware = LatencyMiddleware(lambda request: HttpResponse(bytes(SIZE)))
    told = []
    for _ in range(REQUESTS):
        with mock.patch("time.sleep") as sleep:
            response = middleware(None)
        told.append(f"{response.status_code} {sum(call.args[0] for call in sleep.call_args_list):.2f} s")
    return told


numpy.random.seed(1)
changed = False
for changes, expected in (
    ({}, "200 46.24 s"),
    ({}, "200 23.88 s"),
    ({"TIMEOUT_PCT": 50}, "200 24.72 s"),
    ({"TIMEOUT_PCT": 50}, "200 19.27 s"),
    ({"TIMEOUT_PCT": 50}, "403 0.00 s"),
    ({"JITTER": 0}, "403 0.00 s"),
):
    told = serve(**changes)
    print(f"{changes or 'as documented'}: {', '.join(told)}")
    changed |= told != [expected] * REQUESTS
sys.exit(changed)
END
env/bin/python -W ignore run.py
