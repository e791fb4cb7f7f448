//! The wireless hop in front of a link: two stations that share a channel of 802.11.

use crate::packet;
use airtcp_core::Instant;
use airtcp_net::wifi::{
    Channel, ChannelConfig, Output, Position, Receiver, StationConfig, StationCounters, StationId,
    StationStreams,
};

/// The command's station.
pub(crate) const STATION: StationId = StationId(0);
/// The station at which the link begins.
pub(crate) const ACCESS_POINT: StationId = StationId(1);

/// A packet received.
pub(crate) struct Received {
    pub(crate) by: StationId,
    pub(crate) packet: Vec<u8>,
}

/// The simulator's channel, and the packets that its handles stand for.
pub(crate) struct Air {
    channel: Channel<u32>,
    /// The packets, by handle.
    packets: Vec<Vec<u8>>,
    /// Handles that stand for no packet.
    free: Vec<u32>,
}

impl Air {
    pub(crate) fn new(config: &ChannelConfig, seed: u64) -> Self {
        let station = |x| StationConfig { position: Position { x, y: 0.0 } };
        let streams = ["air/station", "air/access-point"];
        let streams = streams.map(|name| StationStreams::named(seed, name)).to_vec();
        let channel = Channel::new(config, &[station(0.0), station(1.0)], streams);
        Self { channel, packets: Vec::new(), free: Vec::new() }
    }

    /// Queues a packet at one station for the other. One that the queue refuses is counted there.
    pub(crate) fn offer(&mut self, now: Instant, from: StationId, packet: &[u8]) {
        let to = if from == STATION { ACCESS_POINT } else { STATION };
        let handle = match self.free.pop() {
            Some(handle) => {
                let place = &mut self.packets[handle as usize];
                place.clear();
                place.extend_from_slice(packet);
                handle
            }
            None => {
                self.packets.push(packet.to_vec());
                (self.packets.len() - 1) as u32
            }
        };
        let meta = packet::meta(packet);
        if self.channel.send(now, from, Receiver::Station(to), handle, meta).is_err() {
            self.free.push(handle);
        }
    }

    /// Earliest time at which a packet can be received.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.channel.next_deadline()
    }

    /// The next packet received by `now`; call until `None`. Lost packets are counted at their
    /// station.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Received> {
        loop {
            match self.channel.poll(now)? {
                Output::Deliver { station, packet, .. } => {
                    self.free.push(packet);
                    let packet = self.packets[packet as usize].clone();
                    return Some(Received { by: station, packet });
                }
                Output::Drop { packet, .. } => self.free.push(packet),
                Output::Mark { packet } => {
                    airtcp_wire::mark_ce(&mut self.packets[packet as usize]);
                }
                Output::Overhear { .. } | Output::LinkFailure { .. } => {}
            }
        }
    }

    /// Counters of the command's station and of the access point at `now`.
    pub(crate) fn counters(&mut self, now: Instant) -> [StationCounters; 2] {
        self.channel.catch_up(now);
        [STATION, ACCESS_POINT].map(|station| self.channel.counters(station))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Bytes, Duration};
    use airtcp_net::wifi::{PhyConfig, preset};

    fn air() -> Air {
        Air::new(&preset::ieee(), 1)
    }

    /// Everything received by `until`, in order.
    fn received(air: &mut Air, until: Instant) -> Vec<(Instant, StationId, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(due) = air.next_deadline().filter(|due| *due <= until) {
            while let Some(Received { by, packet }) = air.poll(due) {
                all.push((due, by, packet));
            }
        }
        all
    }

    #[test]
    fn a_packet_takes_the_time_of_its_frame_and_arrives_at_the_other_station() {
        // 1000 B at 11 Mbit/s, with LLC, MAC header and FCS: 754 us, after a preamble of 192 us.
        let mut air = air();
        air.offer(Instant::ZERO, STATION, &[7; 1000]);
        let all = received(&mut air, Instant::from_secs(1));
        let (at, by, packet) = &all[0];
        assert_eq!((*by, packet.as_slice(), all.len()), (ACCESS_POINT, &[7; 1000][..], 1));
        let frame = Duration::from_micros(192 + 754);
        // Light takes some nanoseconds for the metre between them.
        assert!(at.since(Instant::ZERO + frame) < Duration::from_nanos(10), "{at}");
    }

    #[test]
    fn both_directions_share_the_channel() {
        // Each alone delivers as many in this time as both together.
        let delivered = |stations: &[StationId]| {
            let mut air = air();
            let mut count = 0;
            for ms in 0..1000 {
                let now = Instant::from_millis(ms);
                count += received(&mut air, now).len();
                stations.iter().for_each(|station| air.offer(now, *station, &[0; 1500]));
            }
            count
        };
        let (alone, together) = (delivered(&[STATION]), delivered(&[STATION, ACCESS_POINT]));
        assert!(together < alone + alone / 10, "{alone} alone, {together} together");
    }

    #[test]
    fn a_packet_keeps_its_bytes_while_handles_are_used_again() {
        let mut air = air();
        let mut expected = Vec::new();
        for n in 0..200_u8 {
            let now = Instant::from_millis(u64::from(n) * 5);
            air.offer(now, STATION, &[n; 100]);
            expected.push(vec![n; 100]);
        }
        let all = received(&mut air, Instant::from_secs(2));
        assert!(all.into_iter().map(|(_, _, packet)| packet).eq(expected));
    }

    #[test]
    fn a_packet_goes_by_the_category_of_its_dscp() {
        // Best effort waits, EF comes last and passes all but what has been sent.
        let mut config = preset::ieee80211n();
        let PhyConfig::Mimo(_, mimo) = &mut config.phy else { panic!("802.11n") };
        (mimo.ampdu_limit, mimo.access_categories) = (Bytes::ZERO, Some(Default::default()));
        let mut air = Air::new(&config, 1);
        let packet = |octet: u8| [&[0x45, octet][..], &[0; 1000]].concat();
        for _ in 0..20 {
            air.offer(Instant::ZERO, STATION, &packet(0));
        }
        air.offer(Instant::ZERO, STATION, &packet(46 << 2));
        let all = received(&mut air, Instant::from_secs(1));
        let voice = all.iter().position(|(_, _, packet)| packet[1] != 0).expect("it arrives");
        // The TXOP of the first one, at most.
        let limit = Duration::from_micros(2_528);
        assert!(all.len() == 21 && all[voice].0 < Instant::ZERO + limit * 2, "{voice}: {all:?}");
        assert!(voice < 15, "{voice}");
    }
}
