//! Stations as callers see them: identifiers, random streams and counters.

use airtcp_core::{Duration, Stream};

airtcp_core::ids! {
    /// A station, by its index in the list given to [`Channel::new`](super::Channel::new).
    pub struct StationId;
}

/// The receiver of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Receiver {
    /// This station alone.
    Station(StationId),
    /// All in range, unacknowledged.
    Broadcast,
}

/// The random streams of one station.
#[derive(Clone, Debug)]
pub struct StationStreams {
    /// For back-offs.
    pub backoff: Stream,
    /// For bit errors at this receiver.
    pub errors: Stream,
    /// For the queue discipline.
    pub queue: Stream,
    /// For the rates that rate control probes.
    pub rates: Stream,
}

impl StationStreams {
    /// The streams `wlan/<name>/backoff`, `…/errors`, `…/queue` and `…/rates` of the run with seed
    /// `run_seed`; `name` is `<wlan>/<station>`.
    pub fn named(run_seed: u64, name: &str) -> Self {
        let stream = |purpose| Stream::new(run_seed, &format!("wlan/{name}/{purpose}"));
        Self {
            backoff: stream("backoff"),
            errors: stream("errors"),
            queue: stream("queue"),
            rates: stream("rates"),
        }
    }
}

/// Counts of a station since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationCounters {
    /// RTS frames sent.
    pub rts_sent: u64,
    /// CTS frames sent.
    pub cts_sent: u64,
    /// Unicast data frames sent, retries included; of an A-MPDU, its MPDUs.
    pub data_sent: u64,
    /// ACK frames sent, block ACKs included.
    pub acks_sent: u64,
    /// Broadcast data frames sent.
    pub broadcasts_sent: u64,
    /// Attempts that failed and were repeated.
    pub retries: u64,
    /// Attempts that an access function lost to one of higher priority in the station. They are
    /// among `retries`, unless they were the last or for a broadcast.
    pub internal_collisions: u64,
    /// Packets given up that had not reached their receiver.
    pub mac_drops: u64,
    /// Packets given up, including those that lost only their ACK.
    pub link_failures: u64,
    /// Packets refused by the full queue, pushed out of it by an urgent one, or dropped by its
    /// discipline.
    pub queue_drops: u64,
    /// Packets the queue's discipline marked instead ([`Ecn::Ce`](airtcp_core::Ecn::Ce)).
    pub ecn_marks: u64,
    /// Frames destroyed by other frames at this receiver.
    pub collisions: u64,
    /// Frames received in error for other reasons: too weak, bit errors, own transmission.
    pub errors: u64,
    /// Duplicate frames, filtered.
    pub duplicates: u64,
    /// Longest queue in packets, not counting the one in the MAC; with access categories, of one of
    /// their queues.
    pub max_queue: u64,
    /// Time during which the medium was busy or the station was sending.
    pub busy: Duration,
}

/// The value of a key in a list that is in the order of its keys; `none` is added if there is none.
pub(super) fn entry<K: Copy + Ord, V>(
    list: &mut Vec<(K, V)>,
    key: K,
    none: impl FnOnce() -> V,
) -> &mut V {
    let place = list.binary_search_by_key(&key, |&(other, _)| other);
    let place = place.unwrap_or_else(|place| {
        list.insert(place, (key, none()));
        place
    });
    &mut list[place].1
}
