#!/bin/sh
# itusm2117 0.0.1 (PyPI), which stores radio recordings after ITU-R SM.2117, writes the frequency, time and place of one
# recording with the next ones too. It collects them in the default value of an argument, which Python makes once
# (metadata = {} of write_iq_dataset, write.py). So what one call is given is in all later ones that do not set it anew.
# And it writes "Timestamp fine (ns)", the nanoseconds after "Timestamp coarse (s)", as seconds since 1970 (_to_utc_fine
# in _schema.py). So who adds both dates a recording 0.7 to 1.8 s late. Nothing is said. For longitudes above 80 degrees
# east, and times after 2025, it does raise errors.
#
# Seen: a recording at 868 MHz in Zurich at 12:00:00.25, then one of which only the sampling frequency is given. The
# second has 868 MHz, Zurich and 12:00:00 too; right is none. Fine time: 1748779200.25; right is 250000000.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check itusm2117==0.0.1 numpy==2.2.6 h5py==3.13.0 Cerberus==1.3.7 \
    python-dateutil==2.9.0.post0
cat >run.py <<'END_PYTHON'
import datetime
import sys

from itusm2117 import read_iq_dataset, write_iq_dataset

time = datetime.datetime(2025, 6, 1, 12, 0, 0, 250_000, datetime.timezone.utc)
recording = [1 + 1j, 2 - 1j, 3 + 2j]
write_iq_dataset(
    "recordings.h5", recording, 1e6, carrier_frequency=868e6, latitude=47.4, longitude=8.5, timestamp=time,
    timestamp_fine=time)
write_iq_dataset("recordings.h5", recording, 2e6)
KEYS = (
    "Sampling frequency (Hz)", "RF carrier frequency (Hz)", "Geolocation latitude (degree)",
    "Geolocation longitude (degree)", "Timestamp coarse (s)", "Timestamp fine (ns)")
told = []
for name in ("Dataset_0", "Dataset_1"):
    metadata = read_iq_dataset("recordings.h5", name)[0]
    told.append([float(metadata[key]) for key in KEYS])
    print(f"{name}: " + ", ".join(f"{key} {value:.10g}" for key, value in zip(KEYS, told[-1])))
stale = [868e6, 47.4, 8.5, 1748779200, 1748779200.25]
sys.exit(told != [[1e6, *stale], [2e6, *stale]])
END_PYTHON
env/bin/python run.py
