//! Validation of packets: RFC 5961, for a node between the hosts.
//!
//! Read first: RFC 5961 §3.2 (resets), §4.2 (SYNs), §5.2 (data and acknowledgements).
//!
//! Whoever knows the addresses and ports of a connection can send segments in the name of either
//! host, but must guess the numbers. So a segment changes what the node knows, holds or does only
//! if it is a [`ValidPacket`]: its sequence number *and* its acknowledgement number lie within the
//! windows of both hosts. Invalid packets are forwarded unchanged, and counted by the reason
//! ([`InvalidPacket`]): their receivers check them themselves.
//!
//! The node does not know the window scales, because it may pick up a connection in midstream. A
//! window field times 2^14 would bound nothing, so what was under way bounds the numbers: a segment
//! may lie as far from what was seen as the most bytes that were ever seen under way in that
//! direction, and 64 KiB at least ([`MIN_WINDOW`]). A guess is then right once in 2^30 at the
//! smallest window.
//!
//! - *Resets* need exactly the number that comes next: after what was acknowledged, by the receiver
//!   or on its behalf, or after all that was sent. Any other in the window may be forged, and
//!   changes nothing.
//! - *SYNs* are never valid by themselves (see [`flow_table`](crate::conntrack::flow_table)). A new
//!   connection of the same ports also shows by its numbers.
//! - *Challenge ACKs*: where the node answers for a mobile that is away, it answers invalid packets
//!   as the mobile would, with at most one challenge ACK in [`CHALLENGE_ACK_INTERVAL`]. A fixed
//!   host without the connection replies with a reset of the right number.
//! - *Pickup*: at first nothing is known, and later the hosts may have gone on without the node (a
//!   restart, copies missed). Two segments, one of each host, establish the connection ([`Pickup`])
//!   if they agree: neither acknowledges data that the other has not sent. While genuine segments
//!   of one host are valid, forged ones of the other find none to agree with. An attacker who knows
//!   a number of one host and forges segments of both, while the other is silent, can establish a
//!   connection that does not exist: the hosts ignore the node's segments for it, and their own
//!   next segments are picked up again.
//! - *Early acknowledgements* outlive a pickup. A connection with acknowledged bytes held only here
//!   is picked up again only if the mobile acknowledges more than was ever seen, and nothing at all
//!   has changed in the other direction.

use crate::conntrack::ace::Ace;
use crate::conntrack::flow_table::{FlowState, Tracking};
use crate::conntrack::mobile_peer::MobilePeer;
use crate::middlebox::{Actions, Side};
use airtcp_core::{Duration, Flags, Flow, Instant, Payload, Segment, SeqNum, counters};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, Range};

/// The largest window without scaling (RFC 7323 §2.2), in whole KiB.
const MIN_WINDOW: u32 = 64 << 10;

/// The largest window there is (RFC 7323 §2.3).
const MAX_WINDOW: u32 = 1 << 30;

/// Bytes that may be under way in one direction when a connection is picked up: 1 Gbit/s over half
/// a second.
const PICKUP_WINDOW: u32 = 64 << 20;

/// Bounds the bytes under way in both directions, multiplied: so many in one if the other is as
/// good as idle, 2 MiB in each. Two guesses are then right once in 2^17.
const PICKUP_PRODUCT: u64 = PICKUP_WINDOW as u64 * MIN_WINDOW as u64;

/// Interval of challenge ACKs on a connection, as Linux limits its own
/// (`tcp_invalid_ratelimit`; RFC 5961 §7).
const CHALLENGE_ACK_INTERVAL: Duration = Duration::from_millis(500);

/// A segment that fits into the windows of both hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidPacket<P>(Segment<P>);

impl<P> ValidPacket<P> {
    /// The segment, to be sent on.
    pub fn into_segment(self) -> Segment<P> {
        self.0
    }
}

#[cfg(test)]
impl<P> ValidPacket<P> {
    /// Whatever it is.
    pub(crate) fn unjudged(segment: Segment<P>) -> Self {
        Self(segment)
    }
}

impl<P> Deref for ValidPacket<P> {
    type Target = Segment<P>;
    fn deref(&self) -> &Segment<P> {
        &self.0
    }
}

