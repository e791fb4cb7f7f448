//! Pcapng → steps.

use crate::fields::{FieldError, Fields};
use crate::setup::Setup;
use crate::step::{Input, RecordEntry, Step};
use crate::writer::{NANOSECONDS, VERSION, side_name};
use airtcp_core::event::DropReason;
use airtcp_core::{Duration, Instant, Length, LinkSignal, Segment};
use airtcp_edge::{Action, MobileId, Side};
use airtcp_wire::{Checksums, DecodeError, decode_with};
use byteorder_slice::{BigEndian, ByteOrder, LittleEndian};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader, RawBlock};
use pcap_file::{Endianness, PcapError, PcapResult};
use std::io::{self, Read};

/// Types of the blocks in a recording (pcapng §4).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const JOURNAL_ENTRY: u32 = 9;

/// Longest packet accepted, in bytes: twice Linux's `GSO_MAX_SIZE`, more than offloads make.
const LONGEST_PACKET: u32 = 1 << 20;
/// Latest time of a recording, in nanoseconds (292 years); leaves room for the mechanisms' timers.
const LATEST: u64 = u64::MAX / 2;

/// Error in a recording, with its position.
#[derive(Debug, thiserror::Error)]
#[error("block {block}: {fault}")]
pub struct ReadError {
    /// Number of the block, from 1.
    pub block: u64,
    /// Kind of error.
    #[source]
    pub fault: Fault,
}

/// Error in a block of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Reading the file failed.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// The file ends within the block.
    #[error("the file ends within this block")]
    Truncated,
    /// The file violates the pcapng format.
    #[error("not pcapng: {0}")]
    Pcapng(PcapError),
    /// The file is pcapng, but not a recording.
    #[error(
        "not a recording of airtcp gateway (which begins with two interfaces and a journal entry of airtcp)"
    )]
    NotARecording,
    /// The recording has an unsupported version of the format.
    #[error("format version {0}; this airtcp reads version {VERSION}")]
    Version(u32),
    /// The file holds several recordings.
    #[error("another recording begins; replay takes one at a time")]
    AnotherSection,
    /// The interface is not the fixed or mobile side with nanosecond resolution.
    #[error("a packet of interface {0}, which is neither \"fixed\" nor \"mobile\" in nanoseconds")]
    Interface(u32),
    /// The packet is not a TCP segment.
    #[error("the packet is not a TCP segment: {0}")]
    Packet(#[from] DecodeError),
    /// The packet is longer than any that can be recorded.
    #[error("a packet of {0} B exceeds the limit of {LONGEST_PACKET} B")]
    PacketLength(u32),
    /// A value is missing or wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// An action is missing.
    #[error("expected the packet of action {expected:?} in the preceding step")]
    NoAction {
        /// Name of the expected action.
        expected: &'static str,
    },
    /// An action follows no step.
    #[error("an action without a step")]
    StrayAction,
    /// The file ends before the actions of its last step.
    #[error("the file ends before the actions of the last step")]
    Unfinished,
    /// A step without a segment has a drop.
    #[error("a drop in a step without a segment")]
    NothingToDrop,
}

/// Reads a recording entry by entry.
pub struct Reader<R: Read> {
    pcapng: PcapNgReader<R>,
    /// Blocks read so far.
    block: u64,
    clock_offset: Duration,
}

/// A block that belongs to the recording.
enum Found {
    Packet { at: Instant, side: Side, packet: Packet, fields: Fields },
    Journal { at: Instant, fields: Fields },
}

