//! CUBIC's slow start, with HyStart and HyStart++ to end it before a loss.

use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::{Ack, CongestionControl, Reno, Timeout, Undo, Window};
use crate::config::HyStartConfig;

/// Reno's slow start with an early exit.
#[derive(Clone, Debug)]
pub(super) struct SlowStart {
    reno: Reno,
    exit: Exit,
}

#[derive(Clone, Copy, Debug)]
enum Exit {
    Loss,
    HyStart(HyStart),
    HyStartPlusPlus(HyStartPlusPlus),
}

impl SlowStart {
    /// A slow start that ends early by `hystart`. `paced`: the sender paces its segments.
    pub(super) fn new(reno: Reno, hystart: HyStartConfig, paced: bool) -> Self {
        let exit = match hystart {
            HyStartConfig::Off => Exit::Loss,
            HyStartConfig::HyStart => Exit::HyStart(HyStart::new(paced)),
            HyStartConfig::PlusPlus => Exit::HyStartPlusPlus(HyStartPlusPlus::default()),
        };
        Self { reno, exit }
    }

    /// Measures an ACK, in any phase.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Exit::HyStart(hystart) = &mut self.exit {
            hystart.on_ack(window, ack);
        }
    }

    pub(super) fn on_growth(&mut self, window: &mut Window, ack: &Ack) {
        match &mut self.exit {
            // RFC 9406 §4.3: in the first slow start only, while ssthresh is arbitrarily high.
            Exit::HyStartPlusPlus(hystart) if window.ssthresh() == u32::MAX => {
                hystart.on_growth(window, ack);
            }
            _ => self.reno.on_growth(window, ack),
        }
    }

    /// Sets cwnd and ssthresh after a time-out as Reno does, and measures anew.
    pub(super) fn on_timeout(&mut self, window: &mut Window, timeout: &Timeout) {
        self.reno.on_timeout(window, timeout);
        if let Exit::HyStart(hystart) = &mut self.exit {
            hystart.on_timeout();
        }
    }

    pub(super) fn on_spurious(&mut self, window: &mut Window, undo: &Undo) {
        self.reno.on_spurious(window, undo);
    }
}
