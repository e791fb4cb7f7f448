//! What the files of a ledger say, as bytes.
//!
//! A *log* begins with a head (format and version), then come records, each with its length and a
//! checksum: first the boot of the machine, then [`Entry`]s. A killed process leaves whole records
//! and perhaps the beginning of one whose promise was not sent yet. Anything else that is wrong is
//! damage: the reader goes on with the next whole record, and connections whose state depends on
//! what is missing are [`Lost`](Known::Lost).

use crate::packets::SharedBytes;
use airtcp_core::{Flow, Segment};
use airtcp_edge::{Input, MechanismSnapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use thiserror::Error;

/// The first bytes of every log: format and version. A new one whenever the layout of a record
/// changes, or what a mechanism does with an input.
pub const HEAD: [u8; 12] = *b"airtcpLG\x0a\0\0\0";

/// Length of the format's name; the version follows.
const FORMAT: usize = 8;

/// Length of a record's body, its complement, and the body's CRC-32; each four bytes, the lowest
/// first.
const RECORD_HEAD: usize = 12;

/// One thing that is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry<G, S, I> {
    /// All there is to know about a connection of this group: replaces what came before.
    Snapshot(Flow, G, S),
    /// An input to a connection: which one since its snapshot, from 1 on.
    Input(Flow, u32, I),
    /// Everything before about this connection is void.
    Released(Flow),
}

/// An [`Entry`] to write.
pub type NewEntry<'a> = Entry<&'a str, &'a MechanismSnapshot<SharedBytes>, &'a Input<SharedBytes>>;

/// An [`Entry`] that was read.
type OldEntry = Entry<String, MechanismSnapshot<SharedBytes>, Input<SharedBytes>>;

/// A connection as an earlier process left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Group of mobiles.
    pub group: String,
    /// From the fixed to the mobile host.
    pub flow: Flow,
    /// Its state, and the settings it worked by.
    pub snapshot: MechanismSnapshot<SharedBytes>,
}

/// A connection's state on file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// All there is to know: the inputs are those that the snapshot has taken.
    Whole {
        /// Group of mobiles.
        group: String,
        /// Its state, and the settings it worked by.
        snapshot: Box<MechanismSnapshot<SharedBytes>>,
        /// Inputs since it was written.
        inputs: u32,
    },
    /// Some of it is missing.
    Lost,
}

impl Known {
    /// Resets that the fixed and the mobile host accept, if that is known.
    pub fn resets(self) -> Option<[Segment<SharedBytes>; 2]> {
        match self {
            Self::Whole { snapshot, .. } => snapshot.resets(),
            Self::Lost => None,
        }
    }
}

/// A log that cannot be read, or not to its end.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// It is no file of a ledger, or not by the name it should have.
    #[error("not written by airtcp")]
    Foreign,
    /// Another version of airtcp wrote it.
    #[error("written by another version of airtcp")]
    OtherVersion,
    /// Its times are of before a reboot.
    #[error("written before the machine was started")]
    OtherBoot,
    /// A record at this byte that no gateway writes.
    #[error("damaged: byte {0}")]
    Damaged(usize),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Appends the beginning of a log, written in this boot of the machine.
pub fn write_head(out: &mut Vec<u8>, boot: &str) {
    out.extend_from_slice(&HEAD);
    write_record(out, &boot).expect("it is short");
}