/// The reason for which a packet is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPacket {
    /// Its sequence number is outside of the receiver's window.
    Sequence,
    /// It acknowledges what was not sent, or was long acknowledged, or nothing at all.
    Acknowledgement,
    /// A reset in the window, but not at the number that comes next.
    Reset,
    /// A SYN on a connection at work.
    Syn,
}

counters! {
    /// Invalid packets by reason, and their consequences.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InvalidPackets {
        /// Invalid segments: their sequence number was outside of the window.
        pub invalid_sequence: u64,
        /// Invalid segments: they acknowledged data that was not sent, or acknowledged long before.
        pub invalid_acknowledgement: u64,
        /// Invalid resets: their number was in the window, but not the expected one.
        pub invalid_reset: u64,
        /// Invalid SYNs: the connection is established.
        pub invalid_syn: u64,
        /// Challenge ACKs sent to fixed hosts on the mobile's behalf, in answer to invalid
        /// segments.
        pub challenge_acks: u64,
        /// Connections picked up anew because both hosts had gone on without the node.
        pub resyncs: u64,
    }
}

impl InvalidPackets {
    fn count(&mut self, reason: InvalidPacket) {
        *match reason {
            InvalidPacket::Sequence => &mut self.invalid_sequence,
            InvalidPacket::Acknowledgement => &mut self.invalid_acknowledgement,
            InvalidPacket::Reset => &mut self.invalid_reset,
            InvalidPacket::Syn => &mut self.invalid_syn,
        } += 1;
    }
}

/// Result of [`Windows::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The segment lies within the windows of both hosts.
    Valid,
    /// A reset with the expected number: it ends the connection.
    Reset,
    /// The segment changes nothing.
    Invalid(InvalidPacket),
}

/// Sequence numbers, acknowledgements and windows of both directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Windows {
    mobile: MobilePeer,
    /// End of the highest segment of the fixed host.
    sent_end: SeqNum,
    /// The fixed host's highest acknowledgement number, and the window field that came with it
    /// last.
    fixed_ack: (SeqNum, u16),
    /// Congestion marks that the fixed host echoed last.
    fixed_ace: Ace,
    /// Assumed windows of both directions: the most bytes seen under way, of the fixed host's data
    /// and of the mobile's.
    max_window: [u32; 2],
    /// The fixed host, the mobile has sent its FIN.
    finished: [bool; 2],
}

impl Windows {
    /// As two segments show them that [agree](Pickup).
    fn new(fixed: &FixedPeer, mobile: &MobilePeer) -> Self {
        let mut windows = Self {
            mobile: *mobile,
            sent_end: fixed.sent_end.later(mobile.ack),
            fixed_ack: fixed.latest_ack(),
            fixed_ace: fixed.ace,
            max_window: [MIN_WINDOW; 2],
            finished: [false; 2],
        };
        windows.note_word(fixed);
        windows.share_accecn();
        windows.widen_windows();
        windows
    }

    /// The mobile's end.
    pub fn mobile(&self) -> &MobilePeer {
        &self.mobile
    }

    /// End of the highest segment of the fixed host.
    pub fn sent_end(&self) -> SeqNum {
        self.sent_end
    }

    /// The fixed host's highest acknowledgement number, and the window field that came with it
    /// last.
    pub fn fixed_ack(&self) -> (SeqNum, u16) {
        self.fixed_ack
    }

    /// Congestion marks that the fixed host echoed last.
    pub fn fixed_ace(&self) -> Ace {
        self.fixed_ace
    }

    /// Sequence numbers that the fixed host has sent and the mobile has not acknowledged.
    pub fn in_flight(&self) -> Range<SeqNum> {
        self.outstanding(Side::Fixed)
    }

    /// Sequence numbers that this host has sent and the other has not acknowledged.
    pub(crate) fn outstanding(&self, sender: Side) -> Range<SeqNum> {
        match sender {
            Side::Fixed => self.mobile.ack..self.sent_end,
            Side::Mobile => self.fixed_ack.0..self.mobile.next_seq,
        }
    }

    /// Both hosts have closed the connection.
    pub fn is_finished(&self) -> bool {
        self.finished == [true; 2]
    }

