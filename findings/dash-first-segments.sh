#!/bin/sh
# Two readers of DASH manifests (MPD), mpd-inspector 1.2.3 and pydash2hls 3.0.0 (both PyPI), name other segments than a
# player fetches. mpd-inspector takes startNumber="0" for none and begins at 1 (tag.start_number or 1, inspector.py). In
# a timeline it does not repeat a segment that has r="-1", which is to repeat to the end of the period. pydash2hls takes
# the number of segments for that of the last (range(start_number, segment_count), dash.py): with startNumber="1", the
# usual one, the last is missing. In a timeline it names every segment by the time at which the first ends, so its
# playlist asks for that one again and again. And it lists the header, which has no media, as a segment, with the time
# scale in milliseconds as its length. Nothing is said. ISO/IEC 23009-1, 5.3.9.4 and 5.3.9.6: numbers go up from
# startNumber, and $Time$ is where a segment begins. Who makes a player's requests from these loads other bytes, or
# none.
#
# Seen, 60 s in 15 segments of 4 s: from 0, mpd-inspector 1 to 15 for 0 to 14; from 1, pydash2hls 1 to 14 for 1 to 15. A
# timeline: mpd-inspector with r="-1" one segment, pydash2hls 15 times the second. Its playlists last 146 or 150 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for package in mpd-inspector==1.2.3 pydash2hls==3.0.0; do # their dependencies exclude each other
    python3 -m venv "${package%%=*}"
    "${package%%=*}/bin/pip" install --quiet --disable-pip-version-check "$package"
done
cat >manifests.py <<'END'
MPD = """<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" {duration} minBufferTime="PT2S"
     profiles="urn:mpeg:dash:profile:isoff-live:2011">
  <Period id="1" start="PT0S" duration="PT60S">
    <AdaptationSet id="1" contentType="video" mimeType="video/mp4" codecs="avc1.4d401f">
      <SegmentTemplate media="{media}" initialization="init" timescale="90000" {template}>{timeline}</SegmentTemplate>
      <Representation id="v" bandwidth="2000000" width="1280" height="720" frameRate="25"/>
    </AdaptationSet>
  </Period>
</MPD>
"""
WHOLE = 'mediaPresentationDuration="PT60S"'


def numbered(first):
    template = f'duration="360000" startNumber="{first}"'
    return MPD.format(duration=WHOLE, media="$Number$", template=template, timeline="")


def timed(repeat, duration=WHOLE):
    timeline = f'<SegmentTimeline><S t="0" d="360000" r="{repeat}"/></SegmentTimeline>'
    return MPD.format(duration=duration, media="$Time$", template="", timeline=timeline)


def tell(name, urls):
    urls = [url.rsplit("/", 1)[-1] for url in urls]
    print(f"{name}: {len(urls)} segments, {', '.join(urls[:2])} ... {urls[-1]}")
END
cat >inspecting.py <<'END'
from mpd_inspector import MPDInspector, MPDParser

from manifests import numbered, tell, timed

manifests = {"from 1": numbered(1), "from 0": numbered(0), "timeline": timed(14), "to the end": timed(-1)}
for name, manifest in manifests.items():
    period = MPDInspector(MPDParser.from_string(manifest)).periods[0]
    segments = period.adaptation_sets[0].representations[0].segment_information.segments
    tell(f"mpd-inspector, {name}", [segment.urls[0] for segment in segments])
END
cat >convert.py <<'END'
from pydash2hls import Dash

from manifests import numbered, tell, timed

# With mediaPresentationDuration it does not read the timeline.
manifests = {"from 0": numbered(0), "from 1": numbered(1), "timeline": timed(14, duration="")}
for name, manifest in manifests.items():
    dash = Dash(content=manifest.encode(), url="http://example.org/v.mpd")
    dash.unpack()
    lines = dash.convert("v").split("\n")
    header, *segments = [line for line in lines if line.startswith("http")]
    lengths = [float(line[len("#EXTINF:"):].rstrip(",")) for line in lines if line.startswith("#EXTINF:")]
    tell(f"pydash2hls, {name}", segments)
    print(f"  {header.rsplit('/', 1)[-1]} of {lengths[0]:.0f} s, all {sum(lengths):.0f} s")
END
{ mpd-inspector/bin/python inspecting.py && pydash2hls/bin/python convert.py; } | tee told
cat >expected <<'END'
mpd-inspector, from 1: 15 segments, 1, 2 ... 15
mpd-inspector, from 0: 15 segments, 1, 2 ... 15
mpd-inspector, timeline: 15 segments, 0, 360000 ... 5040000
mpd-inspector, to the end: 1 segments, 0 ... 0
pydash2hls, from 0: 15 segments, 0, 1 ... 14
  init of 90 s, all 150 s
pydash2hls, from 1: 14 segments, 1, 2 ... 14
  init of 90 s, all 146 s
pydash2hls, timeline: 15 segments, 360000, 360000 ... 360000
  init of 90 s, all 150 s
END
diff expected told
