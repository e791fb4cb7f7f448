#!/bin/sh
# opensatcom 0.7.0 (PyPI), for link budgets and simulations of satellites, is wrong in three places. Where a link may
# fail for 1 % of the time or more, its rain attenuation after ITU-R P.618 grows with that time (rain.py: an exponent
# lost its minus): the less availability is asked for, the more margin it takes. Its DVB-S2 modulations (dvbs2.py) have
# the Es/N0 of the standard as Eb/N0, and its curves (analytic_curves.py) lose half of the blocks there, where by the
# table's own comment it is 1 in 100,000. So 32APSK 9/10 needs 8.5 dB more than it does, and QPSK 1/4 less. And its
# passes from TLEs (sgp4_provider.py) take the coordinates of SGP4, which do not turn with the Earth, for ones that do:
# a geostationary satellite rises and sets once a day, with a Doppler shift, and low ones pass where and when they do
# not. Nothing is said. ITU-R P.618-13, 2.2.1.1, step 10; EN 302 307-1, table 13, with Eb/N0 = Es/N0 - 10 log of the
# spectral efficiency. skyfield 1.55 has the geostationary satellite where it belongs.
#
# Seen, 40 mm/h at 20 GHz: 2.2 dB for 99 % and 5.2 for 95 %, right is 1.6 and 0.5. Eb/N0 for QPSK 1/4 and 32APSK 9/10:
# -0.3 and 18.1 dB, right is 0.7 and 9.6. Elevation of a geostationary satellite every 6 h: -16.8, -46.7, 0.1 and 33.4
# degrees, with 12 kHz of Doppler shift at 12 GHz; right is 34.9, always.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check opensatcom==0.7.0 sgp4==2.27 skyfield==1.55
cat >run.py <<'END'
from math import log, log10

from opensatcom.core.models import PropagationConditions, Terminal
from opensatcom.geometry.sgp4_provider import SGP4TrajectoryProvider
from opensatcom.modem import get_dvbs2_performance_curves
from opensatcom.propagation.rain import RainAttenuationP618
from skyfield.api import EarthSatellite, load, wgs84

ELEVATION = 30
rain = PropagationConditions(rain_rate_mm_per_hr=40.0)


def attenuation(percent):
    model = RainAttenuationP618(availability_target=1 - percent / 100)
    return model.total_path_loss_db(20e9, ELEVATION, 38e6, rain)


rare = attenuation(0.01)
for percent in (1, 2, 5):
    right = rare * (percent / 0.01) ** -(0.655 + 0.033 * log(percent) - 0.045 * log(rare))
    print(f"rain, {100 - percent} %: {attenuation(percent):.1f} dB, right {right:.1f}")

curves = get_dvbs2_performance_curves()
STANDARD = {"QPSK_1/4": (-2.35, 0.490243), "8PSK_3/4": (7.91, 2.228124), "32APSK_9/10": (16.05, 4.453027)}
for name, (es_n0, efficiency) in STANDARD.items():
    told, right = curves[name].required_ebn0_db(1e-5), es_n0 - 10 * log10(efficiency)
    print(f"{name}: Eb/N0 {told:.1f} dB, right {right:.1f}")

TLE = (
    "1 99999U 20001A   26001.00000000  .00000000  00000-0  00000-0 0  9997",
    "2 99999   0.0100 110.6600 0001000   0.0000   0.0000  1.00273790    13",
)
HOURS = (0, 6, 12, 18)
station = Terminal("station", lat_deg=48.0, lon_deg=8.0, alt_m=0.0)
course, doppler = SGP4TrajectoryProvider(*TLE, station).compute_pass(0.0, 86400.0, 6 * 3600.0, f_hz=12e9)
scale = load.timescale(builtin=True)
satellite, place = EarthSatellite(*TLE, "geostationary", scale), wgs84.latlon(48.0, 8.0)
for index, hour in enumerate(HOURS):
    right, _, _ = (satellite - place).at(scale.utc(2026, 1, 1, hour)).altaz()
    told, shift = course.pass_data.elev_deg[index], doppler[index] / 1000
    print(f"geostationary, {hour} h: elevation {told:.1f}, right {right.degrees:.1f}; Doppler {shift:.1f} kHz")
END
env/bin/python run.py | tee told
cat >expected <<'END'
rain, 99 %: 2.2 dB, right 1.6
rain, 98 %: 3.1 dB, right 1.0
rain, 95 %: 5.2 dB, right 0.5
QPSK_1/4: Eb/N0 -0.3 dB, right 0.7
8PSK_3/4: Eb/N0 9.9 dB, right 4.4
32APSK_9/10: Eb/N0 18.1 dB, right 9.6
geostationary, 0 h: elevation -16.8, right 34.9; Doppler -11.8 kHz
geostationary, 6 h: elevation -46.7, right 34.9; Doppler 2.5 kHz
geostationary, 12 h: elevation 0.1, right 34.9; Doppler 12.3 kHz
geostationary, 18 h: elevation 33.4, right 34.9; Doppler -3.2 kHz
END
diff expected told