    /// Both hosts have closed the connection, and have acknowledged everything.
    pub fn is_done(&self) -> bool {
        let is_acknowledged = |sender| {
            let outstanding = self.outstanding(sender);
            outstanding.start.at_or_after(outstanding.end)
        };
        self.is_finished() && [Side::Fixed, Side::Mobile].into_iter().all(is_acknowledged)
    }

    /// Checks a segment against both windows; `ack_sent` is the acknowledgement last sent to the
    /// fixed host on the mobile's behalf, if any.
    fn check<P: Payload>(
        &self,
        from: Side,
        segment: &Segment<P>,
        ack_sent: Option<SeqNum>,
    ) -> Verdict {
        let [down, up] = self.max_window;
        let (mobile_ack, next_seq) = (self.mobile.ack, self.mobile.next_seq);
        let (fixed_ack, _) = self.fixed_ack;
        let fixed_bytes = mobile_ack - down..=self.sent_end + down;
        let mobile_bytes = fixed_ack - up..=next_seq + up;
        let (seqs, acks, next) = match from {
            Side::Fixed => (
                fixed_bytes,
                mobile_bytes,
                [mobile_ack, ack_sent.unwrap_or(mobile_ack), self.sent_end],
            ),
            Side::Mobile => {
                (mobile_bytes, mobile_ack - down..=self.sent_end, [fixed_ack, next_seq, next_seq])
            }
        };
        let is_reset = segment.flags.contains(Flags::RST);
        let is_acceptable =
            |ack: SeqNum| ack.at_or_after(*acks.start()) && ack.at_or_before(*acks.end());
        if segment.flags.contains(Flags::SYN) {
            Verdict::Invalid(InvalidPacket::Syn)
        } else if segment.seq_end().before(*seqs.start()) || segment.seq.after(*seqs.end()) {
            Verdict::Invalid(InvalidPacket::Sequence)
        } else if !segment.ack.map_or(is_reset, is_acceptable) {
            Verdict::Invalid(InvalidPacket::Acknowledgement)
        } else if !is_reset {
            Verdict::Valid
        } else if next.contains(&segment.seq) {
            Verdict::Reset
        } else {
            Verdict::Invalid(InvalidPacket::Reset)
        }
    }

    /// Takes note of a segment.
    pub fn note<P: Payload>(&mut self, from: Side, segment: &ValidPacket<P>) {
        let finishes = segment.flags.contains(Flags::FIN);
        match from {
            Side::Fixed => {
                self.sent_end = self.sent_end.later(segment.seq_end());
                if let Some(word) = FixedPeer::new(segment) {
                    if word.ack.at_or_after(self.fixed_ack.0) {
                        self.fixed_ace = self.fixed_ace.followed_by(word.ace);
                    }
                    self.note_word(&word);
                }
                self.finished[0] |= finishes;
            }
            Side::Mobile => {
                self.mobile.note(segment);
                self.finished[1] |= finishes;
            }
        }
        self.share_accecn();
        self.widen_windows();
    }

    /// The mobile has sent what the fixed host acknowledges and echoes, even if it did not pass
    /// here.
    fn note_word(&mut self, word: &FixedPeer) {
        self.fixed_ack = latest_ack(self.fixed_ack, word.latest_ack());
        self.mobile.next_seq = self.mobile.next_seq.later(word.ack);
        if let (Some(known), Some(echo)) = (&mut self.mobile.timestamps, word.echo) {
            known.value = SeqNum(known.value).later(echo).0;
        }
    }

    /// Both hosts have AccECN, or none.
    fn share_accecn(&mut self) {
        let (mobile, fixed) = (self.mobile.ace, self.fixed_ace);
        (self.mobile.ace, self.fixed_ace) =
            (mobile.as_accurate_as(fixed), fixed.as_accurate_as(mobile));
    }

    fn widen_windows(&mut self) {
        let under_way = [
            self.sent_end.bytes_after(self.mobile.ack),
            self.mobile.next_seq.bytes_after(self.fixed_ack.0),
        ];
        for (max_window, under_way) in self.max_window.iter_mut().zip(under_way) {
            *max_window = under_way.clamp(*max_window, MAX_WINDOW);
        }
    }

