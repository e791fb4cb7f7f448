//! The packets of a host, as they come and go.

use crate::host::Host;
use airtcp_core::Segment;
use airtcp_wire::{Checksums, decode};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Packets of all interfaces of a host.
pub(crate) struct Capture {
    stop: &'static AtomicBool,
    thread: thread::JoinHandle<Vec<(Duration, Vec<u8>)>>,
}

impl Capture {
    pub(crate) fn start(host: &Host) -> Self {
        let protocol = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let mut socket =
            host.within(|| Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol)).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let thread = thread::spawn(move || {
            let (begin, mut packets) = (Instant::now(), Vec::new());
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                if let Ok(size) = socket.read(&mut buffer) {
                    packets.push((begin.elapsed(), buffer[..size].to_vec()));
                }
            }
            packets
        });
        Self { stop, thread }
    }

    /// The TCP segments so far.
    pub(crate) fn finish(self) -> impl Iterator<Item = (Duration, Segment<Vec<u8>>)> {
        self.stop.store(true, Ordering::Relaxed);
        let packets = self.thread.join().unwrap().into_iter();
        packets.filter_map(|(at, packet)| {
            decode(&packet, Checksums::Ignore).ok().map(|segment| (at, segment))
        })
    }
}
