#!/bin/sh
# aiodtnsim 0.3.1 (PyPI), which simulates delay-tolerant networks such as satellites and their ground stations, counts
# only the beginning of a contact whose bit error rate changes. get_fc_volume (simulation/link/__init__.py) counts the
# blocks that fit before the next change, and when less than a block is left before it, as there is unless the times
# divide evenly, it ends altogether ("if update_count == 0: break"), as at the end of the contact. Its link that goes by
# it (SimulatedIdealRedundancyImpairedCLALink) carries the messages of a contact at a rate made of that volume and the
# whole contact. So a pass of ten minutes with an entry for each second, as its elevation gives one, has a thousandth of
# its capacity. Nothing is said. By its docstring the function gives "the factual contact volume if ideal error recovery
# is used".
#
# Seen, 600 s at 9600 bit/s without errors, blocks of 8000 bits: one entry 9587 bit/s, one each minute 947, one each
# second 13. Blocks of 9600 bits, which fit in a second: 9600 each time.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check --no-deps \
    aiodtnsim==0.3.1 dtn-tvg-util==0.1.6 attrs==25.4.0 numpy==1.26.4 tqdm==4.67.1
cat >run.py <<'END'
import aiodtnsim
from aiodtnsim.simulation.link.impaired_cla_link import SimulatedIdealRedundancyImpairedCLALink
from tvgutil.contact_plan import Contact, ContactCharacteristics

DURATION, BIT_RATE, DELAY = 600, 9600, 0.01


def rate(step, block_size):
    """The rate of a contact with an entry each so many seconds, all alike."""
    entries = [ContactCharacteristics(float(start), BIT_RATE, 0.0, DELAY) for start in range(0, DURATION, step)]
    factual = Contact("ground", "satellite", 0.0, float(DURATION), entries)
    contact = aiodtnsim.Contact("ground", "satellite", 0.0, float(DURATION), BIT_RATE, DELAY, factual)
    return SimulatedIdealRedundancyImpairedCLALink(contact, block_size).effective_data_rate


for block_size in 8000, 9600:
    rates = ", ".join(f"{rate(step, block_size):.0f} bit/s each {step} s" for step in (600, 60, 1))
    print(f"blocks of {block_size} bits: {rates}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
blocks of 8000 bits: 9587 bit/s each 600 s, 947 bit/s each 60 s, 13 bit/s each 1 s
blocks of 9600 bits: 9600 bit/s each 600 s, 9600 bit/s each 60 s, 9600 bit/s each 1 s
END
diff expected told
