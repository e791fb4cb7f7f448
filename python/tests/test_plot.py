"""`airtcp plot`: what it reads of each kind of file, and what it refuses."""

import gzip
import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import airtcp
from airtcp._native import cli_main
from airtcp.study.picture import _paint
from airtcp.timeline.capture import read_capture
from airtcp.timeline.command import main
from airtcp.timeline.events import read_events
from airtcp.timeline.mahimahi import read_mahimahi
from airtcp.timeline.model import FlowTimeline, Points
from airtcp.timeline.panels import cdf_chart, flow_chart, link_chart

EXAMPLES = Path(__file__).parents[2] / "examples"
NEAR_WRAP = 2**32 - 1000


def _event(at: float, event: str, end: str = "sender", **more: object) -> str:
    return json.dumps({"t": at, "source": f"flow web one {end}", "event": event, **more}) + "\n"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two segments across the wrap of sequence numbers, the first of which is sent again."""
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"t":0.0,"source":"node AP","event":"signal"}\n'
        + _event(0.5, "segment_sent", seq=NEAR_WRAP, len=1000, retransmission=False)
        + _event(0.5, "segment_sent", seq=0, len=1000, retransmission=False)
        + _event(1.5, "segment_sent", seq=NEAR_WRAP, len=1000, retransmission=True)
        + _event(1.6, "delivered", "receiver", total=2000)
        # The receiver's own sending is another stream.
        + _event(1.6, "window", "receiver", cwnd=14480, ssthresh=1000, flight=0)
        + _event(1.6, "ack_received", "receiver", ack=12345, duplicate=False)
        + _event(1.6, "delivered", total=7)
        + _event(1.7, "ack_received", ack=1000, duplicate=False)
        + _event(1.7, "window", cwnd=3000, ssthresh=2**32 - 1, flight=0)
        + _event(1.7, "rtt", sample=0.2, srtt=0.2, rttvar=0.1, rto=0.6)
        + _event(1.8, "outage_over", "receiver", dead=0.3)
    )
    return path


def test_events_are_positions_in_the_stream_though_sequence_numbers_wrap(events: Path) -> None:
    flows = read_events(events).flows
    flow = flows["web one"]
    assert flow.sent.first.tolist() == [0, 1000]
    assert (flow.retransmitted.first.tolist(), flow.retransmitted.time.tolist()) == ([0], [1.5])
    assert flow.acked.value.tolist() == [2000]
    assert (flow.cwnd.value.tolist(), flow.delivered.value.tolist()) == ([3000], [2000])
    assert len(flow.ssthresh) == 0, "before the first loss there is none"
    assert flow.up == (1.5,)


def test_a_chart_has_the_views_for_which_there_are_data(events: Path) -> None:
    flow = read_events(events).flows["web one"]
    labels = [panel.y.label for panel in flow_chart(flow, [], (0.0, 2.0), "run.jsonl").panels]
    assert labels == ["sequence number (kB)", "window (kB)", "round trip (ms)", "rate (kbit/s)"]
    [rate] = flow_chart(flow, ["rate"], (0.0, 2.0), "run.jsonl").panels[0].series
    width = 2.0 / 100
    assert np.sum(rate.y[:-1]) * width == pytest.approx(16.0), "kbit delivered"


def test_a_log_of_a_link_has_rates_delays_and_a_queue(tmp_path: Path) -> None:
    path = tmp_path / "up.log"
    # A path may have any bytes but 0.
    path.write_text(
        "# mahimahi mm-link \udcff\n# base timestamp: 1000\n1010 + 1500\n1010 + 500\n1010 d 1 500\n"
        "1012 # 1500\n1012 - 1500 2\n",
        errors="surrogateescape",
    )
    link = read_mahimahi(path).link
    assert link is not None
    assert link.delay.value.tolist() == [0.002]
    assert link.departed.time.tolist() == [0.012]
    charts = link_chart(link, [], (0.0, 0.02), "up.log").panels
    assert [panel.y.label for panel in charts] == ["rate (Mbit/s)", "delay (ms)", "queue (kB)"]
    [queue] = charts[2].series
    assert queue.y.tolist() == [1.5, 2.0, 1.5, 0.0]


def test_a_view_that_the_file_cannot_have_says_which_can(
    events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for view in ("queue", "delay"):
        assert main([str(events), "--views", view, "--out", str(tmp_path / "x.svg")]) == 2
        assert capsys.readouterr().err == (
            f"airtcp plot: {events}: --views {view} is of a link, and this file does not have its "
            "packets (expected the scenario and --link NAME, or a log of `airtcp run --link-logs` "
            "or `airtcp link`)\n"
        )
    log = tmp_path / "up.log"
    log.write_text("# base timestamp: 0\n1 + 1500\n2 - 1500 1\n")
    assert main([str(log), "--views", "window", "--out", str(tmp_path / "x.svg")]) == 2
    of_link = f"{log}: --views window is of a flow: of a link there are rate, delay, queue"
    assert of_link in capsys.readouterr().err


@pytest.mark.parametrize(
    "span", [(0.0, 5.0), (1.0, 2.0), (2.0, 2.25), (2.0, 2.05), (0.1, 0.9), (0.0, 4.99), (1.5, 1e3)]
)
def test_a_constant_rate_is_drawn_as_one(tmp_path: Path, span: tuple[float, float]) -> None:
    path = tmp_path / "up.log"
    # 8 Mbit/s, of which packets take half.
    lines = "".join(f"{at} + 500\n{at} - 500 0\n{at + 1} # 1000\n" for at in range(5000))
    path.write_text(f"# base timestamp: 0\n{lines}")
    link = read_mahimahi(path).link
    assert link is not None
    (panel,) = link_chart(link, ["rate"], span, "up.log").panels
    rates = {series.name: series.y[series.x < 5.0 - 1e-9] for series in panel.series}
    whole = slice(0, None if span[1] < 6 else -1)
    assert rates["capacity"][whole] == pytest.approx(8.0)
    assert rates["departed"][whole] == pytest.approx(4.0)
    assert rates["arrived"][whole] == pytest.approx(4.0)


def test_no_packet_is_left_out_of_the_rates(tmp_path: Path) -> None:
    path = tmp_path / "up.log"
    path.write_text("# base timestamp: 0\n0 + 500\n7 + 700\n7 # 10\n7 - 500 7\n")
    link = read_mahimahi(path).link
    assert link is not None
    (panel,) = link_chart(link, ["rate"], (0.0, 0.007), "up.log").panels
    sums = {of.name: np.sum(of.y[:-1] * np.diff(of.x)) / 8 for of in panel.series}
    assert panel.y.label == "rate (Mbit/s)"
    expected = {"capacity": 10e-6, "arrived": 1200e-6, "departed": 500e-6}
    assert sums == {name: pytest.approx(megabytes) for name, megabytes in expected.items()}


SYN, ACK = 0x02, 0x10
NO_SCALE = bytes([2, 4, 5, 180])
"""The options of a SYN without window scaling: its MSS."""


def _ip(source: int, payload: bytes, protocol: int = 6) -> bytes:
    """An IPv4 packet between 10.0.0.1 and 10.0.0.2, or from another host there."""
    target = 3 - source if source < 3 else 1
    addresses = bytes([10, 0, 0, source, 10, 0, 0, target])
    length = 20 + len(payload)
    return struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, protocol, 0) + addresses + payload


def _tcp(source: int, seq: int, ack: int, flags: int, payload: int) -> bytes:
    """An IPv4 packet between 10.0.0.1:80 and 10.0.0.2:5000."""
    ports = {1: 80, 2: 5000}
    options = NO_SCALE if flags & SYN else b""
    header = struct.pack(
        ">HHIIBBHHH",
        ports[source],
        ports[3 - source],
        seq % 2**32,
        ack % 2**32,
        (20 + len(options)) // 4 << 4,
        flags,
        1000,
        0,
        0,
    )
    return _ip(source, header + options + bytes(payload))


def _record(time: float, data: bytes) -> bytes:
    return struct.pack("<IIII", int(time), round(time % 1 * 1e6), len(data), len(data)) + data


def _packet(time: float, source: int, seq: int, ack: int, flags: int, payload: int) -> bytes:
    """A record of a capture of IPv4 packets."""
    return _record(time, _tcp(source, seq, ack, flags, payload))


def _capture(path: Path, *records: bytes) -> Path:
    """A capture of tcpdump's, of IPv4 packets."""
    path.write_bytes(
        struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 228) + b"".join(records)
    )
    return path


