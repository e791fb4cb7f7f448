//! What is remembered of the two hosts of a connection, and so how large a segment to each of them
//! may be.
//!
//! Read first: RFC 9293 §3.7.1 and RFC 6691 (MSS), RFC 8899 §3 (what arrives tells the path's MTU).
//!
//! A mechanism's segments are cut before they are sent: a copy may be a super-packet of
//! segmentation offload. The MSS that the mobile offered is no sufficient bound. Its path may take
//! less (a tunnel behind the gateway), which the fixed host has learned by ICMP, or by the MSS that
//! a router wrote into the mobile's SYN after the gateway saw it. So to a mobile nothing is larger
//! than the largest segment of the fixed host that it acknowledged, or than [`SAFE_MSS`] if that is
//! more; and when a segment does not fit the first link, or had to be sent again to a mobile that
//! is back, smaller ones are tried. ICMP messages about the gateway's own segments go to the fixed
//! host, in whose name they are; those that pass here say how much smaller.

use airtcp_core::{Payload, Segment, SeqNum};
use airtcp_edge::Side;

/// Payload and options of a segment that fits in the smallest MTU of IPv6 (1280 B, RFC 8200 §5),
/// and in practice of IPv4.
pub const SAFE_MSS: u16 = 1220;

/// The segment size that every host can receive (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

/// A host that offers less gets segments of this size all the same, as from Linux (`TCP_MIN_MSS`):
/// a byte in each would be a flood.
const LEAST_MSS: u16 = 88;

/// Smaller segments are tried when the same was sent so often in a row.
const REPEATS: u8 = 2;

/// The two hosts of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPair {
    /// MSS of each host, by its SYN. A SYN counts when the other host has acknowledged it; until
    /// then anybody may have sent it.
    fixed_mss: Option<u16>,
    mobile_mss: Option<u16>,
    /// The last SYN that opens a connection.
    opening: Option<Opening>,
    /// They use an option that only they can make.
    pub is_foreign: bool,
    /// A segment has shown AccECN: CWR is a part of the counter on every segment (RFC 9768 §3.2.2).
    pub has_accecn: bool,
    /// The largest segment under way to the mobile that is larger than any it acknowledged: where
    /// it ends, and its size.
    under_way: Option<(SeqNum, u16)>,
    /// Size of the largest segment that the mobile acknowledged.
    arrived: u16,
    /// Segments larger than this do not arrive.
    limit: Option<u16>,
    /// Start of the last segment that the gateway sent to a mobile in reach, and the number of
    /// times it was sent.
    repeated: (SeqNum, u8),
}

/// A SYN that is not acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    from: Side,
    seq: SeqNum,
    mss: Option<u16>,
}

impl HostPair {
    /// A SYN went by.
    pub fn note_syn<P: Payload>(&mut self, from: Side, segment: &Segment<P>) {
        let (seq, mss) = (segment.seq, segment.options.mss);
        match (segment.ack, self.opening) {
            (None, _) => self.opening = Some(Opening { from, seq, mss }),
            (Some(ack), Some(first)) if first.from != from && ack == first.seq + 1 => {
                // Another connection takes the place of the one known.
                let (fixed_mss, mobile_mss) = match from {
                    Side::Fixed => (mss, first.mss),
                    Side::Mobile => (first.mss, mss),
                };
                *self = Self { fixed_mss, mobile_mss, ..Self::default() };
            }
            (Some(_), _) => {}
        }
    }

    /// True if [`learn`](Self::learn) would change anything.
    pub fn learns_from<P: Payload>(
        &self,
        from: Side,
        segment: &Segment<P>,
        part: Option<u16>,
    ) -> bool {
        match from {
            Side::Fixed => self.news(segment, part).is_some(),
            Side::Mobile => self.under_way.is_some(),
        }
    }

    /// A segment went on to the other host; `part`: payload bytes of each that offloads make of it,
    /// if that is known.
    pub fn learn<P: Payload>(&mut self, from: Side, segment: &Segment<P>, part: Option<u16>) {
        match (from, segment.ack) {
            (Side::Fixed, _) => {
                if let Some(size) = self.news(segment, part) {
                    self.under_way = Some((segment.seq_end(), size));
                }
            }
            (Side::Mobile, Some(ack)) => {
                if let Some((end, size)) = self.under_way
                    && ack.at_or_after(end)
                {
                    (self.arrived, self.under_way) = (size, None);
                    self.limit = self.limit.filter(|&limit| limit > size);
                }
            }
            (Side::Mobile, None) => {}
        }
    }

