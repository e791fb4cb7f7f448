//! `airtcp agent`: reports the link state of a mobile to the gateway.
//!
//! Read in this order: [`program`] (a program that prints the link state),
//! [`outbox`](airtcp_gateway::signals::outbox) (reports, repeated until acknowledged). [`run`] is
//! the loop around them: one thread, one UDP socket, and the source.

pub mod program;

pub use airtcp_gateway::signals::outbox::Answered;

use crate::kernel::clock::Clock;
use crate::signals::agent::is_passing;
use airtcp_core::{Duration, LinkSignal};
use airtcp_gateway::signals::keys::{Key, is_single};
use airtcp_gateway::signals::message::{MOST_BYTES, MOST_MOBILES, Stamp};
use airtcp_gateway::signals::outbox::Outbox;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A source of link signals.
pub trait Source {
    /// Descriptor that is readable when there may be signals.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// The signals since the last call, without waiting.
    ///
    /// # Errors
    /// The source failed; the message says why.
    fn look(&mut self) -> Result<Seen, AgentError>;
}

/// Signals of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Signals in order; usually none.
    Signals(Vec<LinkSignal>),
    /// The last signals; the source has ended.
    Last(Vec<LinkSignal>),
}

/// A source of a single signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once(pub LinkSignal);

impl Source for Once {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn look(&mut self) -> Result<Seen, AgentError> {
        Ok(Seen::Last(vec![self.0]))
    }
}

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Address on which the gateway listens for agents.
    pub gateway: SocketAddr,
    /// Key shared with the gateway.
    pub key: Key,
    /// Addresses to report for, at least one and at most [`MOST_MOBILES`].
    pub mobiles: Vec<IpAddr>,
    /// Longest time to repeat the last signal after the source has ended.
    pub patience: Duration,
}

/// Reason why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No address was given, and the key does not list single addresses.
    #[error(
        "say which addresses this agent speaks for (--mobile ADDRESS, at most {MOST_MOBILES}): its key speaks for {0}"
    )]
    WhichMobiles(String),
    /// The key does not speak for an address.
    #[error("the key speaks for {allowed}, not for {mobile}")]
    NotAllowed {
        /// The address asked for.
        mobile: IpAddr,
        /// The addresses in the file of keys.
        allowed: String,
    },
    /// The gateway did not answer.
    #[error(
        "{gateway} did not answer within {patience}: is it running, does it have the same key, is UDP let through?"
    )]
    NoAnswer {
        /// Address of the gateway.
        gateway: SocketAddr,
        /// Time for which the agent waited.
        patience: Duration,
    },
    /// The gateway refused the last signal.
    #[error("{0} does not let this key speak for these addresses (see its file of keys)")]
    Refused(SocketAddr),
    /// The source failed.
    #[error("{0}")]
    Source(String),
    /// Unexpected failure of a system call.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl AgentConfig {
    /// Checks `mobiles` against the key. If it is empty, takes the single addresses of the key.
    ///
    /// # Errors
    /// The key does not speak for one of them, there are none, or too many for one message.
    pub fn new(
        gateway: SocketAddr,
        key: Key,
        mobiles: Vec<IpAddr>,
        patience: Duration,
    ) -> Result<Self, AgentError> {
        let allowed = || {
            let nets: Vec<String> = key.speaks_for.iter().map(ToString::to_string).collect();
            nets.join(", ")
        };
        if let Some(&mobile) = mobiles.iter().find(|&&mobile| !key.is_allowed(mobile)) {
            return Err(AgentError::NotAllowed { mobile, allowed: allowed() });
        }
        let is_listed = mobiles.is_empty() && key.speaks_for.iter().all(is_single);
        let mobiles = match is_listed {
            true => key.speaks_for.iter().map(|net| net.addr()).collect(),
            false => mobiles,
        };
        if !(1..=MOST_MOBILES).contains(&mobiles.len()) {
            return Err(AgentError::WhichMobiles(allowed()));
        }
        Ok(Self { gateway, key, mobiles, patience })
    }
}

/// Reports the signals of `source` until it ends; calls `notify` with the gateway's answers.
///
/// # Errors
/// The source fails, or the gateway does not accept its last signal.
pub fn run(
    config: AgentConfig,
    source: &mut dyn Source,
    notify: &mut dyn FnMut(Answered),
) -> Result<(), AgentError> {
    let AgentConfig { gateway, key, mobiles, patience } = config;
    let socket = open(gateway)?;
    let clock = Clock::start();
    let mut outbox = Outbox::new(key, mobiles);
    let mut ended: Option<Stamp> = None;
    loop {
        if ended.is_none() {
            let seen = source.look()?;
            let now = clock.now();
            let (Seen::Signals(signals) | Seen::Last(signals)) = &seen;
            for &signal in signals {
                outbox.say(now, signal);
            }
            if matches!(seen, Seen::Last(_)) {
                ended = Some(now);
            }
        }
        let now = clock.now();
        if let Some(datagram) = outbox.send(now)
            && let Err(error) = socket.send_to(datagram, gateway)
            && !is_out_of_reach(&error)
        {
            return Err(error.into());
        }
        if let Some(since) = ended {
            if outbox.pending().is_none() {
                return Ok(());
            }
            if now.since(since) >= patience {
                return Err(AgentError::NoAnswer { gateway, patience });
            }
        }
        let to_send = outbox.due().map(|due| due.since(now));
        let to_end = ended.map(|since| since.after(patience).since(now));
        let descriptor = if ended.is_none() { source.descriptor() } else { None };
        wait(&socket, descriptor, [to_send, to_end].into_iter().flatten().min())?;
        while let Some(answered) = receive(&socket, &clock, &mut outbox)? {
            let is_refused = matches!(answered, Answered::NotAllowed(_));
            if answered != Answered::Nothing {
                notify(answered);
            }
            if is_refused && ended.is_some() {
                return Err(AgentError::Refused(gateway));
            }
        }
    }
}

/// A non-blocking UDP socket to the gateway. It is not connected, so that the kernel chooses the
/// source address for each message: a mobile's address changes.
fn open(gateway: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(match gateway {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    })?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Reads a datagram; `None` if none waits. Its sender does not matter: a gateway has several
/// addresses, and its answers are authenticated.
fn receive(
    socket: &UdpSocket,
    clock: &Clock,
    outbox: &mut Outbox,
) -> Result<Option<Answered>, AgentError> {
    let mut buffer = [0; MOST_BYTES];
    match socket.recv(&mut buffer) {
        Ok(length) => Ok(Some(outbox.receive(clock.now(), &buffer[..length]))),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// True if a datagram could not be sent because the mobile is out of reach; it is repeated anyway.
fn is_out_of_reach(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    is_passing(error)
        || matches!(
            errno,
            Some(
                Errno::ENETDOWN
                    | Errno::EADDRNOTAVAIL
                    | Errno::ENOBUFS
                    | Errno::EPERM
                    | Errno::ENODEV
            )
        )
}

fn wait(
    socket: &UdpSocket,
    source: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> Result<(), AgentError> {
    let mut polled = vec![PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    polled.extend(source.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    // Rounded up, so as not to spin in the last millisecond.
    let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
