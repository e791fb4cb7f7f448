//! A receive buffer that grows with what the application reads, as Linux 6.18 has it: dynamic
//! right-sizing (Fisk and Feng 2001; net/ipv4/tcp_input.c from `tcp_rcv_rtt_update` to
//! `tcp_rcv_space_adjust`).
//!
//! There are two sizes. The *buffer* grows once a round trip, if the application read more than in
//! any before: to twice what it read, because an ACK brings data a round trip later, and by more
//! if that grew: to six times in slow start, where it doubles. The *window* grows towards the
//! buffer with each segment, by twice its size (`tcp_grow_window`), so that a buffer that was
//! enlarged for nothing is not advertised.
//!
//! Linux counts memory, of which the payload is a share that depends on the network driver. Here a
//! buffer of N bytes holds N bytes of payload, and the sizes at the beginning assume the shares
//! that Linux has with segments of 1500 bytes. So a buffer never overflows, and what Linux does
//! then (`tcp_clamp_window`, `tcp_prune_queue`) has no counterpart.

use airtcp_core::{Duration, Instant, SeqNum};

/// Size of the buffer after the first data: five eighths of the second value of Linux's tcp_rmem,
/// 131,072, because 1448 bytes take 2304 of memory.
const FIRST_BUFFER: u32 = 80 << 10;
/// Segments that an application is assumed to read in the first round trip (`TCP_INIT_CWND`).
const FIRST_READ: u32 = 10;
/// Payload below which a segment does not enlarge the window.
const SMALL: u32 = 128;

/// Autotuning state of a receiver. Allocated at the first data: most endpoints of a simulation are
/// idle or only send.
#[derive(Debug)]
pub(super) struct Autotuning {
    /// Largest window to advertise at present (Linux: `rcv_ssthresh`).
    window: u32,
    /// Most bytes read in a round trip (Linux: `rcvq_space.space`).
    most_read: u32,
    /// Beginning of the current round trip: its time, and its position in the stream.
    began: Instant,
    began_at: SeqNum,
    rtt: Option<Duration>,
    /// Right edge of the window when last noted, and the time of the note.
    edge: SeqNum,
    edge_at: Instant,
}

impl Autotuning {
    /// Starts at the first data, which begins at `nxt`, in a window that ends at `edge`. The first
    /// round trip began when the connection was `established`.
    pub(super) fn new(
        established: Instant,
        now: Instant,
        nxt: SeqNum,
        edge: SeqNum,
        window: u32,
        mss: u32,
    ) -> Self {
        Self {
            window,
            most_read: Self::first_read(window, mss),
            began: established,
            began_at: nxt,
            rtt: None,
            edge,
            edge_at: now,
        }
    }

    /// Initial size of a buffer of at most `most` bytes.
    pub(super) fn first_buffer(most: u32) -> u32 {
        most.min(FIRST_BUFFER)
    }

    /// Bytes assumed to be read in a round trip before the first measurement.
    pub(super) fn first_read(window: u32, mss: u32) -> u32 {
        (FIRST_READ * mss).min(window).max(1)
    }

    /// Most bytes read in a round trip.
    pub(super) fn most_read(&self) -> u32 {
        self.most_read
    }

    /// Largest window to advertise at present, bytes.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Takes the time from an ACK of ours to the first full segment that echoes it. A smaller
    /// sample replaces the estimate. A larger one counts an eighth, as it may include the sender's
    /// silence; with data `unread` it does not count, as a larger buffer does not help a slow
    /// reader.
    pub(super) fn on_echo(&mut self, sample: Duration, unread: bool) {
        self.rtt = Some(match self.rtt {
            Some(rtt) if sample >= rtt => {
                if unread {
                    return;
                }
                rtt - rtt / 8 + sample / 8
            }
            _ => sample,
        });
    }

    /// Takes in-order data up to `nxt`, with the right edge of the window at `edge`. A window's
    /// worth takes at least a round trip unless it comes in one burst; the smallest such time is
    /// the estimate without timestamps.
    pub(super) fn on_data(&mut self, now: Instant, nxt: SeqNum, edge: SeqNum) {
        if nxt.before(self.edge) {
            return;
        }
        let sample = now.since(self.edge_at);
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        self.edge = edge;
        self.edge_at = now;
    }

    /// Grows the window after a segment of `len` bytes that leaves `free` bytes of the buffer.
    /// Returns true if the window has grown.
    pub(super) fn grow_window(&mut self, len: u32, mss: u32, free: u32) -> bool {
        let room = free.saturating_sub(self.window);
        if len < SMALL || room == 0 {
            return false;
        }
        self.window += room.min(2 * len.max(mss));
        true
    }

    /// Handles a read by the application up to `read`: `unread` bytes wait for it, and the furthest
    /// data above a gap ends `beyond` bytes after them. Returns the size that the buffer should
    /// have, if the application read more than ever in a round trip.
    pub(super) fn on_read(
        &mut self,
        now: Instant,
        read: SeqNum,
        unread: u32,
        beyond: u32,
    ) -> Option<u32> {
        if now.since(self.began) < self.rtt? {
            return None;
        }
        let copied = read.bytes_after(self.began_at).saturating_sub(unread);
        self.began = now;
        self.began_at = read;
        if copied <= self.most_read {
            return None;
        }
        let before = std::mem::replace(&mut self.most_read, copied);
        let window = 2 * u64::from(copied);
        let growth = 2 * window * u64::from(copied - before) / u64::from(before);
        Some(clamp(window + growth + u64::from(beyond)))
    }

