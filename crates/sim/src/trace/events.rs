//! Events as JSON, one object per line, written as they happen.
//!
//! ```json
//! {"t":2.069000000,"source":"flow ftp sender","event":"cwnd_reduced","cause":"duplicate_acks","from":20000,"to":10000}
//! ```
//! `t` is the simulated time in seconds. Sequence and acknowledgement numbers are as in the
//! segments, sizes are bytes, times are seconds.

use crate::scenario::Scenario;
use airtcp_core::event::{
    AbortReason, Cause, DropReason, Event, PlayerState, Source, Spurious, Subscriber,
};
use airtcp_core::{Duration, Flow, Instant, SeqNum};
use std::io::{self, Write};

/// Writes every event of a run.
pub struct EventWriter<W: Write> {
    writer: W,
    flows: Vec<String>,
    links: Vec<String>,
    nodes: Vec<String>,
    error: Option<io::Error>,
}

impl<W: Write> EventWriter<W> {
    /// Writes to `writer`, line by line (give it a buffered one); the scenario provides the names
    /// of sources.
    pub fn new(writer: W, scenario: &Scenario) -> Self {
        Self {
            writer,
            flows: scenario.flows.iter().map(|f| f.name.clone()).collect(),
            links: scenario.links.iter().map(|l| l.name.clone()).collect(),
            nodes: scenario.nodes.iter().map(|n| n.name.clone()).collect(),
            error: None,
        }
    }

    /// Flushes and returns the writer.
    ///
    /// # Errors
    /// The first error of the run, after which nothing more was written, or the error of the flush.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| self.writer),
        }
    }

    fn write(&mut self, at: Instant, source: Source, event: &Event) -> io::Result<()> {
        // Names in a scenario are letters, digits, '-', '_' and, in links, '>': nothing to escape.
        let name = |names: &[String], i: u32| names.get(i as usize).cloned().unwrap_or_default();
        let (kind, name, end, transfer) = match source {
            Source::Sender(of) => ("flow", name(&self.flows, of.flow), " sender", of.transfer),
            Source::Receiver(of) => ("flow", name(&self.flows, of.flow), " receiver", of.transfer),
            Source::Link(i) => ("link", name(&self.links, i), "", None),
            Source::Node(i) => ("node", name(&self.nodes, i), "", None),
        };
        let out = &mut self.writer;
        write!(
            out,
            "{{\"t\":{at},\"source\":\"{kind} {name}{end}\",\"event\":\"{}\"",
            word(event)
        )?;
        if let Some(number) = transfer {
            write!(out, ",\"transfer\":{number}")?;
        }
        write_fields(out, event)?;
        out.write_all(b"}\n")
    }
}

/// The value of the member `event`.
fn word(event: &Event) -> &'static str {
    match event {
        Event::SegmentSent { .. } => "segment_sent",
        Event::AckReceived { .. } => "ack_received",
        Event::Delivered { .. } => "delivered",
        Event::Window { .. } => "window",
        Event::CwndReduced { .. } => "cwnd_reduced",
        Event::Rtt { .. } => "rtt",
        Event::RtoExpired { .. } => "rto_expired",
        Event::LargerRestart { .. } => "larger_restart",
        Event::FastRetransmit { .. } => "fast_retransmit",
        Event::SpuriousDetected { .. } => "spurious_detected",
        Event::Persist { .. } => "persist",
        Event::WindowProbe => "window_probe",
        Event::Standby { .. } => "standby",
        Event::Established => "established",
        Event::Closed => "closed",
        Event::Aborted { .. } => "aborted",
        Event::OutageOver { .. } => "outage_over",
        Event::TransferCompleted { .. } => "transfer_completed",
        Event::SegmentRequested { .. } => "segment_requested",
        Event::Player { .. } => "player",
        Event::Dropped { .. } => "dropped",
        Event::RouteFailed { .. } => "route_failed",
        Event::RouteFound { .. } => "route_found",
        Event::Injected { .. } => "injected",
    }
}