ISN = NEAR_WRAP - 1
HANDSHAKE = (
    _packet(100.0, 2, 7, 0, SYN, 0),
    _packet(100.1, 1, ISN, 8, SYN | ACK, 0),
    _packet(100.15, 2, 8, NEAR_WRAP, ACK, 0),
)

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


@needs_tshark
def test_a_capture_shows_what_the_sender_sent_and_what_came_back(tmp_path: Path) -> None:
    path = _capture(
        tmp_path / "gateway.pcap",
        *HANDSHAKE,
        _packet(100.2, 1, NEAR_WRAP, 8, ACK, 1000),
        _packet(100.2, 1, 0, 8, ACK, 500),
        _packet(101.0, 1, NEAR_WRAP, 8, ACK, 1000),
        _packet(101.1, 2, 8, 500, ACK, 0),
    )
    [flow] = read_capture(path).flows.values()
    assert flow.name == "10.0.0.1:80 > 10.0.0.2:5000"
    assert flow.sent.end.tolist() == [1000, 1500]
    assert flow.retransmitted.time.tolist() == [1.0]
    assert (flow.acked.value.tolist(), flow.window.value.tolist()) == ([0, 1500], [1000, 2500])


@needs_tshark
def test_sent_again_is_what_the_capture_has_in_whole_before(tmp_path: Path) -> None:
    # Behind the loss of the second segment, as tcptrace counts: none, then one, then one.
    path = _capture(
        tmp_path / "phone.pcap",
        *HANDSHAKE,
        _packet(100.2, 1, NEAR_WRAP, 8, ACK, 1000),
        _packet(100.3, 1, NEAR_WRAP + 2000, 8, ACK, 1000),
        _packet(100.4, 1, NEAR_WRAP + 1000, 8, ACK, 1000),
        _packet(100.5, 1, NEAR_WRAP + 500, 8, ACK, 2500),
        _packet(100.6, 1, NEAR_WRAP + 2500, 8, ACK, 1000),
    )
    [flow] = read_capture(path).flows.values()
    assert flow.sent.first.tolist() == [0, 2000, 1000, 2500]
    assert flow.retransmitted.first.tolist() == [500]


