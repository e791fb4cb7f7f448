#!/bin/sh
# raincell 0.2.10 (PyPI), which tells rain from the attenuation of microwave links, uses its coefficients the wrong way
# round (rrate.py). Those that it brings, for 7 to 23 GHz in Africa (alcoba_2019_africa_coefs), are of k = a R^b, the
# attenuation in dB/km of rain of R mm/h. Its function for the rain rate takes them for R = a k^b, as the paper that it
# is named after writes it (get_overeem_et_al_2013_min_max_nms_tprate; Overeem, Leijnse and Uijlenhoet, PNAS 110, 2013).
# Its README puts the one into the other. So a downpour of 15 mm/h is told as 0.05, and what it tells is an attenuation.
# Nothing is said: both are called "k-R" coefficients, and the result says "mm/h". ITU-R P.838-3, equation (1), is the
# law with attenuation on the left; aei-microwave-link-exposure 0.2.0 (PyPI) has its coefficients.
#
# Seen, a link of 5 km that loses 5 dB at 7, 15 and 23 GHz: 0.000197, 0.0517 and 0.128 mm/h. By the same coefficients,
# the right way round, it is 99.7, 15.0 and 7.2, by those of P.838 68.4, 15.9 and 7.4.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check xarray==2026.9.0
# Without its maps and plots.
env/bin/pip install --quiet --disable-pip-version-check --no-deps raincell==0.2.10 aei-microwave-link-exposure==0.2.0
cat >run.py <<'END'
import xarray
from aei_mw_exposure.physics import rain_coefficients
from raincell.rrate import alcoba_2019_africa_coefs, get_overeem_et_al_2013_min_max_nms_tprate

LOSS_DB, LENGTH_KM = 5.0, 5.0
coefficients = alcoba_2019_africa_coefs()
for ghz in (7, 15, 23):
    loss = ("cml_id", "time"), [[LOSS_DB]]
    link = {"cml_id": ["link"], "frequency": ("cml_id", [ghz * 1000]), "length": ("cml_id", [LENGTH_KM * 1000])}
    attenuation = xarray.Dataset({"pia_min": loss, "pia_max": loss}, coords=link)
    told = get_overeem_et_al_2013_min_max_nms_tprate(attenuation, coefficients).tprate.item()
    own = coefficients.sel(frequency=ghz * 1000)
    standard = rain_coefficients(ghz, "H")
    right = [(LOSS_DB / LENGTH_KM / a) ** (1 / b) for a, b in ((own.a.item(), own.b.item()), standard)]
    print(f"{ghz} GHz: {told:.3g} mm/h, right {right[0]:.1f}, by P.838 {right[1]:.1f}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
7 GHz: 0.000197 mm/h, right 99.7, by P.838 68.4
15 GHz: 0.0517 mm/h, right 15.0, by P.838 15.9
23 GHz: 0.128 mm/h, right 7.2, by P.838 7.4
END
diff expected told
