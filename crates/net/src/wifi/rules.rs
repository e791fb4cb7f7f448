//! The rules of one station's MAC: the configuration, and the times derived from it.

use crate::wifi::category::{AccessCategory, CategoryConfig};
use crate::wifi::config::{Attempts, ChannelConfig, EifsRule, MacConfig, ResponseTimeout};
use crate::wifi::exposure::Exposure;
use crate::wifi::frame::{self, Body, Frame, FrameKind};
use crate::wifi::minstrel::{Rate, RateTable};
use crate::wifi::ofdm::{OfdmMode, TxVector};
use crate::wifi::phy::{Mode, Phy};
use crate::wifi::standard::{PhyConfig, RateControl, SentAt};
use crate::wifi::station::Receiver;
use airtcp_core::{Bytes, DataRate, Duration, Instant};

/// Length of the frame check sequence.
const FCS: Bytes = Bytes(4);

/// The configuration, and values derived from it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(super) phy: Phy,
    pub(super) mac: MacConfig,
    /// The exchanges at each rate of unicast data: at the first, or the only one, and at the others.
    exchange: Exchange,
    others: Vec<Exchange>,
    /// The rates, if stations choose among them by Minstrel-HT.
    pub(super) rate_table: Option<RateTable>,
    /// How broadcasts are sent.
    broadcast_at: SentAt,
    pub(super) eifs: Duration,
    /// Within the time-outs, from the first bit of a response to the PHY's report that a reception
    /// has begun.
    pub(super) rx_start_delay: Duration,
    /// Allowance for propagation of a station that waits for data.
    pub(super) data_margin: Duration,
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

/// An exchange of frames: data at one rate, and the RTS, CTS and acknowledgement that go with them.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    data_at: SentAt,
    control_at: SentAt,
    /// Of the data.
    pub(super) mode: Mode,
    /// Of the other frames.
    control: Mode,
    pub(super) rts: Duration,
    pub(super) cts: Duration,
    pub(super) ack: Acknowledgement,
    pub(super) block_ack: Acknowledgement,
    /// From the end of an RTS to noticing that no CTS comes.
    pub(super) cts_timeout: Duration,
    /// From the end of an RTS to noticing that no data come.
    pub(super) nav_reset: Duration,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    pub(super) size: Bytes,
    pub(super) duration: Duration,
    /// From the end of data to noticing that it does not come.
    pub(super) timeout: Duration,
}

/// The rates that stations choose among by Minstrel-HT, if they do.
fn rate_table(config: &PhyConfig, phy: &Phy) -> Option<RateTable> {
    let PhyConfig::Mimo(format, mimo) = config else { return None };
    if mimo.rate_control != RateControl::MinstrelHt {
        return None;
    }
    let mode = |at: &TxVector| OfdmMode::of_mcs(*format, mimo.band, mimo.width, *at);
    // `minstrel_ht_update_caps`: an empty frame and an ACK at 6 Mbit/s, each with its SIFS.
    let lowest = config.mode(SentAt::Rate(DataRate::mbps(6)));
    let overhead = phy.sifs * 2 + lowest.duration(FCS) + lowest.duration(frame::ACK);
    let airtime = |at: &TxVector, size| mode(at).data_time(size);
    Some(RateTable::new(&mimo.tx_vectors(*format), airtime, overhead))
}