/// Appends a record.
///
/// # Errors
/// It is larger than 4 GiB.
pub fn write_record(out: &mut Vec<u8>, body: &impl Serialize) -> io::Result<()> {
    let head = out.len();
    out.extend_from_slice(&[0; RECORD_HEAD]);
    *out = postcard::to_extend(body, std::mem::take(out)).map_err(io::Error::other)?;
    let body = &out[head + RECORD_HEAD..];
    let (len, sum) = (u32::try_from(body.len()).map_err(io::Error::other)?, crc32fast::hash(body));
    for (field, value) in [len, !len, sum].into_iter().enumerate() {
        out[head + 4 * field..][..4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// A log that begins as it should.
#[derive(Clone, Copy, Debug)]
pub struct Log<'a> {
    file: &'a [u8],
    records: &'a [u8],
    /// In which boot of the machine it was written; empty if that is damaged.
    pub boot: &'a str,
}

impl<'a> Log<'a> {
    /// The log in this file.
    ///
    /// # Errors
    /// It is not a log of this version.
    pub fn open(file: &'a [u8]) -> Result<Self, Unreadable> {
        if !file.starts_with(&HEAD[..FORMAT]) {
            return Err(Unreadable::Foreign);
        }
        let mut records = file.strip_prefix(&HEAD).ok_or(Unreadable::OtherVersion)?;
        let all = records;
        let boot = next_record(&mut records).ok().flatten().and_then(|body| decode(body).ok());
        Ok(match boot {
            Some(boot) => Self { file, records, boot },
            None => Self { file, records: all, boot: "" },
        })
    }

    /// Takes it in, behind those before it. `known` has what they say about each connection.
    ///
    /// # Errors
    /// It is damaged; the rest was taken in.
    pub fn read(self, known: &mut BTreeMap<Flow, Known>) -> Result<(), Unreadable> {
        let (mut rest, mut damage) = (self.records, None);
        loop {
            let place = self.file.len() - rest.len();
            match next_record(&mut rest) {
                Ok(Some(body)) => match decode(body) {
                    Ok(entry) => take(entry, known),
                    Err(()) => damage = damage.or(Some(place)),
                },
                Ok(None) if !has_record(rest) => break,
                Ok(None) | Err(()) => {
                    damage = damage.or(Some(place));
                    match concerned(rest).and_then(|flow| known.get_mut(&flow)) {
                        Some(concerned) => *concerned = Known::Lost,
                        None => known.values_mut().for_each(|any| *any = Known::Lost),
                    }
                    rest = &rest[1..];
                    while !rest.is_empty() && !starts_with_record(rest) {
                        rest = &rest[1..];
                    }
                }
            }
        }
        damage.map_or(Ok(()), |place| Err(Unreadable::Damaged(place)))
    }
}

/// The connection that a damaged record seems to be about, unless it was being released.
fn concerned(record: &[u8]) -> Option<Flow> {
    match postcard::take_from_bytes(record.get(RECORD_HEAD..)?).ok()? {
        (Entry::Snapshot(flow, (), ()) | Entry::Input(flow, _, ()), _) => Some(flow),
        (Entry::Released(_), _) => None,
    }
}

fn take(entry: OldEntry, all: &mut BTreeMap<Flow, Known>) {
    match entry {
        Entry::Snapshot(flow, group, snapshot) => {
            let snapshot = Box::new(snapshot);
            all.insert(flow, Known::Whole { group, snapshot, inputs: 0 });
        }
        Entry::Input(flow, number, input) => match all.get_mut(&flow) {
            Some(Known::Whole { snapshot, inputs, .. }) if number == *inputs + 1 => {
                snapshot.apply(input);
                *inputs = number;
            }
            _ => drop(all.insert(flow, Known::Lost)),
        },
        Entry::Released(flow) => drop(all.remove(&flow)),
    }
}

/// The body of the next record; `None` at the end, or when only the beginning of one is there.
fn next_record<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ()> {
    let Some((head, tail)) = rest.split_first_chunk::<RECORD_HEAD>() else { return Ok(None) };
    let field =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if field(0) != !field(4) {
        return Err(());
    }
    let Some((body, tail)) = tail.split_at_checked(field(0) as usize) else { return Ok(None) };
    if crc32fast::hash(body) != field(8) {
        return Err(());
    }
    *rest = tail;
    Ok(Some(body))
}

fn starts_with_record(mut bytes: &[u8]) -> bool {
    matches!(next_record(&mut bytes), Ok(Some(_)))
}

/// There is a whole record behind the first byte.
fn has_record(bytes: &[u8]) -> bool {
    (1..bytes.len()).any(|from| starts_with_record(&bytes[from..]))
}

/// A value that takes up all of a record.
fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ()> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(()),
    }
}
