//! The netlink messages that airtcp needs, without the kernel's headers.
//!
//! Read first: netlink(7), RFC 3549 §2. A message is a header, a header of its family, and
//! attributes (length, type, value, padded to four bytes), which may be nested. [`Message`] builds
//! one, [`messages`] and [`attributes`] parse them, [`Netlink`] sends requests and turns refusals
//! into errors.

use nix::sys::socket::{NetlinkAddr, bind};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Size of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// Bits of an attribute's type that are flags (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const TYPE_MASK: u16 = 0x3fff;
const NESTED: u16 = 0x8000;

/// One request to the kernel.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A request of type `kind` with the family's `header`; `flags` are added to `NLM_F_REQUEST`.
    pub(crate) fn new(kind: u16, flags: i32, header: &[u8]) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(header);
        Self(bytes)
    }
    /// A request of netfilter: `struct nfgenmsg`, whose resource is in network order.
    pub(crate) fn netfilter(subsystem: i32, kind: i32, flags: i32, family: i32, id: u16) -> Self {
        let id = id.to_be_bytes();
        Self::new((subsystem << 8 | kind) as u16, flags, &[family as u8, 0, id[0], id[1]])
    }
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        attribute(&mut self.0, kind, value);
        self
    }
    /// Adds a NUL-terminated string.
    pub(crate) fn with_name(self, kind: u16, name: &str) -> Self {
        self.with(kind, &terminated(name))
    }
    pub(crate) fn with_nested(self, kind: u16, value: &[u8]) -> Self {
        self.with(kind | NESTED, value)
    }
    /// The bytes of the message.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

fn terminated(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Bytes of one attribute, for nesting.
pub(crate) fn one(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    attribute(&mut bytes, kind, value);
    bytes
}

/// Bytes of one attribute that is a string.
pub(crate) fn one_name(kind: u16, name: &str) -> Vec<u8> {
    one(kind, &terminated(name))
}

/// Attributes, as type without flags and value, up to the first malformed one.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & TYPE_MASK, value))
    })
}

/// The value of the first attribute of this type.
pub(crate) fn value_of(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// The name in an attribute that is a string.
pub(crate) fn name(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.strip_suffix(&[0]).unwrap_or(value)).ok()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// An open netlink socket.
#[derive(Debug)]
pub(crate) struct Netlink(Socket);

impl Netlink {
    /// Opens a socket of `protocol` (`NETLINK_ROUTE`, …).
    pub(crate) fn open(protocol: i32) -> io::Result<Self> {
        let socket =
            Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(protocol)))?;
        // The kernel answers at once; if it does not, the program must not hang.
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        Ok(Self(socket))
    }

    /// The socket, for messages that are not answers.
    pub(crate) fn socket(&self) -> &Socket {
        &self.0
    }

    /// Sends `request` and returns the body (after `nlmsghdr`) of the first answer: empty for a
    /// plain acknowledgement, an error if the kernel refused.
    pub(crate) fn ask(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        (&self.0).write_all(request)?;
        let mut buffer = vec![0; 32 * 1024];
        let length = (&self.0).read(&mut buffer)?;
        answer(&buffer[..length])
    }
}

/// Room for the messages of one datagram (the kernel fills at most 32 KiB in a dump).
const BUFFER: usize = 64 * 1024;

impl Netlink {
    /// Opens a non-blocking socket of `protocol` that receives the notifications of `groups` (one
    /// bit each, `RTMGRP_LINK`, …).
    pub(crate) fn subscribe(protocol: i32, groups: i32) -> io::Result<Self> {
        let Self(socket) = Self::open(protocol)?;
        socket.set_nonblocking(true)?;
        // If it overflows, the kernel returns ENOBUFS, and the state must be read again.
        socket.set_recv_buffer_size(1 << 20)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
        Ok(Self(socket))
    }

    /// Sends `request`, which has `NLM_F_DUMP`, and returns all answers: type and body.
    pub(crate) fn dump(&self, request: &[u8]) -> io::Result<Vec<(u16, Vec<u8>)>> {
        (&self.0).write_all(request)?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = (&self.0).read(&mut buffer)?;
            for (kind, body) in messages(&buffer[..length]) {
                if i32::from(kind) == libc::NLMSG_DONE {
                    return Ok(answers);
                }
                if i32::from(kind) == libc::NLMSG_ERROR {
                    refusal(body)?;
                    return Ok(answers);
                }
                answers.push((kind, body.to_vec()));
            }
        }
    }

    /// The next datagram of a subscription (see [`messages`]); `None` if none waits.
    pub(crate) fn next(&self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = vec![0; BUFFER];
        match (&self.0).read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                Ok(Some(buffer))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The messages in a datagram, as type and body, up to the first malformed one.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 4)?;
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The error in the body of an `NLMSG_ERROR`; 0 is an acknowledgement.
fn refusal(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).ok_or(io::ErrorKind::InvalidData)? as i32 {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno.wrapping_neg())),
    }
}

fn answer(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let length = u32_at(bytes, 0).ok_or_else(malformed)? as usize;
    let body = bytes.get(HEADER..length).ok_or_else(malformed)?;
    if u16_at(bytes, 4) != Some(libc::NLMSG_ERROR as u16) {
        return Ok(body.to_vec());
    }
    refusal(body).map(|()| Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_and_padded_attributes() {
        let bytes = Message::new(36, 4, &[9; 4]).with_name(1, "clsact").finish();
        assert_eq!(u32_at(&bytes, 0), Some(16 + 4 + 12));
        assert_eq!(bytes.len(), 32);
        let found: Vec<_> = attributes(&bytes[20..]).collect();
        assert_eq!(found, [(1, b"clsact\0".as_slice())]);
    }

    #[test]
    fn nested_attributes_are_found_without_their_flag() {
        let inner = [one(1, &[7]), one_name(2, "queue")].concat();
        let bytes = Message::new(0, 0, &[]).with_nested(4, &inner).finish();
        let (kind, value) = attributes(&bytes[HEADER..]).next().unwrap();
        assert_eq!(kind, 4);
        let names: Vec<_> = attributes(value).map(|(k, v)| (k, name(v))).collect();
        assert_eq!(names, [(1, Some("\u{7}")), (2, Some("queue"))]);
    }

    #[test]
    fn malformed_attributes_end_the_list() {
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[4, 0]).count(), 0);
    }

    #[test]
    fn messages_are_read_one_after_the_other_up_to_one_that_is_cut() {
        let message = |kind, body: &[u8]| Message::new(kind, 0, body).finish();
        let mut bytes = [message(16, &[1, 2, 3, 4]), message(17, &[])].concat();
        let found: Vec<_> = messages(&bytes).collect();
        assert_eq!(found, [(16, &[1, 2, 3, 4][..]), (17, &[])]);
        bytes.pop();
        assert_eq!(messages(&bytes).count(), 1);
        assert_eq!(messages(&[0; 16]).count(), 0, "a length of 0 must not be read for ever");
    }

    #[test]
    fn a_refusal_is_an_error_and_an_acknowledgement_is_empty() {
        let with = |errno: i32| {
            let header = Message::new(libc::NLMSG_ERROR as u16, 0, &errno.to_ne_bytes()).finish();
            answer(&header)
        };
        assert!(with(0).unwrap().is_empty());
        assert_eq!(with(-libc::ENOENT).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(answer(&[1, 2, 3]).is_err());
    }
}