@needs_tshark
def test_a_capture_is_drawn_in_the_order_of_its_times(tmp_path: Path) -> None:
    path = _capture(
        tmp_path / "any.pcap",
        _packet(101.0, 1, NEAR_WRAP + 1000, 8, ACK, 1000),
        *HANDSHAKE,
        _packet(100.2, 1, NEAR_WRAP, 8, ACK, 1000),
    )
    [flow] = read_capture(path).flows.values()
    assert flow.sent.time == pytest.approx([0.2, 1.0])
    assert flow.sent.first.tolist() == [0, 1000]


@needs_tshark
def test_only_segments_on_the_connection_count(tmp_path: Path) -> None:
    data = _tcp(1, NEAR_WRAP, 8, ACK, 1000)
    too_long = struct.pack(">BBHI", 3, 4, 0, 0) + data
    error = _record(100.3, _ip(9, too_long, protocol=1))
    in_gre = _record(100.2, _ip(9, struct.pack(">HH", 0, 0x0800) + data, protocol=47))
    # The error may also come first.
    for records in [(*HANDSHAKE, in_gre, error), (error, *HANDSHAKE, in_gre)]:
        [flow] = read_capture(_capture(tmp_path / "gre.pcap", *records)).flows.values()
        assert flow.name == "10.0.0.1:80 > 10.0.0.2:5000"
        assert (flow.sent.time.round(6).tolist(), flow.sent.end.tolist()) == ([0.2], [1000])
        assert flow.acked.value.tolist() == [0]


@needs_tshark
def test_data_in_a_syn_begin_the_stream(tmp_path: Path) -> None:
    path = _capture(
        tmp_path / "fast-open.pcap",
        _packet(100.0, 2, 7, 0, SYN, 500),
        _packet(100.1, 1, ISN, 8, SYN | ACK, 0),
        _packet(100.2, 2, 8, NEAR_WRAP, ACK, 500),
    )
    [flow] = read_capture(path).flows.values()
    assert (flow.sent.end.tolist(), flow.retransmitted.end.tolist()) == ([500], [500])


