//! Translation and comparison of a script's packets and the endpoint's segments.

use super::host::Sent;
use crate::script::{EcnField, Packet, TcpOption};
use airtcp_core::{
    Duration, Ecn, Flags, Flow, Instant, Length, Options, SackBlock, Segment, SeqNum, Timestamps,
};
use std::collections::{BTreeMap, VecDeque};

/// Our initial sequence number: wraps within a script of a few kilobytes.
pub(super) const LOCAL_ISN: SeqNum = SeqNum(0xffff_f000);
/// Offset added to the peer's sequence numbers, so that they wrap as well.
const REMOTE_OFFSET: u32 = 0xffff_f800;

/// Mapping between a script's numbers and the connection's.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The peer's initial sequence number and ours, as the script writes them: segments with SYN
    /// have absolute numbers, the others count from these.
    remote_isn: u32,
    local_isn: u32,
    /// Our timestamps: from the script's to the connection's.
    clocks: BTreeMap<u32, u32>,
    /// The first entry of `clocks`.
    first_clock: Option<(u32, u32)>,
}

/// Rules for comparing timestamps with a script's.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockCheck {
    /// Length of a tick of the script's timestamps.
    pub(super) tick: Duration,
    pub(super) tolerance: Duration,
}

impl Numbers {
    /// Translates a packet that the script injects.
    pub(super) fn inbound(&mut self, packet: &Packet, flow: Flow) -> Segment<Length> {
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.remote_isn = packet.seq;
        }
        let (local, remote) = self.origins(syn);
        let options = packet.options.as_deref().unwrap_or_default();
        Segment {
            flow,
            seq: remote + packet.seq,
            ack: packet.ack.map(|ack| local + ack),
            window: packet.window.unwrap_or(0),
            flags: packet.flags,
            ecn: match packet.ecn {
                Some(EcnField::Is(ecn)) => ecn,
                _ => Ecn::NotEct,
            },
            options: self.options(options, local, |numbers, value, echo| Timestamps {
                value,
                echo: numbers.clock(echo),
            }),
            payload: Length(u64::from(packet.len)),
        }
    }

    /// Origins of the script's sequence numbers: ours and the peer's.
    fn origins(&self, syn: bool) -> (SeqNum, SeqNum) {
        let remote = SeqNum(REMOTE_OFFSET);
        match syn {
            true => (LOCAL_ISN - self.local_isn, remote),
            false => (LOCAL_ISN, remote + self.remote_isn),
        }
    }

    /// The connection's timestamp for the script's `echo`.
    fn clock(&self, echo: u32) -> u32 {
        match (self.clocks.get(&echo), self.first_clock) {
            (Some(clock), _) => *clock,
            (None, Some((script, clock))) if echo != 0 => {
                clock.wrapping_add(echo.wrapping_sub(script))
            }
            _ => echo,
        }
    }

    /// Translates the options; SACK blocks count from `origin`.
    fn options(
        &self,
        list: &[TcpOption],
        origin: SeqNum,
        timestamps: impl Fn(&Self, u32, u32) -> Timestamps,
    ) -> Options {
        let mut options = Options::default();
        for option in list {
            match option {
                TcpOption::Mss(mss) => options.mss = Some(*mss),
                TcpOption::WindowScale(shift) => options.window_scale = Some(*shift),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Timestamps { value, echo } => {
                    options.timestamps = Some(timestamps(self, *value, *echo));
                }
                TcpOption::Sack(blocks) => {
                    let live = |(left, right): &(u32, u32)| SackBlock {
                        left: origin + *left,
                        right: origin + *right,
                    };
                    options.sack = blocks.iter().map(live).collect();
                }
                TcpOption::AccEcn(accecn) => options.accecn = Some(*accecn),
                TcpOption::Nop | TcpOption::Eol | TcpOption::Other(_) => {}
            }
        }
        options
    }

    /// Name of the first field in which `segment` differs from the expected packet; `None` if there
    /// is none.
    pub(super) fn difference(
        &mut self,
        packet: &Packet,
        segment: &Segment<Length>,
        clock: Option<ClockCheck>,
    ) -> Option<&'static str> {
        // Linux sets PSH where its socket buffers end, which is no rule of TCP.
        let flags = |flags: Flags| flags - Flags::PSH;
        let syn = packet.flags.contains(Flags::SYN);
        if syn {
            self.local_isn = packet.seq;
        }
        let (local, remote) = self.origins(syn);
        let differs = [
            (flags(packet.flags) != flags(segment.flags), "flags"),
            (packet.ack.is_some() != segment.ack.is_some(), "flags"),
            (local + packet.seq != segment.seq, "sequence number"),
            (u64::from(packet.len) != segment.payload.0, "length"),
            (packet.ack.map(|ack| remote + ack) != segment.ack, "acknowledgement number"),
            (packet.window.is_some_and(|window| window != segment.window), "window"),
            (!ecn_matches(packet.ecn, segment.ecn), "ECN field"),
        ];
        if let Some((_, name)) = differs.into_iter().find(|(differs, _)| *differs) {
            return Some(name);
        }
        let list = packet.options.as_deref()?;
        let wanted = self.options(list, remote, |_, value, echo| Timestamps { value, echo });
        self.options_difference(&wanted, &segment.options, clock)
    }

    /// Compares options as a set: their order and padding do not matter.
    fn options_difference(
        &mut self,
        wanted: &Options,
        got: &Options,
        clock: Option<ClockCheck>,
    ) -> Option<&'static str> {
        let differs = [
            (wanted.mss != got.mss, "MSS option"),
            (wanted.window_scale != got.window_scale, "window scale option"),
            (wanted.sack_permitted != got.sack_permitted, "SACK-permitted option"),
            (wanted.sack != got.sack, "SACK option"),
            (wanted.accecn != got.accecn, "AccECN option"),
            (wanted.timestamps.is_some() != got.timestamps.is_some(), "timestamps option"),
        ];
        if let Some((_, name)) = differs.into_iter().find(|(differs, _)| *differs) {
            return Some(name);
        }
        let (wanted, got) = (wanted.timestamps?, got.timestamps?);
        if wanted.echo != got.echo {
            return Some("echoed timestamp");
        }
        let (script, live) = *self.first_clock.get_or_insert((wanted.value, got.value));
        self.clocks.insert(wanted.value, got.value);
        let ClockCheck { tick, tolerance } = clock?;
        // Our clock ticks once a millisecond.
        let passed = Duration::from_millis(1) * u64::from(got.value.wrapping_sub(live));
        let said = tick * u64::from(wanted.value.wrapping_sub(script));
        (passed.abs_diff(said) > tolerance).then_some("timestamp")
    }

    /// Formats one of our segments in the script's notation.
    pub(super) fn show(&self, segment: &Segment<Length>) -> String {
        let letters = [("S", Flags::SYN), ("F", Flags::FIN), ("R", Flags::RST), ("P", Flags::PSH)];
        let ecn = [("E", Flags::ECE), ("W", Flags::CWR), ("A", Flags::AE)];
        let mut text: String = (letters.iter().chain(&ecn))
            .filter(|(_, flag)| segment.flags.contains(*flag))
            .map(|(letter, _)| *letter)
            .collect();
        if segment.ack.is_some() {
            text.push('.');
        } else if text.is_empty() {
            text.push('-');
        }
        let (local, remote) = self.origins(segment.flags.contains(Flags::SYN));
        let start = segment.seq.bytes_after_wrapping(local);
        let len = segment.payload.0;
        text += &format!(" {start}:{}({len})", u64::from(start) + len);
        let beyond = |seq: SeqNum| seq.bytes_after_wrapping(remote);
        if let Some(ack) = segment.ack {
            text += &format!(" ack {}", beyond(ack));
        }
        let Options { mss, window_scale, sack_permitted, timestamps, sack, cwnd: _, accecn } =
            &segment.options;
        let mut options = Vec::new();
        options.extend(mss.map(|mss| format!("mss {mss}")));
        options.extend(sack_permitted.then(|| "sackOK".to_owned()));
        options.extend(timestamps.map(|ts| format!("TS val {} ecr {}", ts.value, ts.echo)));
        options.extend(window_scale.map(|shift| format!("wscale {shift}")));
        if !sack.is_empty() {
            let blocks: Vec<String> = (sack.as_slice().iter())
                .map(|block| format!("{}:{}", beyond(block.left), beyond(block.right)))
                .collect();
            options.push(format!("sack {}", blocks.join(" ")));
        }
        options.extend(accecn.map(|accecn| accecn.to_string()));
        if !options.is_empty() {
            text += &format!(" <{}>", options.join(","));
        }
        text
    }
}

