//! `airtcp delack`: delays this host's acknowledgements as TCP-DCA does, or sends its cwnd to a
//! host that does; the parent restarts the daemon when it dies.

use crate::myself;
use airtcp_cli::{BAD_INPUT, FAILURE, SUCCESS, complain};
use airtcp_linux::daemon::log;
use airtcp_linux::daemon::supervisor::{self, Heartbeat, Pace, Timing};
use airtcp_linux::datapath::rules::{AckSelection, RulesError};
use airtcp_linux::delack::cwnd::CwndRole;
use airtcp_linux::delack::daemon::{self, DelackConfig, DelackError, Delay};
use airtcp_tcp::config::{AckConfig, AdaConfig, CwndIn, DaaConfig, DcaConfig};
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use std::net::IpAddr;
use std::time::Instant;

/// Arguments of `airtcp delack`.
#[derive(Debug, Args)]
pub(crate) struct DelackArgs {
    /// Interface on which data arrive and acknowledgements leave, such as wlan0.
    #[arg(long, value_name = "NAME", required_unless_present = "sender")]
    interface: Option<String>,
    /// Sends this host's cwnd, in a TCP option of its data, to receivers that ask for it. Without
    /// --interface no acknowledgement is delayed.
    #[arg(long)]
    sender: bool,
    /// Asks the senders for their cwnd, for the delay window of `dca`. Those that run
    /// `airtcp delack --sender` send it.
    #[arg(long, requires = "interface")]
    ask_cwnd: bool,
    /// Only connections with these hosts: an address or a prefix; may be repeated.
    #[arg(long, value_name = "ADDRESS", value_parser = peer)]
    peer: Vec<IpNet>,
    /// Only connections with this port at either end; may be repeated (up to 15).
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..),
          allow_negative_numbers = true)]
    port: Vec<u16>,
    /// Policy by which acknowledgements are delayed.
    #[arg(long, value_enum, default_value_t = Policy::Dca)]
    policy: Policy,
    /// Largest number of segments per acknowledgement (`dca`, `delayed`).
    #[arg(long, value_name = "SEGMENTS", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(2..=1000), allow_negative_numbers = true)]
    window: u32,
    /// `dca`: does not limit the window by the number of hops (5 segments beyond 3, 3 from 10 on).
    #[arg(long)]
    no_hop_rule: bool,
    /// `dca`: does not limit the window to 5 segments where the smallest RTT is above 80 ms.
    #[arg(long)]
    no_delay_rule: bool,
    /// NFQUEUE number; no other program may use it.
    #[arg(long, value_name = "N", default_value_t = 8720, value_parser = clap::value_parser!(u16).range(0..),
          allow_negative_numbers = true)]
    queue: u16,
    /// Largest number of connections at a time; further ones are left alone.
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=4096), allow_negative_numbers = true)]
    connections: u32,
    /// Set when the program starts itself as the daemon, which is restarted if it dies.
    #[arg(long, hide = true)]
    daemon: bool,
}

/// A policy of `airtcp-tcp`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// TCP-DCA: after a window of segments, or the time they should take.
    Dca,
    /// After every `--window` segments, or 200 ms.
    Delayed,
    /// TCP-DAA's receiver: every one to four segments, fewer after a loss.
    Daa,
    /// TCP-ADA: when a burst has ended.
    Ada,
    /// Altman and Jiménez: every one to four segments, more the longer the connection lasts.
    Altman,
}

impl DelackArgs {
    fn ack(&self) -> AckConfig {
        let Self { window, no_hop_rule, no_delay_rule, .. } = *self;
        match self.policy {
            Policy::Dca => AckConfig::Dca(DcaConfig {
                hop_rule: !no_hop_rule,
                delay_rule: !no_delay_rule,
                window_limit: Some(window),
                // Kernels do not report cwnd in the window field. Without the option, the flight
                // is used.
                cwnd_in: CwndIn::Option,
                // The kernel's ACKs are not kept, so they cannot be repeated.
                repeat_acks: false,
            }),
            Policy::Delayed => AckConfig::Delayed {
                segments: window,
                timeout: airtcp_core::Duration::from_millis(200),
                quick: 0,
            },
            Policy::Daa => AckConfig::Daa(DaaConfig::default()),
            Policy::Ada => AckConfig::Ada(AdaConfig::default()),
            Policy::Altman => {
                AckConfig::Altman { timeout: airtcp_core::Duration::from_millis(100) }
            }
        }
    }

    fn config(&self) -> DelackConfig {
        let Self { interface, peer, port, queue, connections, sender, ask_cwnd, .. } = self;
        let delay = interface.as_ref().map(|interface| Delay {
            selection: AckSelection {
                queue: *queue,
                interface: interface.clone(),
                peers: peer.clone(),
                ports: port.clone(),
            },
            policy: self.ack(),
            connections: *connections as usize,
        });
        let (peers, ports) = (peer.clone(), port.clone());
        DelackConfig {
            delay,
            role: CwndRole { requests: *ask_cwnd, reports: *sender, peers, ports },
        }
    }
}

fn peer(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| {
        "expected an address or a prefix, such as 10.0.0.0/8 or 2001:db8::1".to_owned()
    })
}

/// Runs until SIGTERM or SIGINT; returns the exit code.
pub(crate) fn run(args: &DelackArgs) -> i32 {
    if let Err(message) = log::init() {
        complain(&message);
        return BAD_INPUT;
    }
    if args.port.len() > 15 {
        complain("--port: at most 15 ports");
        return BAD_INPUT;
    }
    if args.daemon {
        return daemon(&args.config());
    }
    let daemon = supervisor::supervise(&mut myself("--daemon"), Timing::default());
    daemon.unwrap_or_else(|error| {
        complain(&format!("cannot start `airtcp delack`: {error}"));
        FAILURE
    })
}

/// The daemon itself, a child.
fn daemon(config: &DelackConfig) -> i32 {
    let mut heart = match Heartbeat::from_stdin() {
        Ok(heart) => heart,
        Err(error) => {
            complain(&format!("{error}; start `airtcp delack` without --daemon instead"));
            return FAILURE;
        }
    };
    match daemon::run(config, &mut || heart.beat(Instant::now(), Pace::Working)) {
        Ok(()) => SUCCESS,
        Err(error @ (DelackError::Interface(_) | DelackError::Rules(RulesError::Interface(_)))) => {
            complain(&format!("--interface: {error}"));
            BAD_INPUT
        }
        Err(error) => {
            complain(&error.to_string());
            FAILURE
        }
    }
}