@needs_tshark
def test_connections_of_the_same_ports_are_apart(tmp_path: Path) -> None:
    path = _capture(
        tmp_path / "again.pcap",
        *HANDSHAKE,
        _packet(100.2, 1, NEAR_WRAP, 8, ACK, 1000),
        _packet(100.3, 1, NEAR_WRAP + 1000, 8, ACK, 1000),
        _packet(160.0, 2, 7_000_007, 0, SYN, 0),
        _packet(160.1, 1, 10_000, 7_000_008, SYN | ACK, 0),
        _packet(160.2, 1, 10_001, 7_000_008, ACK, 500),
    )
    flows = read_capture(path).flows
    assert {name: flow.sent.end.tolist() for name, flow in flows.items()} == {
        "10.0.0.1:80 > 10.0.0.2:5000": [1000, 2000],
        "10.0.0.1:80 > 10.0.0.2:5000 (2)": [500],
    }


@needs_tshark
def test_a_capture_may_begin_within_a_connection(tmp_path: Path) -> None:
    path = _capture(
        tmp_path / "later.pcap",
        _packet(100.0, 1, 50_000, 8, ACK, 1000),
        _packet(100.1, 2, 8, 20_000, ACK, 0),
        _packet(100.2, 2, 8, 51_000, ACK, 0),
        _packet(100.3, 2, 8, 50_500, ACK, 0),
    )
    [flow] = read_capture(path).flows.values()
    assert len(flow.window) == 0, "the factor of its windows is in the SYN"
    [panel] = flow_chart(flow, ["rate"], (0.0, 0.3), "later.pcap").panels
    [rate] = panel.series
    assert rate.y.min() == 0.0
    assert np.sum(rate.y[:-1]) * 0.003 == pytest.approx(0.008), "1000 bytes, in Mbit"


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body) + -len(body) % 4)
    return struct.pack("<I", kind) + length + body + bytes(-len(body) % 4) + length


@needs_tshark
def test_a_recording_is_drawn_at_its_fixed_side(tmp_path: Path) -> None:
    def interface(name: bytes) -> bytes:
        option = struct.pack("<HH8sI", 2, len(name), name, 0)
        return _block(1, struct.pack("<HHI", 101, 0, 0) + option)

    def packet(interface: int, micros: int, data: bytes) -> bytes:
        head = struct.pack("<IIIII", interface, 0, micros, len(data), len(data))
        return _block(6, head + data)

    fixed, mobile = 0, 1
    data, ack = _tcp(1, 1000, 8, ACK, 500), _tcp(2, 8, 1500, ACK, 0)
    both = tmp_path / "gateway.pcapng"
    head = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    head += interface(b"fixed") + interface(b"mobile")
    # The gateway makes an ACK of its own.
    both.write_bytes(
        head
        + packet(fixed, 1, data)
        + packet(mobile, 1, data)
        + packet(fixed, 300_001, ack)
        + packet(mobile, 500_001, ack)
    )
    [flow] = read_capture(both).flows.values()
    assert (flow.sent.end.tolist(), flow.retransmitted.end.tolist()) == ([500], [])
    assert flow.acked.time == pytest.approx([0.3])
    # As tshark writes it, if asked for this side alone.
    both.write_bytes(head + packet(mobile, 1, data) + packet(mobile, 500_001, ack))
    [flow] = read_capture(both).flows.values()
    assert flow.acked.time == pytest.approx([0.5])


@needs_tshark
def test_a_capture_may_be_compressed_or_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = (*HANDSHAKE, *(_packet(100.2 + n, 1, NEAR_WRAP + n, 8, ACK, 1) for n in range(3)))
    whole = _capture(tmp_path / "whole.pcap", *records)
    short, packed = tmp_path / "short.pcap", tmp_path / "packed.pcap.gz"
    short.write_bytes(whole.read_bytes()[:-10])
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    for path, count, said in [(short, 2, "its last packet is cut short"), (packed, 3, "")]:
        [flow] = read_capture(path).flows.values()
        assert len(flow.sent) == count
        assert main([str(path), "--out", str(tmp_path / "out.svg")]) == 0
        assert said in capsys.readouterr().err
    packed.write_bytes(gzip.compress(b"hello"))
    assert main([str(packed)]) == 2
    assert "unknown contents" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_same_file_gives_the_same_bytes(events: Path, tmp_path: Path, suffix: str) -> None:
    out = [tmp_path / f"{n}{suffix}" for n in range(2)]
    assert [main([str(events), "--out", str(path)]) for path in out] == [0, 0]
    assert out[0].read_bytes() == out[1].read_bytes() != b""


