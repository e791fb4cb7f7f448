//! `airtcp agent`: a mobile that tells the gateway how its link is.
//!
//! Read in this order: [`program`] (a program that prints what it sees),
//! [`outbox`](airtcp_gateway::signals::outbox) (what is said, repeated until the gateway has it).
//! [`run`] is the loop around them: one thread, one UDP socket, and the source.

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

/// Sees how the link is.
pub trait Source {
    /// Readable when there is something to see.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// What it has seen since the last look.
    ///
    /// # Errors
    /// It cannot go on; the message says why.
    fn look(&mut self) -> Result<Seen, AgentError>;
}

/// What a [`Source`] has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Signals, first one first; mostly none.
    Signals(Vec<LinkSignal>),
    /// The same, and there will be no more.
    Last(Vec<LinkSignal>),
}

/// One signal by hand.
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

/// Where an agent reports, and on whose behalf.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Known to the gateway too.
    pub key: Key,
    /// The mobiles spoken of, at least one and at most [`MOST_MOBILES`].
    pub mobiles: Vec<IpAddr>,
    /// When the source ends, its last signal is repeated for at most this long.
    pub patience: Duration,
}

/// Why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No address to speak for was given and the key does not tell.
    #[error(
        "say which addresses this agent speaks for (--mobile ADDRESS, at most {MOST_MOBILES}): its key speaks for {0}"
    )]
    WhichMobiles(String),
    /// The key does not speak for an address.
    #[error("the key speaks for {allowed}, not for {mobile}")]
    NotAllowed {
        /// As asked for.
        mobile: IpAddr,
        /// As in the file of keys.
        allowed: String,
    },
    /// The gateway did not answer.
    #[error(
        "{gateway} did not answer within {patience}: is it running, does it have the same key, is UDP let through?"
    )]
    NoAnswer {
        /// Who.
        gateway: SocketAddr,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The gateway refused the last signal.
    #[error("{0} does not let this key speak for these addresses (see its file of keys)")]
    Refused(SocketAddr),
    /// The source cannot go on.
    #[error("{0}")]
    Source(String),
    /// A system call failed that normally does not.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl AgentConfig {
    /// Checks `mobiles` against the key; if there are none, those that the key lists one by one.
    ///
    /// # Errors
    /// The key does not speak for one of them, or lists none, or they are too many for one message.
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

/// Reports what `source` sees until it ends, and `tell`s what became of it.
///
/// # Errors
/// The source fails, or the gateway did not take its last signal.
pub fn run(
    config: AgentConfig,
    source: &mut dyn Source,
    tell: &mut dyn FnMut(Answered),
) -> Result<(), AgentError> {
    let AgentConfig { gateway, key, mobiles, patience } = config;
    // Not connected: then the kernel chooses the source address anew for each message, and a
    // mobile's changes.
    let socket = UdpSocket::bind(match gateway {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    })?;
    socket.set_nonblocking(true)?;
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
        let mut buffer = [0; MOST_BYTES];
        loop {
            // From wherever: a gateway has several addresses, and its answers are authentic.
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error.into()),
            };
            match outbox.receive(clock.now(), &buffer[..length]) {
                Answered::Nothing => {}
                answered @ Answered::Taken(..) => tell(answered),
                answered @ Answered::NotAllowed(_) => {
                    tell(answered);
                    if ended.is_some() {
                        return Err(AgentError::Refused(gateway));
                    }
                }
            }
        }
    }
}

/// Whether a datagram could not be sent because the mobile is away: it is repeated anyway.
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
    // Rounded up, not to wake too early again and again.
    let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
