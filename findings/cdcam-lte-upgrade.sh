#!/bin/sh
# cdcam 1.0.1 (PyPI), the Cambridge Digital Communications Assessment Model, plans where a mobile network is extended,
# from demand and capacity. Two of its steps cost money and do nothing. It compares a band with each element of an
# asset's frequency (_macrocell_site_capacity in model.py). Where that is a string, as its documentation says, these are
# characters: "8", "0", "0" is not "800". Its own upgrade to LTE writes strings (interventions.py). So a site that gets
# LTE on 800 and 2600 MHz for 142446 pounds carries nothing more. And before it adds a carrier, it looks for "700" among
# lists (["700"]) and never finds it. So it buys the carrier again each year, as long as demand is higher. Nothing is
# said: capacities are too low, costs too high, and demand is met too late.
#
# Seen, a site with GSM, 10 Mbit/s/km2 for each band of LTE: 0 Mbit/s/km2 after the upgrade; right is 20. A site with
# LTE and much demand: carriers of 700 and 3500 MHz for 54500 pounds in 2020, in 2021 and in 2022; the capacity grows in
# 2020 only.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cdcam==1.0.1
cat >run.py <<'END_PYTHON'
import contextlib
import io
import sys

from cdcam.interventions import decide_interventions
from cdcam.model import NetworkManager

BANDS = {"700": "10", "800": "10", "1800": "10", "2600": "10", "3500": "40", "3700": "40", "26000": "200"}
PARAMETERS = {f"channel_bandwidth_{band}": width for band, width in BANDS.items()}
PARAMETERS |= {"market_share": 0.3, "busy_hour_traffic_percentage": 20, "penetration": 80}
CLUTTER = [(0, "rural"), (782, "suburban"), (7959, "urban")]
FIFTH = {"700", "3500", "3700", "26000"}
# Sites per km2 and Mbit/s per km2: 10 Mbit/s for a tenth of a site, in each band.
TABLE = {
    (clutter, cell, band, width, "5G" if band in FIFTH else "4G"): [(0.01, 1), (1, 100)]
    for _, clutter in CLUTTER for cell in ("macro", "micro") for band, width in BANDS.items()
}


def network(assets: list, gigabytes: int) -> NetworkManager:
    sector = {"id": "A", "lad_id": 1, "population": 5000, "area_km2": 10.0, "user_throughput": gigabytes}
    return NetworkManager([{"id": 1, "name": "one"}], [sector], assets, TABLE, CLUTTER, PARAMETERS)


def plan(assets: list, gigabytes: int, year: int) -> tuple[list, int]:
    with contextlib.redirect_stdout(io.StringIO()):
        system = network(assets, gigabytes)
        built, _, spent = decide_interventions("macrocell", 10_000_000, 0, system, year, PARAMETERS)
    return built, sum(line[-1] for line in spent)


def capacity(assets: list) -> int:
    return round(network(assets, 0).postcode_sectors["A"].capacity)


def site(technology: str, bands: list) -> list:
    asset = {"pcd_sector": "A", "site_ngr": "site", "type": "macrocell_site", "build_date": 2010}
    return [asset | {"technology": technology, "frequency": bands}]


told = []
gsm, lte = site("GSM", ["900"]), site("LTE", ["800", "2600"])
built, spent = plan(gsm, 20, 2019)
print(f"upgrade to LTE for {spent}: {capacity(gsm)}, then {capacity(gsm + built)} Mbit/s/km2; right is {capacity(lte)}")
told += [spent, capacity(gsm + built), capacity(lte)]
assets = lte
for year in (2020, 2021, 2022):
    built, spent = plan(assets, 1000, year)
    assets = assets + built
    bands = [band for asset in built for band in asset["frequency"]]
    print(f"{year}: carriers of {', '.join(bands)} MHz for {spent}, then {capacity(assets)} Mbit/s/km2")
    told += [spent, capacity(assets)]
sys.exit(told != [142446, 0, 20, 54500, 40, 54500, 40, 54500, 40])
END_PYTHON
env/bin/python run.py