/// Distance in the sequence space as an unsigned number.
trait BytesAfterWrapping {
    fn bytes_after_wrapping(self, origin: Self) -> u32;
}

impl BytesAfterWrapping for SeqNum {
    fn bytes_after_wrapping(self, origin: Self) -> u32 {
        self.0.wrapping_sub(origin.0)
    }
}

fn ecn_matches(wanted: Option<EcnField>, got: Ecn) -> bool {
    match wanted {
        None => true,
        Some(EcnField::Is(ecn)) => ecn == got,
        Some(EcnField::Ect01) => matches!(got, Ecn::Ect0 | Ecn::Ect1),
    }
}

/// Takes the next segment sent. If the script expects more payload, segments sent at the same time
/// that continue it are merged, as segmentation offload shows them to a capture.
pub(super) fn take(sent: &mut VecDeque<Sent>, wanted: u32) -> Option<Sent> {
    let mut first = sent.pop_front()?;
    while let Some(next) = sent.front() {
        let (a, b) = (&first.segment, &next.segment);
        let continues = !b.flags.intersects(Flags::SYN | Flags::RST)
            && a.payload.0 > 0
            && b.payload.0 > 0
            && !a.flags.intersects(Flags::SYN | Flags::FIN)
            && a.seq_end() == b.seq
            && (a.ack, a.ecn, &a.options) == (b.ack, b.ecn, &b.options)
            && first.at == next.at;
        if !continues || a.payload.0 >= u64::from(wanted) {
            break;
        }
        first.segment.payload.0 += b.payload.0;
        first.segment.flags |= b.flags;
        sent.pop_front();
    }
    Some(first)
}

/// Formats a time as in a script: `0.25 s`.
pub(super) fn seconds(at: Instant) -> String {
    let text = format!("{:.6}", at.as_secs_f64());
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{short} s")
}
