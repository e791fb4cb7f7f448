#!/bin/sh
# rtcpxr-collector 0.1.7 (PyPI), which collects the reports of telephones on the quality of a call (RFC 6035), loses
# what the reporting end measured. Such a report has a section LocalMetrics and may have RemoteMetrics, what the other
# end told by RTCP XR; their lines have the same names (RFC 6035, 4.6). The parser puts all lines in one flat dictionary
# (parsesip in sipparser.py), so the remote ones replace the local ones, and both sections are empty strings. A
# telephone on a bad wireless link tells of 12 % lost, and what is kept is the 0.1 % of the wired end. Without
# RemoteMetrics the same keys have the local numbers, so a series mixes both directions. And the names of both parties
# are False unless they are numbers in capital hexadecimal digits. Nothing is said.
#
# Seen, loss of 12 % and MOS 2.1 here, 0.1 % and 4.3 there: 0.1 and 4.3; without the other end 12.0 and 2.1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check rtcpxr-collector==0.1.7
cat >run.py <<'END'
from rtcpxr_collector import sip, sipparser

HEADER = """PUBLISH sip:collector@example.org SIP/2.0
Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK1
From: <sip:phone@example.org>;tag=1
To: <sip:collector@example.org>
Call-ID: 1
CSeq: 1 PUBLISH
Contact: <sip:phone@192.0.2.1:5060>
User-Agent: phone
Event: vq-rtcpxr
Content-Type: application/vq-rtcpxr
Content-Length: {length}

"""
CALL = """VQSessionReport: CallTerm
CallID: 2
LocalID: <sip:phone@example.org>
RemoteID: <sip:desk@example.org>
LocalAddr:IP=192.0.2.1 PORT=5000 SSRC=1a3b5c7d
RemoteAddr:IP=192.0.2.2 PORT=5002 SSRC=2468abcd
"""
SECTION = """{name}:
Timestamps:START=2026-10-10T18:23:43Z STOP=2026-10-10T18:26:02Z
PacketLoss:NLR={loss} JDR=0.0
QualityEst:MOSLQ={mos} MOSCQ={mos}
"""
LOCAL = SECTION.format(name="LocalMetrics", loss=12.0, mos=2.1)
REMOTE = SECTION.format(name="RemoteMetrics", loss=0.1, mos=4.3)
for name, sections in {"local and remote": LOCAL + REMOTE, "local alone": LOCAL}.items():
    body = (CALL + sections).replace("\n", "\r\n")
    header = HEADER.format(length=len(body)).replace("\n", "\r\n")
    told = sipparser.parsesip(sip.Request((header + body).encode()))
    loss, mos = told["PacketLoss"]["NLR"], told["QualityEst"]["MOSLQ"]
    sections = {key: told[key] for key in told if key.endswith("Metrics")}
    print(f"{name}: {loss} % lost, MOS {mos}, {sections}, from {told['LocalID']} to {told['RemoteID']}")
END
env/bin/python run.py | tee told
cat >expected <<'END'
local and remote: 0.1 % lost, MOS 4.3, {'LocalMetrics': '', 'RemoteMetrics': ''}, from False to False
local alone: 12.0 % lost, MOS 2.1, {'LocalMetrics': ''}, from False to False
END
diff expected told
