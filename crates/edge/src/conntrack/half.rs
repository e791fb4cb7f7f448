//! One direction of a TCP connection, for a node that only watches: whether its sender may still
//! wait for an answer.
//!
//! Read first: RFC 9293 §3.6 (closing), §3.5.1 (half-open connections);
//! [`validate`](crate::conntrack::validate), on forgeries.
//!
//! A host that has sent its FIN sends no more data, and when the other has acknowledged that FIN it
//! waits for nothing: in FIN-WAIT-2, TIME-WAIT or CLOSED it has no retransmission timer. That ends
//! this direction alone. The other host may go on for hours (a half-closed connection), and its own
//! direction ends in the same way. A reset by either host ends both.
//!
//! - A FIN alone ends nothing: it may be lost, with all that was sent before it. Nor does a pure
//!   ACK behind it: in FIN-WAIT-1 and CLOSING a host acknowledges what the other sends, while its
//!   own data and FIN are outstanding. So both directions must be seen, if only one packet of the
//!   other.
//! - A FIN may be forged, its acknowledgement must be valid. Then everything that was sent before
//!   has arrived, whoever made the FIN.
//! - A reset must have the number that comes next, as for any mechanism.
//! - A SYN proves nothing. A new connection of the same ports shows by its numbers, when a segment
//!   of each host was seen.
//!
//! What is not seen ends nothing.

use crate::conntrack::validate::{Conntrack, Watched, Windows, near};
use crate::middlebox::Side;
use airtcp_core::{Flags, Length, Segment, SeqNum};

/// What a segment shows of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It goes on, for all that is known.
    Ongoing,
    /// The sender waits for nothing any more.
    Ended,
    /// The hosts have another connection of the same ports, or went on unseen.
    Renewed,
}

/// What one host of a connection sends and the other acknowledges.
#[derive(Clone, Debug)]
pub(crate) struct HalfConnection {
    sender: Side,
    conntrack: Conntrack<Windows>,
    /// The number after the sender's latest FIN; not validated.
    fin: Option<SeqNum>,
}

impl HalfConnection {
    /// What the host on this side sends.
    pub(crate) fn new(sender: Side) -> Self {
        Self { sender, conntrack: Conntrack::default(), fin: None }
    }

    /// A segment of either host.
    pub(crate) fn on_segment(&mut self, from: Side, segment: Segment<Length>) -> Seen {
        if from == self.sender && segment.flags.contains(Flags::FIN) {
            self.fin = Some(segment.seq_end());
        }
        match self.conntrack.watch(from, segment) {
            Watched::Reset => Seen::Ended,
            _ if self.is_ended() => Seen::Ended,
            Watched::PickedUpAgain => Seen::Renewed,
            Watched::PickedUp | Watched::Valid | Watched::Invalid => Seen::Ongoing,
        }
    }

    /// A segment of the sender that ends here is of this connection, for all that is known.
    pub(crate) fn covers(&self, seq_end: SeqNum) -> bool {
        let windows = self.conntrack.established.as_ref();
        windows.is_none_or(|windows| near(seq_end, windows.outstanding(self.sender).end))
    }

    /// The sender's FIN and all before it is acknowledged.
    fn is_ended(&self) -> bool {
        self.conntrack.established.as_ref().is_some_and(|windows| {
            let outstanding = windows.outstanding(self.sender);
            outstanding.start == outstanding.end && self.fin == Some(outstanding.end)
        })
    }
}