    /// The hosts have gone on without the node, and what was acknowledged on the mobile's behalf
    /// has reached it: it has more than ever came by, and the other direction stands still.
    fn is_kept_by(&self, established: &Self) -> bool {
        established.mobile.ack.after(self.sent_end)
            && established.mobile.next_seq == self.mobile.next_seq
            && established.fixed_ack.0 == self.fixed_ack.0
    }
}

/// The fixed end of a connection, as its segments show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FixedPeer {
    /// End of its highest segment.
    sent_end: SeqNum,
    /// Its highest acknowledgement number.
    ack: SeqNum,
    /// The window field that came with it last.
    window: u16,
    /// Congestion marks that it echoed last.
    ace: Ace,
    /// The newest TSval of the mobile that it echoed.
    echo: Option<SeqNum>,
}

impl FixedPeer {
    /// As one segment shows it; `None` when it acknowledges nothing.
    fn new<P: Payload>(segment: &Segment<P>) -> Option<Self> {
        let echo = segment.options.timestamps.map(|timestamps| SeqNum(timestamps.echo));
        let (ack, window, ace) = (segment.ack?, segment.window, Ace::of(segment));
        Some(Self { sent_end: segment.seq_end(), ack, window, ace, echo })
    }

    /// Its highest acknowledgement number, and the window field that came with it last.
    fn latest_ack(&self) -> (SeqNum, u16) {
        (self.ack, self.window)
    }

    fn note(&mut self, later: &Self) {
        self.sent_end = self.sent_end.later(later.sent_end);
        if later.ack.at_or_after(self.ack) {
            (self.ack, self.window) = later.latest_ack();
            self.ace = self.ace.followed_by(later.ace);
        }
        self.echo = match (self.echo, later.echo) {
            // TSval is compared like a sequence number (RFC 7323 §5.2).
            (Some(old), Some(new)) => Some(old.later(new)),
            (old, new) => old.or(new),
        };
    }
}

/// An acknowledgement with its window: `new` unless it acknowledges less.
pub(crate) fn latest_ack(old: (SeqNum, u16), new: (SeqNum, u16)) -> (SeqNum, u16) {
    if new.0.before(old.0) { old } else { new }
}

/// The latest segments of each host that fit no known connection; two that agree establish one, as
/// conntrack's midstream pickup does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pickup {
    fixed: Option<FixedPeer>,
    mobile: Option<MobilePeer>,
    reset: ResetState,
}

/// State of a reset by either host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum ResetState {
    #[default]
    None,
    /// The fixed host has reset the connection, and the mobile, which is away, has not been reset
    /// yet.
    Deferred,
    Done,
}

impl Pickup {
    /// Takes note of a segment; where the connection is, if one of the other host agrees with it.
    pub(crate) fn update<P: Payload>(
        &mut self,
        from: Side,
        segment: &Segment<P>,
    ) -> Option<Windows> {
        if segment.flags.intersects(Flags::SYN | Flags::RST) {
            return None;
        }
        // What agrees by itself counts even where a forgery was noted before.
        let (fixed, mobile, alone) = match from {
            Side::Fixed => {
                let new = FixedPeer::new(segment)?;
                match &mut self.fixed {
                    Some(known)
                        if near(known.sent_end, new.sent_end) && near(known.ack, new.ack) =>
                    {
                        known.note(&new);
                    }
                    other => *other = Some(new),
                }
                (self.fixed?, self.mobile?, (new, self.mobile?))
            }
            Side::Mobile => {
                let new = MobilePeer::new(segment)?;
                match &mut self.mobile {
                    Some(known)
                        if near(known.ack, new.ack) && near(known.next_seq, new.next_seq) =>
                    {
                        known.note(segment);
                    }
                    other => *other = Some(new),
                }
                (self.fixed?, self.mobile?, (self.fixed?, new))
            }
        };
        let pairs = [(fixed, mobile), alone];
        let (fixed, mobile) = pairs.into_iter().find(|(fixed, mobile)| agree(fixed, mobile))?;
        Some(Windows::new(&fixed, &mobile))
    }

    /// A segment of this host fits what is known: what did not fit before is of no interest.
    fn forget(&mut self, from: Side) {
        match from {
            Side::Fixed => self.fixed = None,
            Side::Mobile => self.mobile = None,
        }
    }
}

