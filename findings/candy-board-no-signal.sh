#!/bin/sh
# candy-board-qws 3.1.0 (PyPI), the service of Candy Line's boards for modems of Quectel, tells a signal of -117 dBm
# where there is none (network_show in candy_board_qws/__init__.py). To AT+CSQ a modem answers 99 if the level is not
# known or not detectable, and 0 to 31 for -113 to -51 dBm in steps of 2 (TS 27.007, 8.5). Its own range, for TD-SCDMA,
# begins at 100, with 199 for unknown (Quectel's AT commands, AT+CSQ); but the branch of that range takes all numbers up
# to 190, also 32 to 99, and counts down from 102. So an outage has a level, a little below the weakest, with an empty
# rssiDesc, as any level between has, where it means to say NO_SIGANL: who records it while driving gets means over it,
# and no outages. Nothing is said; the others are right.
#
# Seen, answers of 0, 1, 18, 31 and 99: -113 (OR_LESS), -111, -77 and -51 dBm (OR_MORE), and -117.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check candy-board-qws==3.1.0
cat >run.py <<'END'
import json

from candy_board_qws import SockServer


class Modem:
    """A modem that answers to AT commands, with this level to AT+CSQ."""

    def __init__(self, level):
        self.answers = {
            "AT+CSQ": f"+CSQ: {level},99",
            "AT+COPS?": '+COPS: 0,0,"OPERATOR",7',
            "AT+CREG?": "+CREG: 0,1",
            "AT+CGREG?": "+CGREG: 0,1",
            "AT+CEREG?": "+CEREG: 0,1",
            "AT+QNWINFO": '+QNWINFO: "FDD LTE","00101","LTE BAND 1",100',
        }
        self.lines = []

    def write(self, line):
        self.lines = [self.answers[line.strip()], "OK"]

    def read_line(self):
        return self.lines.pop(0) if self.lines else None


for level in (0, 1, 18, 31, 99, 199):
    told = json.loads(SockServer("1", "unused", Modem(level)).network_show())["result"]
    print(f"{level}: rssi {told['rssi']!r}, rssiDesc {told['rssiDesc']!r}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
0: rssi '-113', rssiDesc 'OR_LESS'
1: rssi '-111', rssiDesc ''
18: rssi '-77', rssiDesc ''
31: rssi '-51', rssiDesc 'OR_MORE'
99: rssi '-117', rssiDesc ''
199: rssi '', rssiDesc 'NO_SIGANL'
END
diff expected told