/// Writes the other members of an event's object.
fn write_fields(out: &mut impl Write, event: &Event) -> io::Result<()> {
    match *event {
        Event::SegmentSent { seq, len, retransmission } => {
            write!(out, ",\"seq\":{seq},\"len\":{len},\"retransmission\":{retransmission}")
        }
        Event::AckReceived { ack, duplicate } => {
            write!(out, ",\"ack\":{ack},\"duplicate\":{duplicate}")
        }
        Event::Delivered { total } => write!(out, ",\"total\":{}", total.get()),
        Event::Window { cwnd, ssthresh, flight } => {
            write!(out, ",\"cwnd\":{cwnd},\"ssthresh\":{ssthresh},\"flight\":{flight}")
        }
        Event::CwndReduced { cause, from, to } => {
            let cause = cause_word(cause);
            write!(out, ",\"cause\":\"{cause}\",\"from\":{from},\"to\":{to}")
        }
        Event::Rtt { sample, srtt, rttvar, rto } => {
            let [sample, srtt, rttvar, rto] = [sample, srtt, rttvar, rto].map(seconds);
            write!(out, ",\"sample\":{sample},\"srtt\":{srtt},\"rttvar\":{rttvar},\"rto\":{rto}")
        }
        Event::RtoExpired { seq, count, rto } => {
            write!(out, ",\"seq\":{seq},\"count\":{count},\"rto\":{}", seconds(rto))
        }
        Event::LargerRestart { cwnd, duplicate_acks } => {
            write!(out, ",\"cwnd\":{cwnd},\"duplicate_acks\":{duplicate_acks}")
        }
        Event::FastRetransmit { seq } => write!(out, ",\"seq\":{seq}"),
        Event::SpuriousDetected { kind } => write!(out, ",\"kind\":\"{}\"", spurious_word(kind)),
        Event::Persist { active } | Event::Standby { active } => {
            write!(out, ",\"active\":{active}")
        }
        Event::Aborted { reason } => write!(out, ",\"reason\":\"{}\"", abort_word(reason)),
        Event::OutageOver { dead } => write!(out, ",\"dead\":{}", seconds(dead)),
        Event::TransferCompleted { number, bytes, time } => {
            let (bytes, time) = (bytes.get(), seconds(time));
            write!(out, ",\"number\":{number},\"bytes\":{bytes},\"time\":{time}")
        }
        Event::SegmentRequested { bitrate, buffer } => {
            let (bitrate, buffer) = (bitrate.bits_per_sec(), seconds(buffer));
            write!(out, ",\"bitrate\":{bitrate},\"buffer\":{buffer}")
        }
        Event::Player { state, buffer } => {
            let (state, buffer) = (player_word(state), seconds(buffer));
            write!(out, ",\"state\":\"{state}\",\"buffer\":{buffer}")
        }
        Event::Dropped { reason, flow, seq, len } => {
            write!(out, ",\"reason\":\"{}\"", drop_word(reason))?;
            write_flow(out, flow, seq)?;
            write!(out, ",\"len\":{len}")
        }
        Event::RouteFailed { to } | Event::RouteFound { to } => write!(out, ",\"to\":\"{to}\""),
        Event::Injected { flow, seq, ack } => {
            write_flow(out, flow, seq)?;
            write!(out, ",\"ack\":{ack}")
        }
        Event::WindowProbe | Event::Established | Event::Closed => Ok(()),
    }
}

/// A duration in the format of an [`Instant`]: seconds with nine decimals.
fn seconds(duration: Duration) -> Instant {
    Instant::ZERO + duration
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Rto => "rto",
        Cause::DuplicateAcks => "duplicate_acks",
        Cause::Ecn => "ecn",
    }
}

fn spurious_word(kind: Spurious) -> &'static str {
    match kind {
        Spurious::Timeout => "timeout",
        Spurious::FastRetransmit => "fast_retransmit",
    }
}

fn abort_word(reason: AbortReason) -> &'static str {
    match reason {
        AbortReason::RetransmissionLimit => "retransmission_limit",
        AbortReason::UserTimeout => "user_timeout",
        AbortReason::Reset => "reset",
        AbortReason::User => "user",
    }
}

fn player_word(state: PlayerState) -> &'static str {
    match state {
        PlayerState::Starting => "starting",
        PlayerState::Playing => "playing",
        PlayerState::Stalled => "stalled",
        PlayerState::Ended => "ended",
    }
}

fn drop_word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Queue => "queue",
        DropReason::Loss => "loss",
        DropReason::Policer => "policer",
        DropReason::Outage => "outage",
        DropReason::Handover => "handover",
        DropReason::Middlebox => "middlebox",
        DropReason::NoRoute => "no_route",
        DropReason::TtlExpired => "ttl_expired",
        DropReason::Retries => "retries",
        DropReason::Unheard => "unheard",
    }
}

fn write_flow(out: &mut impl Write, flow: Flow, seq: SeqNum) -> io::Result<()> {
    write!(out, ",\"src\":\"{}\",\"dst\":\"{}\",\"seq\":{seq}", flow.src, flow.dst)
}