    /// The size of a segment, if it is larger than any before.
    fn news<P: Payload>(&self, segment: &Segment<P>, part: Option<u16>) -> Option<u16> {
        let payload = segment.payload.len().min(part.map_or(usize::MAX, usize::from));
        let size = u16::try_from(payload + segment.options.encoded_len()).ok()?;
        // What is larger than the mobile takes is several.
        let most = self.mobile_mss.unwrap_or(if part.is_some() { size } else { SAFE_MSS });
        let known = self.under_way.map_or(self.arrived, |(_, size)| size);
        (payload > 0 && size > known && size <= most).then_some(size)
    }

    /// Data that begins at `seq` is sent to the mobile again.
    pub fn note_replayed(&mut self, seq: SeqNum, is_in_reach: bool) {
        // What it acknowledges may be this.
        self.under_way = None;
        if !is_in_reach {
            return;
        }
        let (known, times) = self.repeated;
        let times = if known == seq { times + 1 } else { 1 };
        self.repeated = (seq, times);
        if times >= REPEATS {
            self.shrink(self.largest(Side::Mobile));
        }
    }

    /// A segment of this size did not fit.
    pub fn note_too_large(&mut self, to: Side, size: usize) {
        // If not, smaller ones are tried already.
        if let Some(size) = u16::try_from(size).ok().filter(|&size| size <= self.largest(to)) {
            self.shrink(size);
        }
    }

    /// A router behind the gateway says that no larger ones get to the mobile.
    pub fn note_room(&mut self, room: usize) {
        let room = u16::try_from(room).unwrap_or(u16::MAX).max(LEAST_MSS);
        if room < self.largest(Side::Mobile) {
            (self.limit, self.repeated.1) = (Some(room), 0);
            self.arrived = self.arrived.min(room);
            // It did not arrive; what is acknowledged instead are pieces of it.
            self.under_way = None;
        }
    }

    /// A segment of this size did not arrive.
    fn shrink(&mut self, size: u16) {
        self.limit = Some(if size > SAFE_MSS { SAFE_MSS } else { DEFAULT_MSS });
        self.repeated.1 = 0;
        self.arrived = 0;
    }