/// Each host acknowledges about what the other has sent, and not what it has not: a keep-alive or a
/// retransmission shows less than was sent, but by [`MIN_WINDOW`] at most, or the next segment
/// shows more.
fn agree(fixed: &FixedPeer, mobile: &MobilePeer) -> bool {
    let pairs = [(fixed.sent_end, mobile.ack), (mobile.next_seq, fixed.ack)];
    let under_way = pairs.map(|(sent, ack)| u64::from(distance(sent, ack).max(MIN_WINDOW)));
    pairs.iter().all(|&(sent, ack)| near(sent, ack) && ack.at_or_before(sent + MIN_WINDOW))
        && under_way[0] * under_way[1] <= PICKUP_PRODUCT
}

/// Two numbers of one direction that can be of one connection.
pub(crate) fn near(a: SeqNum, b: SeqNum) -> bool {
    distance(a, b) <= PICKUP_WINDOW
}

fn distance(a: SeqNum, b: SeqNum) -> u32 {
    a.offset_from(b).unsigned_abs()
}

/// State of an established connection.
pub trait Established<P: Payload>: AsRef<Windows> + Holding {
    /// A new state for the connection with this flow from the fixed to the mobile host.
    fn new(flow: Flow, windows: Windows) -> Self;
    /// A challenge ACK to the fixed host on the mobile's behalf: it acknowledges `ack_sent` with a
    /// closed window. `None` within `interval` of the last one.
    fn challenge(
        &mut self,
        now: Instant,
        ack_sent: SeqNum,
        interval: Duration,
    ) -> Option<Segment<P>>;
}

/// A state that may hold payload.
pub trait Holding {
    /// Payload bytes held.
    fn held(&self) -> usize;
}

impl Holding for Windows {
    fn held(&self) -> usize {
        0
    }
}

impl AsRef<Windows> for Windows {
    fn as_ref(&self) -> &Windows {
        self
    }
}

/// For a mechanism that sends nothing of its own to the fixed host while the mobile is away.
impl<P: Payload> Established<P> for Windows {
    fn new(_: Flow, windows: Windows) -> Self {
        windows
    }

    fn challenge(&mut self, _: Instant, _: SeqNum, _: Duration) -> Option<Segment<P>> {
        None
    }
}

/// A connection as tracked so far: only a [`Pickup`] until both hosts have been seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conntrack<M> {
    /// Present once segments of both hosts have agreed.
    pub established: Option<M>,
    pickup: Pickup,
}

impl<M> Default for Conntrack<M> {
    fn default() -> Self {
        Self { established: None, pickup: Pickup::default() }
    }
}

impl<M> Conntrack<M> {
    /// The fixed host has reset the connection, and the mobile has not been reset yet.
    pub fn is_reset(&self) -> bool {
        self.pickup.reset == ResetState::Deferred
    }
}

/// What a segment is to a node that only watches: see [`Conntrack::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It changes nothing.
    Invalid,
    Valid,
    /// A reset with the expected number.
    Reset,
    /// Nothing was known before.
    PickedUp,
    /// The hosts have gone on unseen, or have a new connection of the same ports.
    PickedUpAgain,
}

impl Conntrack<Windows> {
    /// Takes note of a segment that goes on in any case, as [`validate`] does of others.
    pub(crate) fn watch<P: Payload>(&mut self, from: Side, segment: Segment<P>) -> Watched {
        let verdict = self.established.as_ref().map(|windows| windows.check(from, &segment, None));
        let watched = match verdict {
            Some(Verdict::Reset) => return Watched::Reset,
            Some(Verdict::Valid) => {
                self.pickup.forget(from);
                Watched::Valid
            }
            Some(Verdict::Invalid(_)) | None => {
                let Some(windows) = self.pickup.update(from, &segment) else {
                    return Watched::Invalid;
                };
                *self = Self { established: Some(windows), ..Self::default() };
                if verdict.is_some() { Watched::PickedUpAgain } else { Watched::PickedUp }
            }
        };
        if let Some(windows) = &mut self.established {
            windows.note(from, &ValidPacket(segment));
        }
        watched
    }
}

/// A connection that was reset is closed and done, too.
impl<M: AsRef<Windows> + Holding> Tracking for Conntrack<M> {
    fn is_closed(&self) -> bool {
        let is_over = self.pickup.reset == ResetState::Done;
        self.established.as_ref().map_or(is_over, |established| established.as_ref().is_finished())
    }