def test_a_pdf_has_the_fonts_that_publishers_take(events: Path, tmp_path: Path) -> None:
    out = tmp_path / "figure.pdf"
    assert main([str(events), "--out", str(out)]) == 0
    assert b"/Type3" not in out.read_bytes()
    assert b"/FontFile2" in out.read_bytes()


def test_a_scenario_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "spike.svg"
    command = [str(EXAMPLES / "spike.toml"), "--set", "tcp.spurious=none", "--views", "rtt"]
    assert main([*command, "--out", str(out)]) == 0
    shown = capfd.readouterr()
    assert shown.out == f"{out}\n"
    assert "goodput" in shown.err
    assert out.read_bytes().startswith(b"<?xml")


def test_transfers_on_connections_of_their_own_are_apart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    scenario = str(EXAMPLES / "traffic.toml")
    assert main([scenario, "--flow", "web/3", "--views", "sequence", "--out", str(out)]) == 0
    assert "web/3, traffic.toml" in out.read_text(encoding="utf-8")
    # The stream begins at 0 and has the size of one transfer.
    events = read_events(_events_of(scenario, tmp_path)).flows
    assert "web" not in events
    transfers = [flow for name, flow in events.items() if name.startswith("web/")]
    assert len(transfers) > 10
    assert all(flow.sent.first[0] == 0 for flow in transfers)
    assert max(flow.sent.end.max() for flow in transfers) <= 5e6
    assert main([scenario, "--flow", "web/99999", "--out", str(out)]) == 2
    assert "no flow 'web/99999' (it has: " in capfd.readouterr().err


def _events_of(scenario: str, folder: Path) -> Path:
    events = folder / "events.jsonl"
    assert cli_main(["airtcp", "run", scenario, "--events", str(events)]) == 0
    return events


def test_a_link_of_a_scenario_is_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario, out = str(EXAMPLES / "quic.toml"), tmp_path / "out.svg"
    assert main([scenario, "--link", "gateway>phone", "--out", str(out)]) == 0
    assert "gateway&gt;phone, quic.toml" in out.read_text(encoding="utf-8")
    logs = tmp_path / "links"
    assert cli_main(["airtcp", "run", scenario, "--link-logs", str(logs)]) == 0
    assert len(list(logs.iterdir())) == 4
    link = read_mahimahi(logs / "gateway.phone.log").link
    assert link is not None
    of_flows, of_links = airtcp.Scenario.load(scenario).outages()
    assert of_links["phone>gateway"] == of_links["gateway>phone"] == [(4.0, 14.0)]
    assert not of_flows
    assert not of_links["server>gateway"]
    # Nothing could be sent in the outage; without it, 10 Mbit/s.
    can_send = link.capacity.time
    assert not ((can_send > 4) & (can_send < 14)).any()
    assert link.capacity.value.sum() == pytest.approx(1.25e6 * 50, rel=1e-3)
    # The queue of 56250 B takes 45 ms; one packet is being sent.
    assert 0.04 < link.delay.value.max() < 0.048
    assert main([scenario, "--link", "gateway>phon", "--out", str(out)]) == 2
    assert "did you mean 'gateway>phone'?" in capfd.readouterr().err
    assert main([str(logs / "gateway.phone.log"), "--link", "x"]) == 2
    assert "--link has no effect: it is not a scenario" in capfd.readouterr().err


