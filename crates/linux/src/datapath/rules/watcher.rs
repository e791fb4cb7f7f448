//! Changes and repairs rules without delaying packets.

use super::guard::Guard;
use super::{Rules, RulesError};
use crate::datapath::mirror::MirrorSwitch;
use airtcp_edge::MobileId;
use airtcp_gateway::config::GatewayConfig;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A thread that owns the [`Rules`]: a change takes some milliseconds, for which no packet should
/// wait. On drop, it finishes waiting requests and removes the rules.
#[derive(Debug)]
pub struct Watcher {
    /// Dropped to end the thread.
    requests: Option<Sender<Request>>,
    /// Readable while there may be requests.
    wake: Arc<EventFd>,
    repaired: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

enum Request {
    Watch(MobileId, bool),
    Mirror(Option<MirrorSwitch>),
    Replace(Box<GatewayConfig>, Done),
}

/// Callback with the result of a request, called in the thread.
type Done = Box<dyn FnOnce(Result<(), RulesError>) + Send>;

impl Watcher {
    /// Takes over `rules`. The thread calls `failed` when it cannot watch a mobile or repair rules.
    ///
    /// # Errors
    /// No more file descriptors.
    pub fn new(rules: Rules, failed: impl FnMut(RulesError) + Send + 'static) -> io::Result<Self> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake = Arc::new(EventFd::from_flags(flags)?);
        let repaired = Arc::<AtomicU64>::default();
        let (requests, asked) = mpsc::channel();
        let thread = thread::spawn({
            let (wake, repaired) = (wake.clone(), repaired.clone());
            move || work(rules, failed, &asked, &wake, &repaired)
        });
        Ok(Self { requests: Some(requests), wake, repaired, thread: Some(thread) })
    }

    /// Number of times that rules removed by another program were repaired.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Begins or ends to queue a mobile's packets, without waiting for it; see [`Rules::watch`].
    pub fn watch(&self, mobile: MobileId, on: bool) {
        self.send(Request::Watch(mobile, on));
    }

    /// Sets the mirror switch, without waiting for it; see [`Rules::set_mirror`].
    pub fn set_mirror(&self, mirror: Option<MirrorSwitch>) {
        self.send(Request::Mirror(mirror));
    }

    /// Begins to install the rules of another configuration. The thread calls `done` with the
    /// result of [`Rules::replace`].
    pub fn replace(
        &self,
        config: &GatewayConfig,
        done: impl FnOnce(Result<(), RulesError>) + Send + 'static,
    ) {
        self.send(Request::Replace(Box::new(config.clone()), Box::new(done)));
    }

    fn send(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // The thread ends after us.
            let _ = requests.send(request);
            // The write fails only if the counter is full, and then it is readable.
            let _ = self.wake.write(1);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.wake.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(
    mut rules: Rules,
    mut failed: impl FnMut(RulesError),
    asked: &Receiver<Request>,
    wake: &EventFd,
    repaired: &AtomicU64,
) {
    let mut guard = Guard::new(rules.backend());
    loop {
        // Cleared before requests are read: a later one must wake the thread again.
        let _ = wake.read();
        loop {
            match asked.try_recv() {
                Ok(first) => change(&mut rules, first, asked, &mut failed),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if guard.is_due() {
            match repair(&rules, &mut guard) {
                Ok(false) => {}
                Ok(true) => {
                    repaired.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!("another program removed rules of the gateway; restored them");
                }
                Err(error) => failed(error),
            }
        }
        guard.wait(wake.as_fd());
    }
}

/// Checks the rules, and repairs them if that is due; true if it did.
fn repair(rules: &Rules, guard: &mut Guard) -> Result<bool, RulesError> {
    let result = match rules.gaps() {
        Ok(gaps) if !guard.must_repair(Instant::now(), &gaps) => return Ok(false),
        Ok(_) => rules.repair(),
        Err(error) => Err(error),
    };
    guard.repaired(result.is_ok());
    result.map(|()| true)
}

/// Combines all waiting requests into one change; the last one for each mobile wins.
fn change(
    rules: &mut Rules,
    first: Request,
    asked: &Receiver<Request>,
    failed: &mut impl FnMut(RulesError),
) {
    let mut watched = BTreeMap::new();
    let (mut replace, mut mirror) = (None, None);
    for request in std::iter::once(first).chain(asked.try_iter()) {
        match request {
            Request::Watch(mobile, on) => drop(watched.insert(mobile, on)),
            Request::Mirror(switch) => mirror = Some(switch),
            Request::Replace(config, done) => {
                replace = Some((config, done));
                break;
            }
        }
    }
    if let Some(mirror) = mirror {
        rules.set_mirror(mirror);
    }
    for on in [true, false] {
        let mobiles: Vec<_> =
            watched.iter().filter(|(_, is_on)| **is_on == on).map(|(mobile, _)| *mobile).collect();
        rules.watch(&mobiles, on).unwrap_or_else(&mut *failed);
    }
    if let Some((config, done)) = replace {
        done(rules.replace(&config));
    }
}
