//! A receive buffer that grows with what the application reads, as Linux 6.18 has it: dynamic
//! right-sizing (Fisk and Feng 2001; net/ipv4/tcp_input.c from `tcp_rcv_rtt_update` to
//! `tcp_rcv_space_adjust`).
//!
//! Two sizes follow each other. The *buffer* grows once a round trip, if the application read more
//! than in any before: to twice that, and twice as much again in slow start, when the next round
//! trip brings the double and the ACK that asks for it leaves one round trip early. The *window*
//! grows towards the buffer with each segment, by twice its size (`tcp_grow_window`), so that a
//! buffer that was enlarged for nothing is not advertised.
//!
//! Linux counts memory, of which the payload is a share that depends on the network driver. Here a
//! buffer of N bytes holds N bytes of payload, and the sizes at the beginning assume the shares that
//! Linux has with segments of 1500 bytes. So a buffer never overflows, and what Linux does then
//! (`tcp_clamp_window`, `tcp_prune_queue`) has no counterpart.

use airtcp_core::{Duration, Instant, SeqNum};

/// The buffer once data came: five eighths of the second value of Linux's tcp_rmem, 131,072, because
/// 1448 bytes take 2304 of memory.
const FIRST_BUFFER: u32 = 80 << 10;
/// Segments that an application is taken to read in a round trip at first (`TCP_INIT_CWND`).
const FIRST_READ: u32 = 10;
/// Smaller segments do not enlarge the window.
const SMALL: u32 = 128;

/// What one receiver knows. Made when data come first: most endpoints of a simulation idle or send.
#[derive(Debug)]
pub(super) struct Autotuning {
    /// Largest window to advertise yet (Linux: `rcv_ssthresh`).
    window: u32,
    /// The most that was read in a round trip, bytes (Linux: `rcvq_space.space`).
    most_read: u32,
    /// When and where in the stream the present round trip began.
    began: Instant,
    began_at: SeqNum,
    rtt: Option<Duration>,
    /// The right edge of the window, and when it was advertised: no byte beyond it comes within a
    /// round trip.
    edge: SeqNum,
    edge_at: Instant,
}

impl Autotuning {
    /// Data are about to come for the first time, at `nxt`, into a window that ends at `edge`.
    pub(super) fn new(now: Instant, nxt: SeqNum, edge: SeqNum, window: u32, mss: u32) -> Self {
        Self {
            window,
            most_read: (FIRST_READ * mss).min(window).max(1),
            began: now,
            began_at: nxt,
            rtt: None,
            edge,
            edge_at: now,
        }
    }

    /// The buffer at first, where `most` bytes are the largest.
    pub(super) fn first_buffer(most: u32) -> u32 {
        most.min(FIRST_BUFFER)
    }

    /// Largest window to advertise.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// A full segment came that echoes an ACK of ours for the first time, `sample` after it. The
    /// smallest counts, and a larger one by an eighth: it may hold the sender's silence. With data
    /// `unread` it does not count at all, as a buffer is no remedy for a slow reader.
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

    /// Data came, in order up to `nxt`, with the right edge of the window at `edge`. A window's
    /// worth takes a round trip at least; without timestamps, the fastest one is the estimate.
    pub(super) fn on_data(&mut self, now: Instant, nxt: SeqNum, edge: SeqNum) {
        if nxt.before(self.edge) {
            return;
        }
        let sample = now.since(self.edge_at);
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
        self.edge = edge;
        self.edge_at = now;
    }

    /// A segment of `len` bytes came, and leaves room for `free` in the buffer. Returns whether the
    /// window grows.
    pub(super) fn grow_window(&mut self, len: u32, mss: u32, free: u32) -> bool {
        let room = free.saturating_sub(self.window);
        if len < SMALL || room == 0 {
            return false;
        }
        self.window += room.min(2 * len.max(mss));
        true
    }

    /// The application has read up to `read`; `unread` bytes wait for it, and the furthest data
    /// above a gap end `beyond` bytes after them. Returns the buffer that this asks for.
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

    /// Data came above a gap, up to `beyond` bytes after it. Returns the buffer that this asks for.
    pub(super) fn on_out_of_order(&self, beyond: u32) -> u32 {
        clamp(2 * u64::from(self.most_read) + u64::from(beyond))
    }
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(u64::from(u32::MAX)) as u32
}