def test_distributions_are_of_all_connections_of_a_flow(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.jsonl"
    took = {0: 0.3, 1: 0.1, 2: 0.2, 3: 0.4}
    done = (
        _event(at, "transfer_completed", "receiver", transfer=at, number=at, bytes=9, time=time)
        for at, time in took.items()
    )
    log.write_text("".join(done) + _event(4, "rtt", sample=0.2, srtt=0.2, rttvar=0.1, rto=0.6))
    flows = read_events(log).flows
    assert [len(flow.completed) for flow in flows.values()] == [1, 1, 1, 1, 0]
    curves = {"web one": [flow.completed for flow in flows.values()]}
    (panel,) = cdf_chart("completion", curves, (1.0, 3.0), "").panels
    (series,) = panel.series
    assert panel.x.label == "completion time (ms)"
    assert list(zip(series.x, series.y, strict=True)) == [
        (pytest.approx(x), pytest.approx(y))
        for x, y in [(100, 0), (100, 1 / 3), (200, 2 / 3), (400, 1)]
    ]
    out = str(tmp_path / "out.svg")
    assert main([str(log), "--cdf", "completion", "--out", out]) == 0
    assert main([str(log), "--cdf", "delay", "--out", out]) == 2
    said = capfd.readouterr().err
    assert "--cdf delay is of a link, and this file does not have its packets (expected " in said
    assert "or a log of `airtcp run --link-logs` or `airtcp link`" in said
    assert main([str(log), "--cdf", "completion", "--flow", "web one/2", "--out", out]) == 0
    assert "web one/2, run.jsonl" in Path(out).read_text(encoding="utf-8")
    # The flow is all of its transfers.
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:4]))
    assert main([str(log), "--cdf", "completion", "--flow", "web one", "--out", out]) == 0
    assert "web one, run.jsonl" in Path(out).read_text(encoding="utf-8")
    assert main([str(log), "--cdf", "rtt", "--flow", "web one", "--out", out]) == 2
    assert "there is no round trip of web one" in capfd.readouterr().err
    assert main([str(log), "--flow", "web one", "--out", out]) == 2
    expected = "each transfer of 'web one' has a connection of its own (expected one of them: web"
    assert expected in capfd.readouterr().err
    log.write_text(log.read_text() + _event(4, "rtt", sample=0.2, srtt=0.2, rttvar=0.1, rto=0.6))
    assert main([str(log), "--cdf", "rtt", "--flow", "web two", "--out", out]) == 2
    assert "no flow 'web two'" in capfd.readouterr().err
    assert main([str(log), "--cdf", "rtt", "--views", "rtt", "--out", out]) == 2
    assert "--views has no effect with --cdf" in capfd.readouterr().err
    assert main([str(log), "--cdf", "rtt", "--from", "5", "--out", out]) == 2
    assert "nothing from 5 s until 4 s" in capfd.readouterr().err


def test_outages_of_the_path_are_shaded() -> None:
    text = (EXAMPLES / "outage.toml").read_text(encoding="utf-8")
    of_flows, _ = airtcp.Scenario.parse(text, {"duration": "45 s"}).outages()
    (outages,) = of_flows.values()
    chart = flow_chart(
        FlowTimeline("a", acked=Points.of([(0.0, 0), (45.0, 1)]), outages=tuple(outages)),
        [],
        (outages[0][0] + 1, 44.5),
        "",
    )
    shaded = [panel.shade for panel in chart.panels]
    assert shaded == [((outages[0][0] + 1, min(outages[0][1], 44.5)),)] * len(shaded)


_DOWN = """
duration = "5 s"
node = [{ name = "a" }, { name = "b" }]
flow = [{ from = "a", to = "b" }]
[[link]]
between = ["a", "b"]
rate = "8 Mbit/s"
delay = "1 ms"
outage = { listed = [["0 s", "9 s"]] }
"""


def test_an_outage_of_the_whole_run_is_drawn(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "down.toml", str(tmp_path / "out.svg")
    scenario.write_text(_DOWN)
    assert main([str(scenario), "--out", out]) == 2
    assert "down.toml: a-b sends no data" in capfd.readouterr().err
    assert main([str(scenario), "--link", "a>b", "--out", out]) == 0
    # Nothing comes, and nothing could leave.
    assert main([str(scenario), "--link", "b>a", "--out", out]) == 2
    assert "nothing happened between 0 s and 5 s" in capfd.readouterr().err
    short = [str(scenario), "--set", "duration=0.5 ms", "--set", "link.0.outage.listed=[]"]
    assert main([*short, "--link", "b>a", "--out", out]) == 2
    assert f"{scenario}: the log of b>a has no packets" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["-x.toml", "a$b$.toml", r"$\frac{$.toml", "_a <&>.toml"])
def test_a_file_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(_DOWN.replace("0 s", "8 s"))
    assert main(["--set", "duration=0.1 s", "--out", "out.svg", "--", name]) == 0
    # Not as a formula.
    flow = FlowTimeline("a", acked=Points.of([(0.0, 0), (1.0, 1)]))
    painted = _paint(flow_chart(flow, [], (0.0, 1.0), name))
    assert painted.get_suptitle() == f"a, {name}".replace("$", r"\$")


def test_the_legend_has_every_name() -> None:
    points = [Points.of([(0.0, 1.0), (1.0, 2.0)])]
    painted = _paint(cdf_chart("rtt", {"_a": points, "b": points}, (0.0, 1.0), ""))
    (legend,) = painted.legends
    assert [text.get_text().strip() for text in legend.get_texts()] == ["_a", "b"]


