//! What became of packets.

use std::collections::BTreeMap;

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) passed: u64,
    /// Answered, or not needed.
    pub(super) dropped: u64,
    /// Kept, to be sent when the mobile is back.
    pub(super) held: u64,
    pub(super) injected: u64,
    /// Passed untouched: not TCP, a fragment, malformed.
    pub(super) undecodable: u64,
    /// Passed untouched: of no group.
    pub(super) unmatched: u64,
    /// Passed untouched: only the hosts can send valid segments on this connection.
    pub(super) foreign: u64,
    /// Could not be encoded.
    pub(super) unsendable: u64,
    /// Promises that were not given because they could not be written down.
    pub(super) unkept: u64,
    /// Connections of an earlier process that were reset.
    pub(super) refused: u64,
    /// Messages of routers that a segment was too big.
    pub(super) too_big_accepted: u64,
    /// The same, of no segment in flight.
    pub(super) too_big_ignored: u64,
}

impl Counters {
    /// Each with the name of its metric.
    pub(super) fn by_name(self) -> BTreeMap<String, u64> {
        let Self {
            passed,
            dropped,
            held,
            injected,
            undecodable,
            unmatched,
            foreign,
            unsendable,
            unkept,
            refused,
            too_big_accepted,
            too_big_ignored,
        } = self;
        owned([
            ("packets_passed", passed),
            ("packets_dropped", dropped),
            ("packets_held", held),
            ("packets_injected", injected),
            ("packets_undecodable", undecodable),
            ("packets_unmatched", unmatched),
            ("packets_foreign", foreign),
            ("packets_unsendable", unsendable),
            ("promises_unkept", unkept),
            ("takeovers_refused", refused),
            ("too_big_accepted", too_big_accepted),
            ("too_big_ignored", too_big_ignored),
        ])
    }
}

/// Counters as a status has them.
pub(super) fn owned(
    counters: impl IntoIterator<Item = (&'static str, u64)>,
) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