/// A packet of a block, possibly cut off.
struct Packet {
    data: Vec<u8>,
    original_len: u32,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a recording.
    ///
    /// # Errors
    /// `source` is not a recording.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let head = |fault| ReadError { block: 1, fault };
        let pcapng = PcapNgReader::new(source).map_err(|error| head(fault(error)))?;
        let mut reader = Self { pcapng, block: 1, clock_offset: Duration::ZERO };
        reader.read_head().map_err(|fault| reader.error(fault))?;
        Ok(reader)
    }

    /// The next entry and the number of its first block; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged, truncated or not a valid recording.
    pub fn next_entry(&mut self) -> Result<Option<(u64, RecordEntry)>, ReadError> {
        self.read_entry().map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: Fault) -> ReadError {
        ReadError { block: self.block, fault }
    }

    fn read_head(&mut self) -> Result<(), Fault> {
        let Some(Found::Journal { fields, .. }) = self.find()? else {
            return Err(Fault::NotARecording);
        };
        if fields.find("entry") != Some("recording") {
            return Err(Fault::NotARecording);
        }
        match fields.number("version")? {
            VERSION => {}
            other => return Err(Fault::Version(other)),
        }
        self.clock_offset = nanoseconds(&fields, "clock-offset").map(Duration::from_nanos)?;
        Ok(())
    }

    fn read_entry(&mut self) -> Result<Option<(u64, RecordEntry)>, Fault> {
        let Some(found) = self.find()? else { return Ok(None) };
        let block = self.block;
        let entry = match found {
            Found::Packet { at, side: from, packet, fields } => {
                let is_copy = fields
                    .read("input", "segment or copy", |input| match input {
                        "segment" => Some(false),
                        "copy" => Some(true),
                        _ => None,
                    })
                    .map_err(|error| match error {
                        FieldError::Missing { .. } => Fault::StrayAction,
                        invalid => invalid.into(),
                    })?;
                let segment = packet.decode()?;
                let input = match is_copy {
                    false => Input::Segment { from, segment },
                    true => Input::Copy { from, segment },
                };
                self.read_step(at, input, &fields)?
            }
            Found::Journal { at, fields } => match fields.get("entry")? {
                "begin" => RecordEntry::Begin {
                    group: fields.number("group")?,
                    setup: Setup::read(&fields)?,
                },
                "reconfigure" => RecordEntry::Reconfigure {
                    group: fields.number("group")?,
                    setup: Setup::read(&fields)?,
                },
                "restore" => RecordEntry::Restore {
                    group: fields.number("group")?,
                    connections: fields.number("connections")?,
                },
                "input" => {
                    let input = read_input(&fields)?;
                    self.read_step(at, input, &fields)?
                }
                "lost" => RecordEntry::Lost { steps: fields.number("steps")? },
                other => {
                    return Err(Fault::Field(FieldError::Invalid {
                        key: "entry",
                        value: other.to_owned(),
                        expected: "begin, reconfigure, restore, input or lost".to_owned(),
                    }));
                }
            },
        };
        Ok(Some((block, entry)))
    }

    /// Reads the rest of a step.
    fn read_step(
        &mut self,
        at: Instant,
        input: Input<Segment<Length>>,
        fields: &Fields,
    ) -> Result<RecordEntry, Fault> {
        let group = fields.number("group")?;
        let mut actions = Vec::new();
        for (count, name) in fields.read("actions", "such as 2*inject,drop", read_summary)? {
            for _ in 0..count {
                if name == "drop" {
                    let (Input::Segment { segment, .. } | Input::Copy { segment, .. }) = &input
                    else {
                        return Err(Fault::NothingToDrop);
                    };
                    let segment = segment.clone();
                    actions.push(Action::Drop { segment, reason: DropReason::Middlebox });
                } else {
                    actions.push(self.read_action(group, name)?);
                }
            }
        }
        Ok(RecordEntry::Step(Step { at, group, input, actions }))
    }

    /// Reads the packet of an action.
    fn read_action(&mut self, group: u32, name: &'static str) -> Result<Action<Length>, Fault> {
        let Found::Packet { side: to, packet, fields, .. } =
            self.find()?.ok_or(Fault::Unfinished)?
        else {
            return Err(Fault::NoAction { expected: name });
        };
        if fields.find("action") != Some(name) || fields.number::<u32>("group")? != group {
            return Err(Fault::NoAction { expected: name });
        }
        let segment = packet.decode()?;
        Ok(match name {
            "forward" => Action::Forward { to, segment },
            _ => Action::Inject { to, segment },
        })
    }

    /// The next block that belongs to the recording.
    fn find(&mut self) -> Result<Option<Found>, Fault> {
        loop {
            let endianness = self.pcapng.section().endianness;
            let Some(raw) = self.pcapng.next_raw_block() else { return Ok(None) };
            self.block += 1;
            let raw = raw.map_err(fault)?;
            match raw.type_ {
                SECTION_HEADER => return Err(Fault::AnotherSection),
                // The library keeps the interface.
                INTERFACE_DESCRIPTION => continue,
                ENHANCED_PACKET | JOURNAL_ENTRY => {}
                // Other programs may add other blocks: names, statistics, secrets.
                _ => continue,
            }
            let block = match endianness {
                Endianness::Little => parse::<LittleEndian>(raw),
                Endianness::Big => parse::<BigEndian>(raw),
            };
            match block.map_err(fault)? {
                Unpacked::Packet { interface, timestamp, packet, fields } => {
                    let side = self
                        .pcapng
                        .interfaces()
                        .get(interface as usize)
                        .and_then(side)
                        .ok_or(Fault::Interface(interface))?;
                    let at = timestamp.saturating_sub(self.clock_offset.as_nanos()).min(LATEST);
                    return Ok(Some(Found::Packet {
                        at: Instant::from_nanos(at),
                        side,
                        packet,
                        fields,
                    }));
                }
                Unpacked::Journal(fields) => {
                    let at = nanoseconds(&fields, "time")?.min(LATEST);
                    return Ok(Some(Found::Journal { at: Instant::from_nanos(at), fields }));
                }
                Unpacked::OfOthers => {}
            }
        }
    }
}