def test_a_scenario_without_tcp_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    scenario = str(EXAMPLES / "quic.toml")
    assert main([scenario, "--set", "duration=1 s", "--set", "link.radio.outage.listed=[]"]) == 2
    assert f"{scenario}: no TCP flow sends anything" in capfd.readouterr().err


def test_a_scenario_without_links_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(EXAMPLES / "manet.toml"), "--link", "n0>n1"]) == 2
    assert "no link 'n0>n1' (it has: none)" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--views", "windw"], "no view 'windw': expected one of sequence, window, rtt, rate (did"),
        (
            ["--flow", "downlaod"],
            "no flow 'downlaod' (it has: download) (did you mean 'download'?)",
        ),
        (["--from", "61"], "nothing from 61 s until 60 s"),
        (["--sequence", "--from", "61"], "nothing from 61 s until 60 s"),
        (["--from", "61", "--until", "70"], "nothing from 61 s until 70 s (the file ends at 60 s)"),
        (["--until", "inf"], "nothing from 0 s until inf s"),
        (["--from", "1.5 min", "--until", "95000ms"], "nothing from 90 s until 95 s"),
        (["--cdf", "delay"], "--cdf delay is of a link (expected --link NAME beside it)"),
        (["--views", "rate,queue"], "--views queue is of a link (expected --link NAME beside it)"),
        (
            ["--link", "AP>phone", "--views", "rtt"],
            "--views rtt is of a flow: of a link there are rate, delay, queue",
        ),
        (
            ["--cdf", "rtt", "--link", "AP>phone"],
            "--cdf rtt is of flows: of a link there is --cdf delay",
        ),
        (["--seed", "-1"], "seed -1: expected a number from 0 to 2^64 - 1"),
        (["--out", "."], ".: unknown kind of picture"),
    ],
)
def test_mistakes_are_found_before_a_scenario_is_run(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    expected: str,
) -> None:
    monkeypatch.setattr("airtcp._native.cli_main", lambda _: pytest.fail("it is run"))
    assert main([str(EXAMPLES / "quickstart.toml"), *arguments]) == 2
    assert expected in capfd.readouterr().err


@pytest.mark.parametrize("option", ["--from", "--until"])
@pytest.mark.parametrize("time", ["3x", "3 Mbit/s", "soon", "1.2.3 s", ""])
def test_what_is_no_time_is_named(
    option: str, time: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main([str(EXAMPLES / "quickstart.toml"), option, time])
    assert refused.value.code == 2
    message = f"argument {option}: {time!r}: expected a time, such as '3 s' or '500 ms'"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--views", "windw"], "no view 'windw': expected one of sequence, window, rtt, rate (did"),
        (["--flow", "web"], "no flow 'web' (it has: web one) (did you mean 'web one'?)"),
        (["--from", "9"], "nothing from 9 s until 1.7 s"),
        (["--seed", "3"], "--seed has no effect: it is not a scenario"),
        (["--out", "x.gif"], "x.gif: unknown kind of picture (expected .svg, .png, .pdf, .html)"),
        (["--out", "none/x.svg"], "none/x.svg: there is no folder none"),
    ],
)
def test_what_can_have_no_effect_is_refused(
    events: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert main([str(events), *arguments]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.jsonl", '{"t":1}\n', "line 1: '{\"t\":1}' is not an event"),
        (
            "a.jsonl",
            '{"t":1,"source":"node AP","event":"x"}\n',
            "no TCP flow sends anything",
        ),
        ("up.log", "# base timestamp: 0\n1 ? 2\n", "line 2: '1 ? 2' (expected `MS + BYTES`"),
        ("up.log", "# base timestamp: 0\n", "the log has no packets"),
        ("up.log", "# base timestamp: now\n", "up.log: line 1: '# base timestamp: now' (expected"),
        ("up.log", "# base timestamp: 0\n1 + 5\n\udcff\n", "up.log: line 3: '\ufffd' (expected"),
        ("notes.txt", "hello\n", "unknown contents (expected a scenario's .toml"),
    ],
)
def test_files_of_other_forms_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, expected: str
) -> None:
    path = tmp_path / name
    path.write_text(text, errors="surrogateescape")
    assert main([str(path)]) == 2
    assert expected in capsys.readouterr().err