    fn is_done(&self) -> bool {
        let is_over = self.pickup.reset == ResetState::Done;
        self.established.as_ref().map_or(is_over, |established| established.as_ref().is_done())
    }

    fn held(&self) -> usize {
        self.established.as_ref().map_or(0, Holding::held)
    }

    fn in_flight(&self) -> Option<Range<SeqNum>> {
        self.established.as_ref().map(|established| established.as_ref().in_flight())
    }
}

/// A connection's state that is built on a [`Conntrack`].
pub trait Conntracked<P: Payload>: FlowState {
    /// State of an established connection.
    type Established: Established<P>;
    /// The tracking state of the connection.
    fn conntrack(&mut self) -> &mut Conntrack<Self::Established>;
    /// While the node answers the fixed host on the mobile's behalf: the acknowledgement number
    /// that it gave last. Never, for a mechanism that does not.
    fn last_ack_sent(&self) -> Option<SeqNum> {
        None
    }
    /// A reset of the fixed host is to be kept from the mobile, which is away, until it is back and
    /// has what is held for it (see [`Conntrack::is_reset`]).
    fn defers_reset(&self) -> bool {
        false
    }
}

/// The connection was reset: nothing is known of it any more.
pub(crate) fn close<P: Payload, C: Conntracked<P>>(connection: &mut C) {
    *connection = C::default();
    connection.conntrack().pickup.reset = ResetState::Done;
}

/// Validates a segment. `None`: it is invalid, or has ended the connection, or was the mobile's
/// first; it has been sent on as it came, unless it is a reset that is
/// [deferred](Conntracked::defers_reset). A connection that is picked up again has a new state.
pub fn validate<P: Payload, C: Conntracked<P>>(
    connection: &mut C,
    now: Instant,
    from: Side,
    segment: Segment<P>,
    invalid_packets: &mut InvalidPackets,
    out: &mut Actions<P>,
) -> Option<ValidPacket<P>> {
    let (ack_sent, is_committed) = (connection.last_ack_sent(), connection.is_committed());
    let defers_reset = from == Side::Fixed && connection.defers_reset();
    let Conntrack { established, pickup } = connection.conntrack();
    let mut known = None;
    if let Some(established) = established {
        match established.as_ref().check(from, &segment, ack_sent) {
            Verdict::Valid => {
                pickup.forget(from);
                if from == Side::Fixed {
                    // Whoever has reset a connection sends nothing else of it.
                    pickup.reset = ResetState::None;
                }
                return Some(ValidPacket(segment));
            }
            Verdict::Reset if defers_reset => {
                pickup.reset = ResetState::Deferred;
                out.drop(segment);
                return None;
            }
            Verdict::Reset => {
                close(connection);
                out.forward(from.opposite(), segment);
                return None;
            }
            Verdict::Invalid(reason) => {
                invalid_packets.count(reason);
                known = Some(*established.as_ref());
                // RFC 5961 §3.2: a reset outside of the window is not answered.
                let is_answered =
                    reason != InvalidPacket::Sequence || !segment.flags.contains(Flags::RST);
                if let Some(ack_sent) = ack_sent.filter(|_| from == Side::Fixed && is_answered)
                    && let Some(challenge) =
                        established.challenge(now, ack_sent, CHALLENGE_ACK_INTERVAL)
                {
                    invalid_packets.challenge_acks += 1;
                    out.inject(Side::Fixed, challenge);
                }
            }
        }
    }
    if let Some(windows) = pickup.update(from, &segment)
        && known.is_none_or(|known| !is_committed || known.is_kept_by(&windows))
    {
        invalid_packets.resyncs += u64::from(known.is_some());
        *connection = C::default();
        let flow = from.to_mobile(segment.flow);
        connection.conntrack().established = Some(C::Established::new(flow, windows));
        // Checked like any later one: a copy of it may be sent again, with another
        // acknowledgement.
        if from == Side::Fixed
            && let Some(ack) = segment.ack
            && distance(ack, windows.mobile.next_seq) <= MIN_WINDOW
        {
            return Some(ValidPacket(segment));
        }
    }
    out.forward(from.opposite(), segment);
    None
}