impl Exchange {
    fn new(config: &ChannelConfig, phy: &Phy, data_at: SentAt) -> Self {
        let control_at = SentAt::Rate(config.phy.control_rate(data_at));
        let control = config.phy.mode(control_at);
        let (rts, cts) = (control.duration(frame::RTS), control.duration(frame::CTS));
        let timeout = |response| match config.mac.response_timeout {
            ResponseTimeout::ReceptionStart => phy.sifs + phy.slot + control.preamble(),
            ResponseTimeout::WholeFrame { margin } => phy.sifs + response + margin,
        };
        let acknowledgement = |size| {
            let duration = control.duration(size);
            Acknowledgement { size, duration, timeout: timeout(duration) }
        };
        let block_ack = phy.aggregation.map_or(frame::ACK, |limits| limits.block_ack());
        Self {
            data_at,
            control_at,
            mode: config.phy.mode(data_at),
            control,
            rts,
            cts,
            ack: acknowledgement(frame::ACK),
            block_ack: acknowledgement(block_ack),
            cts_timeout: timeout(cts),
            nav_reset: phy.sifs * 2 + cts + phy.slot * 2,
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
}

impl Rules {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        let mac = config.mac.clone();
        let phy = Phy::new(&config.phy, &mac);
        let rates = config.phy.data_rates();
        let mut exchanges = rates.iter().map(|&rate| Exchange::new(config, &phy, rate));
        let exchange = exchanges.next().expect("there is a rate");
        let others = exchanges.collect();
        let rx_start_delay = exchange.control.preamble();
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
            rate_table: rate_table(&config.phy, &phy),
            broadcast_at: SentAt::Rate(config.phy.broadcast_rate()),
            exchange,
            others,
            eifs,
            nav_after_error: match mac.eifs {
                EifsRule::Interval => Duration::ZERO,
                EifsRule::Nav => eifs,
            },
            rx_start_delay,
            data_margin: match mac.response_timeout {
                ResponseTimeout::ReceptionStart => phy.slot,
                ResponseTimeout::WholeFrame { margin } => margin,
            },
            phy,
            mac,
        }
    }

    /// The exchange with data at a rate.
    #[inline]
    pub(super) fn exchange(&self, rate: Rate) -> &Exchange {
        match rate.index().checked_sub(1) {
            None => &self.exchange,
            Some(other) => &self.others[other],
        }
    }

    /// The mode of packets to `to`; for a station that chooses rates, the lowest.
    pub(super) fn packet_mode(&self, to: Receiver) -> &Mode {
        match to {
            Receiver::Station(_) => &self.exchange.mode,
            Receiver::Broadcast => &self.phy.broadcast,
        }
    }

    /// How a frame is sent.
    pub(crate) fn sent_at<T>(&self, frame: &Frame<T>) -> SentAt {
        match (frame.body.kind(), frame.to) {
            (FrameKind::Data, Receiver::Broadcast) => self.broadcast_at,
            (FrameKind::Data, Receiver::Station(_)) => self.exchange(frame.rate).data_at,
            _ => self.exchange(frame.rate).control_at,
        }
    }

    /// Time that data at this rate may take in a TXOP of this limit that begins with them, or with an
    /// RTS if they may need one.
    pub(super) fn longest_data(&self, rate: Rate, txop_limit: Duration) -> Duration {
        let Phy { sifs, aggregation, .. } = self.phy;
        if txop_limit.is_zero() {
            return Duration::MAX;
        }
        let exchange = self.exchange(rate);
        let longest = aggregation.map_or(Bytes::ZERO, |limits| limits.length);
        let handshake = exchange.rts + exchange.cts + sifs * 2;
        let before = if longest > self.mac.rts_threshold { handshake } else { Duration::ZERO };
        txop_limit - before - sifs - exchange.longest_answer()
    }

    /// The exposure to noise of a frame that a radio begins to receive at `now`.
    pub(crate) fn exposure<T>(&self, now: Instant, frame: &Frame<T>) -> Exposure {
        let mode = match (frame.body.kind(), frame.to) {
            (FrameKind::Data, Receiver::Broadcast) => &self.phy.broadcast,
            (FrameKind::Data, Receiver::Station(_)) => &self.exchange(frame.rate).mode,
            _ => &self.exchange(frame.rate).control,
        };
        Exposure::new(now, *mode)
    }

    /// The exposure of no frame.
    pub(super) fn no_exposure(&self) -> Exposure {
        Exposure::new(Instant::ZERO, self.exchange.control)
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
