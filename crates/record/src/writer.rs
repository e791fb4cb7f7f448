//! Steps → pcapng.
//!
//! Packets are shown as seen on each side: incoming ones on the interface they came from, forwarded
//! or injected ones on the interface they left by. All other inputs are journal entries, which
//! Wireshark lists among the packets. docs/internals/recording-format.md describes the format.

use crate::fields::Fields;
use crate::setup::Setup;
use crate::step::Input;
use airtcp_core::{Duration, Instant, Length, Payload, Segment};
use airtcp_edge::{Action, Side};
use airtcp_wire::{Checksums, EncodeError, decode_with, encode};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::systemd_journal_export::SystemdJournalExportBlock;
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use std::borrow::Cow;

/// Version of the format.
pub(crate) const VERSION: u32 = 1;
/// `if_tsresol` of 10⁻⁹ s.
pub(crate) const NANOSECONDS: u8 = 9;
/// `if_snaplen` without a limit.
const WHOLE_PACKETS: u32 = 0;
/// Direction bits of `epb_flags`.
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;

/// Part of each packet that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Headers only: enough to replay, and user data stays private.
    #[default]
    Headers,
    /// Whole packets, user data included.
    Whole,
}

/// Encodes a recording; the owner writes the bytes to a file.
pub struct Writer {
    pcapng: PcapNgWriter<Vec<u8>>,
    /// Difference between the time since 1970 and the mechanisms' clock.
    clock_offset: Duration,
    contents: Contents,
    /// Buffer for an injected packet.
    scratch: Vec<u8>,
}

impl Writer {
    /// Begins a recording at `now`, which is `since_1970` after the start of 1970.
    pub fn new(now: Instant, since_1970: std::time::Duration, contents: Contents) -> Self {
        let wall = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        let clock_offset = Duration::from_nanos(wall) - now.since_start();
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(
                concat!("airtcp ", env!("CARGO_PKG_VERSION")).into(),
            )],
            ..SectionHeaderBlock::default()
        };
        let pcapng = PcapNgWriter::with_section_header(Vec::new(), section)
            .expect("writing to memory does not fail");
        let mut writer = Self { pcapng, clock_offset, contents, scratch: Vec::new() };
        for side in [Side::Fixed, Side::Mobile] {
            writer.put(InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: WHOLE_PACKETS,
                options: vec![
                    InterfaceDescriptionOption::IfName(side_name(side).into()),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            });
        }
        let fields = Fields::default()
            .with("entry", "recording")
            .with("version", VERSION)
            .with("clock-offset", format_args!("{} ns", clock_offset.as_nanos()));
        writer.journal(now, "recording of airtcp gateway", fields);
        writer
    }

    /// Records the start of a group's mechanism, without connections.
    pub fn begin(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.setup(now, group, setup, "begin", "begins");
    }

    /// Records that a group's mechanism continues with other settings and keeps its connections.
    pub fn reconfigure(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.setup(now, group, setup, "reconfigure", "has other settings");
    }

    /// Records that a group's mechanism took over this many connections from an earlier process.
    pub fn restore(&mut self, now: Instant, group: u32, connections: u64) {
        let message = format!("group {group}: {connections} connections of an earlier process");
        let fields = Fields::default()
            .with("entry", "restore")
            .with("group", group)
            .with("connections", connections);
        self.journal(now, &message, fields);
    }

    /// Records a call of a group's mechanism with the actions that it requested.
    pub fn step<P: Payload>(
        &mut self,
        now: Instant,
        group: u32,
        input: &Input<&[u8]>,
        actions: &[Action<P>],
    ) {
        let summary = summary(actions);
        match *input {
            Input::Segment { from, segment: packet } | Input::Copy { from, segment: packet } => {
                let name = if matches!(input, Input::Copy { .. }) { "copy" } else { "segment" };
                let comment = Fields::default()
                    .with("group", group)
                    .with("input", name)
                    .with("actions", summary);
                self.packet(now, from, INBOUND, packet, self.kept(packet), &comment);
            }
            Input::Signal { mobile, signal } => {
                let signal = signal.name();
                let message = format!("group {group}: the link to {mobile} is {signal}");
                let fields = Fields::default()
                    .with("entry", "input")
                    .with("group", group)
                    .with("input", "signal")
                    .with("mobile", mobile)
                    .with("signal", signal)
                    .with("actions", summary);
                self.journal(now, &message, fields);
            }
            Input::Timer => {
                let fields = Fields::default()
                    .with("entry", "input")
                    .with("group", group)
                    .with("input", "timer")
                    .with("actions", summary);
                self.journal(now, &format!("group {group}: timer"), fields);
            }
        }
        for action in actions {
            let comment = |name| Fields::default().with("group", group).with("action", name);
            match (action, input) {
                // It is forwarded byte for byte.
                (
                    Action::Forward { to, .. },
                    &(Input::Segment { segment: packet, .. } | Input::Copy { segment: packet, .. }),
                ) => {
                    let comment = comment("forward");
                    self.packet(now, *to, OUTBOUND, packet, self.kept(packet), &comment);
                }
                (Action::Forward { to, segment }, _) => {
                    self.made(now, *to, segment, &comment("forward"));
                }
                (Action::Inject { to, segment }, _) => {
                    self.made(now, *to, segment, &comment("inject"));
                }
                // The input's comment already records it.
                (Action::Drop { .. }, _) => {}
            }
        }
    }

    /// Records that `steps` steps could not be written here.
    pub fn lost(&mut self, now: Instant, steps: u64) {
        let fields = Fields::default().with("entry", "lost").with("steps", steps);
        self.journal(now, &format!("{steps} steps could not be recorded"), fields);
    }

    /// Bytes encoded and not yet taken.
    pub fn pending(&self) -> usize {
        self.pcapng.get_ref().len()
    }

    /// Takes the bytes encoded since the last call, in whole blocks.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.pcapng.get_mut())
    }

    fn setup(&mut self, now: Instant, group: u32, setup: &Setup, entry: &str, does: &str) {
        let message = format!("group {group}, {}: {} {does}", setup.name, setup.mechanism.word());
        let mut fields = Fields::default().with("entry", entry).with("group", group);
        setup.put(&mut fields);
        self.journal(now, &message, fields);
    }

    /// Bytes of a packet that are recorded.
    fn kept(&self, packet: &[u8]) -> usize {
        let payload = match self.contents {
            Contents::Whole => 0,
            Contents::Headers => decode_with(packet, Checksums::Ignore, <[u8]>::len)
                .map_or(0, |decoded| decoded.segment.payload),
        };
        packet.len() - payload
    }

    /// Writes a segment that the mechanism generated.
    fn made<P: Payload>(&mut self, now: Instant, to: Side, segment: &Segment<P>, comment: &Fields) {
        let mut packet = std::mem::take(&mut self.scratch);
        packet.clear();
        let payload = segment.payload.len();
        let kept = match encode(segment, &mut packet) {
            Ok(()) if self.contents == Contents::Headers => packet.len() - payload,
            Ok(()) => packet.len(),
            Err(EncodeError::TooLong { .. }) if segment.flow.src.ip.is_ipv6() => {
                put_jumbo_headers(segment, &mut packet);
                packet.len()
            }
            // Without its packet the file has fewer actions than its input says; replay reports it.
            Err(_) => return self.scratch = packet,
        };
        let original = Segment::wire_len(segment).get() as usize;
        self.packet_of(now, to, OUTBOUND, &packet[..kept], original, comment);
        self.scratch = packet;
    }

    fn packet(
        &mut self,
        now: Instant,
        side: Side,
        direction: u32,
        packet: &[u8],
        kept: usize,
        comment: &Fields,
    ) {
        self.packet_of(now, side, direction, &packet[..kept], packet.len(), comment);
    }

    fn packet_of(
        &mut self,
        now: Instant,
        side: Side,
        direction: u32,
        data: &[u8],
        original_len: usize,
        comment: &Fields,
    ) {
        let wall = now + self.clock_offset;
        // Not `put`, which needs to own the data.
        let block = EnhancedPacketBlock {
            interface_id: interface(side),
            timestamp: std::time::Duration::from_nanos(wall.as_nanos()),
            original_len: original_len as u32,
            data: Cow::Borrowed(data),
            options: vec![
                EnhancedPacketOption::Comment(comment.to_comment().into()),
                EnhancedPacketOption::Flags(direction),
            ],
        };
        self.put(block);
    }

    /// Writes a journal entry, starting with the fields that Wireshark and journalctl know.
    fn journal(&mut self, now: Instant, message: &str, fields: Fields) {
        let wall = (now + self.clock_offset).as_nanos() / 1000;
        let message = message.replace(char::is_control, " ");
        let mut entry = format!(
            "__REALTIME_TIMESTAMP={wall}\n__MONOTONIC_TIMESTAMP={}\nPRIORITY=6\n\
             SYSLOG_IDENTIFIER=airtcp\nMESSAGE={message}\n{}",
            now.as_nanos() / 1000,
            fields.with("time", format_args!("{} ns", now.as_nanos())).to_journal()
        );
        // Empty lines end an entry; with them the block needs no padding.
        while entry.len() % 4 != 0 {
            entry.push('\n');
        }
        self.put(SystemdJournalExportBlock { journal_entry: entry.into_bytes().into() });
    }

    fn put<'a>(&mut self, block: impl PcapNgBlock<'a>) {
        self.pcapng.write_pcapng_block(block).expect("writing to memory does not fail");
    }
}

