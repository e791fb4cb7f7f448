//! The daemon of `airtcp delack`.

use super::cwnd::{CwndCounters, CwndError, CwndOption, CwndRole};
use super::tap::Tap;
use crate::datapath::nfqueue::{Nfqueue, NfqueueError};
use crate::datapath::rules::{AckRules, AckSelection, RulesError};
use crate::kernel::clock::now;
use crate::kernel::host::interface;
use airtcp_gateway::delack::{Counters, Data, Decided, Holder, hops};
use airtcp_gateway::packets::Verdict;
use airtcp_tcp::config::AckConfig;
use airtcp_wire::decode_headers;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest time between two heartbeats of the loop.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// Settings of the daemon.
#[derive(Clone, Debug)]
pub struct DelackConfig {
    /// Delays ACKs; `None`: no ACK is delayed.
    pub delay: Option<Delay>,
    /// Part of this host in the exchange of cwnd.
    pub role: CwndRole,
}

/// Settings of delayed ACKs.
#[derive(Clone, Debug)]
pub struct Delay {
    /// The ACKs that are delayed, and the queue in which they wait.
    pub selection: AckSelection,
    /// Policy that decides when ACKs leave.
    pub policy: AckConfig,
    /// Most connections; ACKs of further ones pass.
    pub connections: usize,
}

/// Reason why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
pub enum DelackError {
    /// There is no such interface.
    #[error("no interface {0:?} (`ip link` lists them)")]
    Interface(String),
    /// The packet socket for arriving data cannot be opened.
    #[error("cannot capture arriving data (packet sockets need CAP_NET_RAW: run as root): {0}")]
    Tap(io::Error),
    /// The queue cannot be opened or used.
    #[error(transparent)]
    Queue(#[from] NfqueueError),
    /// The firewall rules cannot be set.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// cwnd can be neither requested nor reported.
    #[error(transparent)]
    Cwnd(#[from] CwndError),
    /// The queue or the packet socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Delays ACKs, and requests or reports cwnd, until SIGTERM, SIGINT or an error. Calls `beat` at
/// least every 50 ms while it is alive.
///
/// # Errors
/// Something required is missing, and nothing was changed; or the queue failed, and its rules are
/// removed.
pub fn run(config: &DelackConfig, beat: &mut dyn FnMut()) -> Result<(), DelackError> {
    let (stop, stopped) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    let CwndRole { requests, reports, .. } = config.role;
    let option = (requests || reports).then(|| CwndOption::attach(&config.role)).transpose()?;
    if option.is_some() {
        tracing::info!(requests, reports, "exchanging cwnd in a TCP option");
    }
    let ended = match &config.delay {
        Some(delay) => delay_acks(delay, &stopped, beat),
        None => wait(&stopped, beat),
    };
    if let Some(option) = option {
        let CwndCounters { requested, reported } = option.counters()?;
        tracing::info!(
            connections_requested = requested,
            connections_reported = reported,
            "stopped exchanging cwnd"
        );
    }
    ended
}

/// Waits to be stopped, while the kernel exchanges cwnd.
fn wait(stopped: &UnixStream, beat: &mut dyn FnMut()) -> Result<(), DelackError> {
    let timeout = PollTimeout::try_from(HEARTBEAT).expect("it is short");
    loop {
        beat();
        let mut stop = [PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        if poll(&mut stop, timeout).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
}

fn delay_acks(
    delay: &Delay,
    stopped: &UnixStream,
    beat: &mut dyn FnMut(),
) -> Result<(), DelackError> {
    let Delay { selection, policy, connections } = delay;
    let name = &selection.interface;
    let index = interface(name).ok_or_else(|| DelackError::Interface(name.clone()))?;
    let tap = Tap::open(index).map_err(DelackError::Tap)?;
    // At most one ACK of each connection waits; more may arrive before its verdict is carried out.
    let queue = Nfqueue::claim(selection.queue, (*connections as u32).saturating_mul(4))?;
    let rules = AckRules::install(selection)?;
    let queue = queue.listen()?;
    tracing::info!(
        backend = %rules.backend(),
        interface = name,
        "delaying acknowledgements"
    );
    let mut delayer = Delayer {
        holder: Holder::new(*policy, *connections),
        tap,
        queue,
        decided: Vec::new(),
        selection,
    };
    let ended = delayer.run(stopped, beat);
    // Rules go before the queue: packets must not be sent to a queue that no longer exists.
    drop(rules);
    let last = ended.and_then(|()| delayer.finish());
    let Counters {
        data_segments,
        segments_with_cwnd,
        acks,
        acks_dropped,
        acks_delayed,
        connections_refused,
    } = delayer.holder.counters();
    tracing::info!(
        data_segments,
        segments_with_cwnd,
        acks,
        acks_dropped,
        acks_delayed,
        connections_refused,
        "stopped delaying acknowledgements"
    );
    Ok(last?)
}

struct Delayer<'a> {
    holder: Holder,
    tap: Tap,
    queue: Nfqueue,
    decided: Vec<Decided>,
    selection: &'a AckSelection,
}

impl Delayer<'_> {
    fn run(&mut self, stopped: &UnixStream, beat: &mut dyn FnMut()) -> io::Result<()> {
        loop {
            beat();
            let timeout = self.holder.next_deadline().map_or(HEARTBEAT, |due| {
                Duration::from_nanos(due.since(now()).as_nanos()).min(HEARTBEAT)
            });
            self.step(Some(stopped), timeout)?;
            let mut stop = [PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
            if poll(&mut stop, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
                return Ok(());
            }
        }
    }

    /// Waits for packets and decides on them.
    fn step(&mut self, stopped: Option<&UnixStream>, timeout: Duration) -> io::Result<()> {
        let mut acks = Vec::new();
        let wakes = self.tap.fds().into_iter().chain(stopped.map(AsFd::as_fd));
        self.queue.receive(&wakes.collect::<Vec<_>>(), Some(timeout), &mut acks)?;
        let Self { holder, tap, queue, decided, selection } = self;
        // After the queue, but handled before the ACKs: the tap has got the data that caused an ACK
        // before the ACK was queued.
        tap.read(|arrived, headers, mss| {
            let segment = &headers.segment;
            if selection.has(&segment.flow) {
                let data = Data { arrived, segment, mss, hops: hops(headers.ttl) };
                holder.on_data(now(), &data, decided);
            }
        })?;
        let time = now();
        for packet in acks {
            let Some(id) = packet.id else { continue };
            match decode_headers(&packet.packet) {
                Ok(headers) => holder.on_ack(time, id, &headers.segment, decided),
                Err(_) => queue.decide_alone(id, Verdict::Pass),
            }
        }
        let time = now();
        if holder.next_deadline().is_some_and(|due| due <= time) {
            holder.on_timer(time, decided);
        }
        for (id, verdict) in decided.drain(..) {
            queue.decide_alone(id, verdict);
        }
        queue.flush()
    }

    /// Releases all ACKs, including those that arrive meanwhile.
    fn finish(&mut self) -> io::Result<()> {
        self.step(None, Duration::ZERO)?;
        self.holder.release_all(now(), &mut self.decided);
        for (id, verdict) in self.decided.drain(..) {
            self.queue.decide_alone(id, verdict);
        }
        self.queue.flush()
    }
}
