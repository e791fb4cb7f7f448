//! The rules of one station's MAC: the configuration, and the times derived from it.

use crate::wifi::category::{AccessCategory, CategoryConfig};
use crate::wifi::config::{Attempts, ChannelConfig, EifsRule, MacConfig, ResponseTimeout};
use crate::wifi::exposure::Exposure;
use crate::wifi::frame::{self, Body, Frame};
use crate::wifi::phy::{Mode, Phy};
use crate::wifi::station::Receiver;
use airtcp_core::{Bytes, Duration, Instant};

/// The configuration, and values derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(super) phy: Phy,
    pub(super) mac: MacConfig,
    pub(super) rts: Duration,
    pub(super) cts: Duration,
    pub(super) ack: Acknowledgement,
    pub(super) block_ack: Acknowledgement,
    pub(super) eifs: Duration,
    /// From the end of an RTS to noticing that no CTS comes.
    pub(super) cts_timeout: Duration,
    /// Within the time-outs, from the first bit of a response to the PHY's report that a reception
    /// has begun.
    pub(super) rx_start_delay: Duration,
    /// Allowance for propagation of a station that waits for data.
    pub(super) data_margin: Duration,
    /// From the end of an RTS to noticing that no data come.
    pub(super) nav_reset: Duration,
    /// NAV after a frame received in error ([`Self::nav_after_error`]).
    nav_after_error: Duration,
    /// Of each access function, in ascending order of priority. Without categories, all are the
    /// same, and stations have only one.
    pub(super) functions: [FunctionRules; 4],
    /// Stations have the access functions of EDCA.
    pub(super) has_categories: bool,
}

/// The rules of an access function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionRules {
    /// Difference of its AIFS from the shortest, which is [`Phy::difs`]; whole slots.
    pub(super) later: Duration,
    pub(super) cw_min: u32,
    pub(super) cw_max: u32,
    /// Time for which a station that has won the medium may use it; zero for one exchange.
    pub(super) txop_limit: Duration,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    pub(super) size: Bytes,
    pub(super) duration: Duration,
    /// From the end of data to noticing that it does not come.
    pub(super) timeout: Duration,
}