/// Interface name of a side.
pub(crate) const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Fixed => "fixed",
        Side::Mobile => "mobile",
    }
}

/// Interface number of a side.
const fn interface(side: Side) -> u32 {
    match side {
        Side::Fixed => 0,
        Side::Mobile => 1,
    }
}

/// Name of an action in recordings.
pub(crate) const fn action_name<P>(action: &Action<P>) -> &'static str {
    match action {
        Action::Forward { .. } => "forward",
        Action::Drop { .. } => "drop",
        Action::Inject { .. } => "inject",
    }
}

/// Names of the actions in order, with runs of the same as `3*inject`; `none` if there are none.
fn summary<P>(actions: &[Action<P>]) -> String {
    let runs = actions.chunk_by(|a, b| action_name(a) == action_name(b));
    let run = |run: &[Action<P>]| match run {
        [one] => action_name(one).to_owned(),
        many => format!("{}*{}", many.len(), action_name(&many[0])),
    };
    let runs: Vec<String> = runs.map(run).collect();
    if runs.is_empty() { "none".to_owned() } else { runs.join(",") }
}

/// Appends the headers of a segment too long for an IPv6 packet, as offloads leave them: with a
/// payload length of zero.
fn put_jumbo_headers<P: Payload>(segment: &Segment<P>, packet: &mut Vec<u8>) {
    const PAYLOAD_LENGTH: std::ops::Range<usize> = 4..6;
    encode(&segment.with_payload(Length(0)), packet).expect("headers fit in a packet");
    packet[PAYLOAD_LENGTH].fill(0);
}