/// The parts of a block that are needed, copied from the reader's buffer.
enum Unpacked {
    Packet { interface: u32, timestamp: u64, packet: Packet, fields: Fields },
    Journal(Fields),
    OfOthers,
}

fn parse<B: ByteOrder>(raw: RawBlock<'_>) -> PcapResult<Unpacked> {
    Ok(match raw.try_into_block::<B>()? {
        Block::EnhancedPacket(block) => {
            let EnhancedPacketBlock { interface_id, timestamp, original_len, data, options } =
                block;
            let fields = options.iter().find_map(|option| match option {
                EnhancedPacketOption::Comment(comment) => Fields::from_comment(comment),
                _ => None,
            });
            let Some(fields) = fields else { return Ok(Unpacked::OfOthers) };
            let packet = Packet { data: data.into_owned(), original_len };
            // The library reads a 64-bit number of nanoseconds.
            let timestamp = timestamp.as_nanos() as u64;
            Unpacked::Packet { interface: interface_id, timestamp, packet, fields }
        }
        Block::SystemdJournalExport(block) => {
            let fields = Fields::from_journal(std::str::from_utf8(&block.journal_entry)?);
            if fields.is_empty() { Unpacked::OfOthers } else { Unpacked::Journal(fields) }
        }
        _ => Unpacked::OfOthers,
    })
}

impl Packet {
    /// Decodes the segment; omitted user data counts as zeros.
    fn decode(self) -> Result<Segment<Length>, Fault> {
        let Self { mut data, original_len } = self;
        if original_len > LONGEST_PACKET {
            return Err(Fault::PacketLength(original_len));
        }
        data.resize(data.len().max(original_len as usize), 0);
        let length = |payload: &[u8]| Length(payload.len() as u64);
        Ok(decode_with(&data, Checksums::Ignore, length)?.segment)
    }
}

/// Side that an interface of a recording stands for.
fn side(interface: &InterfaceDescriptionBlock<'_>) -> Option<Side> {
    let options = &interface.options;
    let is_in_ns = |option| matches!(option, &InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
    let name = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name),
        _ => None,
    });
    [Side::Fixed, Side::Mobile]
        .into_iter()
        .find(|&side| name.is_some_and(|name| name == side_name(side)))
        .filter(|_| options.iter().any(is_in_ns))
}

/// Reads an input that is not a segment.
fn read_input(fields: &Fields) -> Result<Input<Segment<Length>>, FieldError> {
    if fields.read("input", "signal or timer", |input| match input {
        "signal" => Some(false),
        "timer" => Some(true),
        _ => None,
    })? {
        return Ok(Input::Timer);
    }
    let mobile = |text: &str| {
        let host = text.parse().map(MobileId::Host).ok();
        host.or_else(|| text.parse().map(MobileId::Uplink).ok())
    };
    let mobile = fields.read("mobile", "an IP address or an interface", mobile)?;
    let signal = fields.read("signal", "fading, down or up", LinkSignal::named)?;
    Ok(Input::Signal { mobile, signal })
}

/// Parses the actions as runs: counts and names.
fn read_summary(summary: &str) -> Option<Vec<(u64, &'static str)>> {
    if summary == "none" {
        return Some(Vec::new());
    }
    let run = |run: &str| {
        let (count, name) = match run.split_once('*') {
            Some((count, name)) => (count.parse().ok()?, name),
            None => (1, run),
        };
        let known = ["forward", "drop", "inject"].into_iter().find(|known| *known == name)?;
        // Drops have no packets to bound their number.
        (known != "drop" || count == 1).then_some((count, known))
    };
    summary.split(',').map(run).collect()
}

fn nanoseconds(fields: &Fields, key: &'static str) -> Result<u64, FieldError> {
    fields
        .read(key, "whole nanoseconds (\"5 ns\")", |value| value.strip_suffix(" ns")?.parse().ok())
}

fn fault(error: PcapError) -> Fault {
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Fault::Truncated
        }
        PcapError::IoError(error) => Fault::Io(error),
        other => Fault::Pcapng(other),
    }
}