    /// Size that the buffer should have after data arrived above a gap, `beyond` bytes after it.
    pub(super) fn on_out_of_order(&self, beyond: u32) -> u32 {
        clamp(2 * u64::from(self.most_read) + u64::from(beyond))
    }
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    const WINDOW: u32 = 64 << 10;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A receiver whose first data comes at 1 s, with sequence number 0.
    fn begun() -> Autotuning {
        Autotuning::new(at(1000), at(1000), SeqNum(0), SeqNum(WINDOW), WINDOW, MSS)
    }

    /// [`begun`] with an RTT of 100 ms.
    fn measured() -> Autotuning {
        let mut tuning = begun();
        tuning.on_echo(Duration::from_millis(100), false);
        tuning
    }

    /// Every application is assumed to read 10 segments in a round trip. Reading more asks for a
    /// buffer of twice the bytes read, plus twice the growth of that.
    #[test]
    fn a_round_trip_that_reads_more_than_any_before_asks_for_room() {
        let mut tuning = measured();
        assert_eq!(tuning.on_read(at(1100), SeqNum(10_000), 0, 0), None);
        // 15 kB, half as much again: 30 kB, and 2 · 15 kB for the growth.
        assert_eq!(tuning.on_read(at(1200), SeqNum(25_000), 0, 0), Some(60_000));
        assert_eq!(tuning.on_read(at(1300), SeqNum(40_000), 0, 0), None);
        assert_eq!(tuning.on_read(at(1400), SeqNum(70_000), 0, 0), Some(180_000));
    }

    #[test]
    fn reads_count_once_a_round_trip() {
        let mut tuning = measured();
        assert_eq!(tuning.on_read(at(1050), SeqNum(20_000), 0, 0), None);
        assert_eq!(tuning.on_read(at(1099), SeqNum(30_000), 0, 0), None);
        assert!(tuning.on_read(at(1100), SeqNum(30_001), 0, 0).is_some());
    }

    #[test]
    fn without_a_round_trip_nothing_grows() {
        assert_eq!(begun().on_read(at(9000), SeqNum(50_000), 0, 0), None);
    }

    /// As Linux since 6.16: a larger buffer does not speed up the application.
    #[test]
    fn what_waits_to_be_read_is_deducted() {
        let mut tuning = measured();
        assert_eq!(tuning.on_read(at(1100), SeqNum(30_000), 20_000, 0), None);
        assert_eq!(tuning.on_read(at(1200), SeqNum(60_000), 15_000, 0), Some(60_000));
    }

    #[test]
    fn data_above_a_gap_ask_for_room_beside_what_is_read() {
        let mut tuning = measured();
        assert_eq!(tuning.on_out_of_order(7_000), 27_000);
        assert_eq!(tuning.on_read(at(1100), SeqNum(15_000), 0, 7_000), Some(67_000));
        assert_eq!(tuning.on_out_of_order(7_000), 37_000);
    }

    #[test]
    fn the_smallest_echo_counts_and_a_larger_one_by_an_eighth() {
        let mut tuning = measured();
        for (sample, unread, rtt) in [(180, false, 110), (300, true, 110), (80, true, 80)] {
            tuning.on_echo(Duration::from_millis(sample), unread);
            assert_eq!(tuning.rtt, Some(Duration::from_millis(rtt)), "{sample}");
        }
    }

    /// Fisk and Feng 2001: data beyond the window comes one round trip after the ACK that allows
    /// it.
    #[test]
    fn a_window_of_data_takes_a_round_trip() {
        let mut tuning = begun();
        let next = SeqNum(200_000);
        tuning.on_data(at(1080), SeqNum(WINDOW - 1), next);
        assert_eq!(tuning.rtt, None);
        tuning.on_data(at(1090), SeqNum(WINDOW), next);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(90)));
        // Of several the shortest.
        tuning.on_data(at(1290), next, SeqNum(300_000));
        assert_eq!(tuning.rtt, Some(Duration::from_millis(90)));
        tuning.on_data(at(1350), SeqNum(300_000), SeqNum(400_000));
        assert_eq!(tuning.rtt, Some(Duration::from_millis(60)));
    }

    #[test]
    fn the_window_grows_by_twice_each_segment_while_there_is_room() {
        let mut tuning = begun();
        for (len, free, window) in [
            (MSS, 1 << 20, WINDOW + 2000),
            // Several segments merged, one that is not full, one that is small.
            (5000, 1 << 20, WINDOW + 12_000),
            (500, 1 << 20, WINDOW + 14_000),
            (127, 1 << 20, WINDOW + 14_000),
            (MSS, WINDOW + 14_700, WINDOW + 14_700),
            (MSS, WINDOW, WINDOW + 14_700),
        ] {
            let grows = window > tuning.window();
            assert_eq!(tuning.grow_window(len, MSS, free), grows, "{len} of {free}");
            assert_eq!(tuning.window(), window, "{len} of {free}");
        }
    }

    #[test]
    fn absurd_sizes_fit() {
        let mut tuning = Autotuning::new(at(0), at(0), SeqNum(0), SeqNum(1), 1, 0);
        tuning.on_echo(Duration::ZERO, false);
        assert_eq!(tuning.on_read(at(1), SeqNum(1 << 30), 0, 1 << 30), Some(u32::MAX));
    }
}
