//! What `airtcp delack` does until it is stopped.

use super::cwnd::{CwndCounters, CwndError, CwndOption, Role};
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

/// The loop shows at least this often that it is alive.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// What is to be done.
#[derive(Clone, Debug)]
pub struct DelackConfig {
    /// Which ACKs wait, and when they leave; `None`: none do.
    pub delay: Option<Delay>,
    /// Who asks for cwnd, and who tells it.
    pub role: Role,
}

/// Which ACKs wait, and when they leave.
#[derive(Clone, Debug)]
pub struct Delay {
    /// Whose ACKs, and where they wait.
    pub selection: AckSelection,
    /// When they leave.
    pub policy: AckConfig,
    /// Connections at most; the ACKs of further ones are left alone.
    pub connections: usize,
}

/// Why ACKs are not delayed.
#[derive(Debug, thiserror::Error)]
pub enum DelackError {
    /// There is no such interface.
    #[error("there is no interface {0:?} here (`ip link` lists them)")]
    Interface(String),
    /// The arriving data cannot be seen.
    #[error("cannot see the data that arrive (packet sockets need CAP_NET_RAW: run as root): {0}")]
    Tap(io::Error),
    /// The queue cannot be opened or used.
    #[error(transparent)]
    Queue(#[from] NfqueueError),
    /// The firewall rules cannot be set.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// cwnd can be neither told nor asked for.
    #[error(transparent)]
    Cwnd(#[from] CwndError),
    /// The queue or the tap broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Delays ACKs, asks for cwnd and tells it until SIGTERM, SIGINT or an error. Calls `beat` often as
/// long as it is alive.
///
/// # Errors
/// Something that it needs is missing, and nothing was changed; or the queue broke, and its rules
/// are gone.
pub fn run(config: &DelackConfig, beat: &mut dyn FnMut()) -> Result<(), DelackError> {
    let (stop, stopped) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    let Role { asks, tells, .. } = config.role;
    let option = (asks || tells).then(|| CwndOption::attach(&config.role)).transpose()?;
    if option.is_some() {
        tracing::info!(asks, tells, "cwnd travels in a TCP option");
    }
    let ended = match &config.delay {
        Some(delay) => delay_acks(delay, &stopped, beat),
        None => wait(&stopped, beat),
    };
    if let Some(option) = option {
        let CwndCounters { asked, told } = option.counters()?;
        tracing::info!(
            connections_asked = asked,
            connections_told = told,
            "cwnd no longer travels"
        );
    }
    ended
}

/// The kernel does the work; this only waits to be stopped.
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
    // One ACK of a connection waits at most; as many again may be on their way.
    let queue = Nfqueue::open(selection.queue, (*connections as u32).saturating_mul(4))?;
    let rules = AckRules::install(selection)?;
    tracing::info!(
        backend = %rules.backend(),
        interface = name,
        "acknowledgements are delayed"
    );
    let mut delayer = Delayer {
        holder: Holder::new(*policy, *connections),
        tap,
        queue,
        decided: Vec::new(),
        selection,
    };
    let ended = delayer.run(stopped, beat);
    // Packets must not be sent to a queue that is gone.
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
        "acknowledgements are no longer delayed"
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

    /// Waits for packets and decides about them.
    fn step(&mut self, stopped: Option<&UnixStream>, timeout: Duration) -> io::Result<()> {
        let mut acks = Vec::new();
        let wakes = self.tap.fds().into_iter().chain(stopped.map(AsFd::as_fd));
        self.queue.receive(&wakes.collect::<Vec<_>>(), Some(timeout), &mut acks)?;
        let Self { holder, tap, queue, decided, selection } = self;
        // Data were seen by the tap before the ACKs behind them were queued.
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

    /// Lets go of all ACKs, those that come meanwhile too.
    fn finish(&mut self) -> io::Result<()> {
        self.step(None, Duration::ZERO)?;
        self.holder.release_all(now(), &mut self.decided);
        for (id, verdict) in self.decided.drain(..) {
            self.queue.decide_alone(id, verdict);
        }
        self.queue.flush()
    }
}