    /// Largest sum of payload and options in a segment to this side.
    pub fn largest(&self, to: Side) -> u16 {
        let most = self.limit.unwrap_or(u16::MAX);
        match to {
            Side::Fixed => self.fixed_mss.unwrap_or(SAFE_MSS).clamp(LEAST_MSS, most),
            Side::Mobile => {
                let safe = self.arrived.max(SAFE_MSS).min(most);
                self.mobile_mss.unwrap_or(safe).clamp(LEAST_MSS, safe)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Flags, Length, Options};

    /// Hosts that have offered these.
    fn hosts(fixed_mss: u16, mobile_mss: u16) -> HostPair {
        let mut hosts = HostPair::default();
        hosts.note_syn(Side::Mobile, &syn(7, None, mobile_mss));
        hosts.note_syn(Side::Fixed, &syn(0, Some(8), fixed_mss));
        hosts
    }

    fn syn(seq: u32, ack: Option<u32>, mss: u16) -> Segment<Length> {
        let options = Options { mss: Some(mss), ..Options::default() };
        let (seq, ack, flags) = (SeqNum(seq), ack.map(SeqNum), Flags::SYN);
        Segment { seq, ack, flags, options, ..Segment::default() }
    }

    fn data(len: u64) -> Segment<Length> {
        Segment { seq: SeqNum(0), payload: Length(len), ..Segment::default() }
    }

    fn ack(ack: u32) -> Segment<Length> {
        Segment { ack: Some(SeqNum(ack)), ..Segment::default() }
    }

    /// The mobile has acknowledged a segment of this length.
    fn arrived(hosts: &mut HostPair, len: u64, part: Option<u16>) -> u16 {
        hosts.learn(Side::Fixed, &data(len), part);
        hosts.learn(Side::Mobile, &ack(len as u32), None);
        hosts.largest(Side::Mobile)
    }

    #[test]
    fn to_a_mobile_nothing_is_larger_than_what_has_arrived() {
        let mut hosts = hosts(1460, 1460);
        assert_eq!(hosts.largest(Side::Mobile), SAFE_MSS, "nothing has");
        hosts.learn(Side::Fixed, &data(1380), None);
        hosts.learn(Side::Mobile, &ack(1379), None);
        assert_eq!(hosts.largest(Side::Mobile), SAFE_MSS, "not all of it");
        hosts.learn(Side::Mobile, &ack(1380), None);
        assert_eq!(hosts.largest(Side::Mobile), 1380);
        assert_eq!(arrived(&mut hosts, 100, None), 1380, "the largest counts");
    }

    #[test]
    fn nothing_is_larger_than_what_a_host_offered() {
        let mut hosts = hosts(1000, 500);
        assert_eq!(arrived(&mut hosts, 1380, None), 500);
        assert_eq!(hosts.largest(Side::Fixed), 1000);
    }

    #[test]
    fn of_a_super_packet_the_parts_count() {
        let mut hosts = hosts(1460, 1460);
        assert_eq!(arrived(&mut hosts, 60_000, Some(1300)), 1300);
        assert_eq!(arrived(&mut hosts, 60_000, None), 1300, "of unknown parts");
        assert_eq!(arrived(&mut HostPair::default(), 1300, None), SAFE_MSS, "it may be two");
    }

    #[test]
    fn a_host_that_offers_a_byte_is_sent_more() {
        let mut hosts = hosts(0, 1);
        assert_eq!([Side::Fixed, Side::Mobile].map(|to| hosts.largest(to)), [LEAST_MSS; 2]);
        hosts.shrink(LEAST_MSS);
        assert_eq!(hosts.largest(Side::Mobile), LEAST_MSS);
    }

    #[test]
    fn what_does_not_fit_is_made_smaller_once_for_all_of_its_size() {
        let mut hosts = hosts(1460, 1460);
        arrived(&mut hosts, 1460, None);
        hosts.note_too_large(Side::Mobile, 1460);
        hosts.note_too_large(Side::Mobile, 1460);
        assert_eq!(hosts.largest(Side::Mobile), SAFE_MSS);
        hosts.note_too_large(Side::Mobile, 1220);
        assert_eq!(hosts.largest(Side::Mobile), DEFAULT_MSS);
    }

    #[test]
    fn what_is_sent_again_to_a_mobile_in_reach_is_made_smaller() {
        let mut hosts = hosts(1460, 1460);
        arrived(&mut hosts, 1460, None);
        for _ in 0..10 {
            hosts.note_replayed(SeqNum(5), false);
        }
        assert_eq!(hosts.largest(Side::Mobile), 1460, "it is away");
        let sizes = [5, 6, 5, 5].map(|seq| {
            hosts.note_replayed(SeqNum(seq), true);
            hosts.largest(Side::Mobile)
        });
        assert_eq!(sizes, [1460, 1460, 1460, SAFE_MSS]);
    }

    #[test]
    fn what_a_router_says_makes_them_smaller_and_never_larger() {
        let mut hosts = hosts(1460, 1460);
        let mut said = |room| {
            hosts.note_room(room);
            hosts.largest(Side::Mobile)
        };
        assert_eq!(said(1300), SAFE_MSS, "nothing larger has arrived");
        let sizes = [1000, 1100, usize::MAX, 0].map(&mut said);
        assert_eq!(sizes, [1000, 1000, 1000, LEAST_MSS]);
        assert_eq!(arrived(&mut hosts, 1400, None), 1400, "the path takes more again");
        hosts.note_room(1300);
        assert_eq!(hosts.largest(Side::Mobile), 1300);
    }

    #[test]
    fn the_segment_that_a_router_returned_has_not_arrived() {
        let mut hosts = hosts(1460, 1460);
        hosts.learn(Side::Fixed, &data(1400), None);
        hosts.note_room(1000);
        hosts.learn(Side::Mobile, &ack(1400), None);
        assert_eq!(hosts.largest(Side::Mobile), 1000);
    }

    #[test]
    fn larger_ones_are_sent_again_when_the_fixed_host_s_arrive() {
        let mut hosts = hosts(1460, 1460);
        arrived(&mut hosts, 1460, None);
        hosts.note_too_large(Side::Mobile, 1460);
        assert_eq!(hosts.largest(Side::Mobile), SAFE_MSS);
        hosts.learn(Side::Fixed, &data(1400), None);
        hosts.note_replayed(SeqNum(0), true);
        hosts.learn(Side::Mobile, &ack(1400), None);
        assert_eq!(hosts.largest(Side::Mobile), SAFE_MSS, "the replayed one may have");
        assert_eq!(arrived(&mut hosts, 1400, None), 1400);
    }
}