impl Rules {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        let mac = config.mac.clone();
        let phy = Phy::new(&config.phy, &mac);
        let control = |size| phy.control.duration(size);
        let (rts, cts) = (control(frame::RTS), control(frame::CTS));
        let rx_start_delay = phy.control.preamble();
        let timeout = |response| match mac.response_timeout {
            ResponseTimeout::ReceptionStart => phy.sifs + phy.slot + rx_start_delay,
            ResponseTimeout::WholeFrame { margin } => phy.sifs + response + margin,
        };
        let acknowledgement = |size| {
            let duration = control(size);
            Acknowledgement { size, duration, timeout: timeout(duration) }
        };
        let block_ack = phy.aggregation.map_or(frame::ACK, |limits| limits.block_ack());
        let eifs = phy.sifs + phy.eifs_ack + phy.difs;
        let categories = config.phy.access_categories();
        let functions = AccessCategory::ALL.map(|category| match categories {
            None => FunctionRules {
                later: Duration::ZERO,
                cw_min: mac.cw_min,
                cw_max: mac.cw_max,
                txop_limit: phy.txop_limit,
            },
            Some(categories) => {
                let &CategoryConfig { aifsn, cw_min, cw_max, txop_limit } = categories.of(category);
                let later = phy.slot * u64::from(aifsn - categories.least_aifsn());
                FunctionRules { later, cw_min, cw_max, txop_limit }
            }
        });
        Self {
            functions,
            has_categories: categories.is_some(),
            rts,
            cts,
            ack: acknowledgement(frame::ACK),
            block_ack: acknowledgement(block_ack),
            eifs,
            nav_after_error: match mac.eifs {
                EifsRule::Interval => Duration::ZERO,
                EifsRule::Nav => eifs,
            },
            cts_timeout: timeout(cts),
            rx_start_delay,
            data_margin: match mac.response_timeout {
                ResponseTimeout::ReceptionStart => phy.slot,
                ResponseTimeout::WholeFrame { margin } => margin,
            },
            nav_reset: phy.sifs * 2 + cts + phy.slot * 2,
            phy,
            mac,
        }
    }

    /// The mode of packets to `to`.
    pub(super) fn packet_mode(&self, to: Receiver) -> &Mode {
        match to {
            Receiver::Station(_) => &self.phy.unicast,
            Receiver::Broadcast => &self.phy.broadcast,
        }
    }

    /// The answer to so many MPDUs.
    pub(super) fn acknowledgement(&self, mpdus: usize) -> &Acknowledgement {
        if mpdus > 1 { &self.block_ack } else { &self.ack }
    }

    /// Duration of the longest answer to data.
    pub(super) fn longest_answer(&self) -> Duration {
        self.ack.duration.max(self.block_ack.duration)
    }

    /// Time that data may take in a TXOP of this limit that begins with them, or with an RTS if they
    /// may need one.
    pub(super) fn longest_data(&self, txop_limit: Duration) -> Duration {
        let Phy { sifs, aggregation, .. } = self.phy;
        if txop_limit.is_zero() {
            return Duration::MAX;
        }
        let longest = aggregation.map_or(Bytes::ZERO, |limits| limits.length);
        let handshake = self.rts + self.cts + sifs * 2;
        let before = if longest > self.mac.rts_threshold { handshake } else { Duration::ZERO };
        txop_limit - before - sifs - self.longest_answer()
    }

    /// The exposure to noise of a frame that a radio begins to receive at `now`.
    pub(crate) fn exposure<T>(&self, now: Instant, frame: &Frame<T>) -> Exposure {
        let mode = match frame.body {
            Body::Data { .. } | Body::Ampdu { .. } => self.packet_mode(frame.to),
            Body::Rts | Body::Cts | Body::Ack | Body::BlockAck => &self.phy.control,
        };
        Exposure::new(now, *mode)
    }

    /// From any step of a station to what comes out of it: a frame, unless its queue drops packets,
    /// or an internal collision can be the last attempt for one.
    pub(crate) fn quiet(&self) -> Duration {
        match self.mac.queue_discipline {
            None if !self.has_categories => self.phy.shortest_frame,
            _ => Duration::ZERO,
        }
    }

    /// True if receiving a frame can end another station's attempt.
    pub(crate) fn reception_ends_attempts(&self) -> bool {
        self.mac.response_timeout == ResponseTimeout::ReceptionStart
    }

    /// True if a MAC that gave up takes its next packet before any that is sent because of it.
    pub(crate) fn next_before_report(&self) -> bool {
        self.mac.next_before_report
    }

    /// True if EIFS follows a frame received in error.
    pub(crate) fn waits_eifs(&self) -> bool {
        self.mac.eifs == EifsRule::Interval
    }

    /// Time for which the NAV blocks the medium after a frame received in error.
    pub(crate) fn nav_after_error(&self) -> Duration {
        self.nav_after_error
    }

    /// Time for which a frame reserves the medium for stations that it is not for; `None` if that
    /// may be taken back.
    pub(crate) fn nav_for_others<T>(&self, frame: &Frame<T>) -> Option<Duration> {
        match frame.body {
            Body::Rts if self.mac.nav_reset => None,
            Body::Data { .. } | Body::Ampdu { .. } if !self.mac.nav_from_data => {
                Some(Duration::ZERO)
            }
            _ => Some(frame.reserves),
        }
    }

    /// The number of attempts that a retry limit allows.
    pub(super) fn attempts(&self, limit: u32) -> u32 {
        match self.mac.attempts {
            Attempts::Limit => limit,
            Attempts::LimitPlusOne => limit.saturating_add(1),
        }
    }
}