impl<W: Write> Subscriber for EventWriter<W> {
    fn on_event(&mut self, at: Instant, source: Source, event: &Event) {
        if self.error.is_none() {
            self.error = self.write(at, source, event).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Bytes, Connection, DataRate};

    fn scenario() -> Scenario {
        let text = r#"
            duration = "1 s"
            node = [{ name = "A" }, { name = "B" }]
            link = [{ between = ["A", "B"], rate = "1 Mbit/s", delay = "1 ms" }]
            flow = [{ name = "ftp", from = "A", to = "B" }]"#;
        Scenario::parse("t.toml", text, &[]).unwrap()
    }

    #[test]
    fn every_event_is_a_json_object_on_a_line_of_its_own() {
        let (seq, ack, len) = (SeqNum(u32::MAX), SeqNum(7), 1000);
        let flow = Flow::default();
        let ms = Duration::from_millis;
        let events = [
            Event::SegmentSent { seq, len, retransmission: false },
            Event::AckReceived { ack, duplicate: true },
            Event::Delivered { total: Bytes(9) },
            Event::Window { cwnd: 1, ssthresh: 2, flight: 3 },
            Event::CwndReduced { cause: Cause::DuplicateAcks, from: 20_000, to: 10_000 },
            Event::Rtt { sample: ms(1), srtt: ms(2), rttvar: ms(3), rto: ms(1000) },
            Event::RtoExpired { seq, count: 1, rto: ms(3000) },
            Event::LargerRestart { cwnd: 2000, duplicate_acks: 1 },
            Event::FastRetransmit { seq },
            Event::SpuriousDetected { kind: Spurious::Timeout },
            Event::Persist { active: true },
            Event::WindowProbe,
            Event::Standby { active: true },
            Event::Established,
            Event::Closed,
            Event::Aborted { reason: AbortReason::Reset },
            Event::OutageOver { dead: ms(5) },
            Event::TransferCompleted { number: 3, bytes: Bytes(9), time: ms(5) },
            Event::SegmentRequested { bitrate: DataRate::mbps(1), buffer: ms(5) },
            Event::Player { state: PlayerState::Stalled, buffer: ms(0) },
            Event::Dropped { reason: DropReason::NoRoute, flow, seq, len },
            Event::RouteFailed { to: flow.dst.ip },
            Event::RouteFound { to: flow.dst.ip },
            Event::Injected { flow, seq, ack },
        ];
        let sources = [
            Source::Sender(Connection::of(0)),
            Source::Receiver(Connection { flow: 0, transfer: Some(7) }),
            Source::Link(1),
            Source::Node(1),
        ];
        let mut writer = EventWriter::new(Vec::new(), &scenario());
        for (event, source) in events.iter().zip(sources.iter().cycle()) {
            writer.on_event(Instant::from_millis(2069), *source, event);
        }
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text.lines().count(), events.len());
        let page = crate::document::markdown();
        let (_, documentation) = page.split_once("## Events").unwrap();
        for line in text.lines() {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(object["t"], 2.069, "{line}");
            let event = object["event"].as_str().unwrap();
            let row = documentation.lines().find(|row| row.starts_with(&format!("| `{event}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/metrics.md has no `{event}`"));
            for (key, value) in object.as_object().unwrap() {
                let known = ["t", "source", "event", "transfer"].contains(&key.as_str())
                    || row.contains(&format!("`{key}`"));
                assert!(known, "docs/metrics.md has no `{key}` of `{event}`");
                if ["cause", "reason", "kind", "state"].contains(&key.as_str()) {
                    assert!(row.contains(&format!("`{}`", value.as_str().unwrap())), "{line}");
                }
            }
        }
        assert_eq!(
            text.lines().nth(4).unwrap(),
            "{\"t\":2.069000000,\"source\":\"flow ftp sender\",\"event\":\"cwnd_reduced\",\
             \"cause\":\"duplicate_acks\",\"from\":20000,\"to\":10000}"
        );
        assert!(text.lines().nth(1).unwrap().starts_with(
            "{\"t\":2.069000000,\"source\":\"flow ftp receiver\",\"event\":\"ack_received\",\
             \"transfer\":7,\"ack\":"
        ));
        assert!(text.contains("\"source\":\"link B>A\""));
        assert!(text.contains("\"source\":\"node B\""));
        assert!(text.contains("\"srtt\":0.002000000"));
    }

    #[test]
    fn an_io_error_is_kept_and_returned_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = EventWriter::new(Full, &scenario());
        writer.on_event(Instant::ZERO, Source::Sender(Connection::of(0)), &Event::Closed);
        writer.on_event(Instant::ZERO, Source::Sender(Connection::of(0)), &Event::Closed);
        let kind = writer.finish().err().map(|e| e.kind());
        assert_eq!(kind, Some(io::ErrorKind::StorageFull));
    }
}
