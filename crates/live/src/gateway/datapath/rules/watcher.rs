//! Rules that change while packets go on.

use super::{Rules, RulesError};
use crate::gateway::config::GatewayConfig;
use crate::gateway::copies::CopySwitch;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// A thread that owns the [`Rules`]: a change takes some milliseconds, for which no packet should
/// wait. Dropped, it finishes what it was asked to do and removes the rules.
#[derive(Debug)]
pub struct Watcher {
    /// Taken to end the thread.
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Request {
    Watch(IpAddr, bool),
    Copies(Option<CopySwitch>),
    Replace(Box<GatewayConfig>, Sender<Result<(), RulesError>>),
}

impl Watcher {
    /// Takes `rules` over; `failed` hears what could not be watched, in the thread.
    pub fn new(rules: Rules, failed: impl FnMut(RulesError) + Send + 'static) -> Self {
        let (requests, asked) = mpsc::channel();
        let thread = thread::spawn(move || work(rules, failed, &asked));
        Self { requests: Some(requests), thread: Some(thread) }
    }

    /// Begins or ends to queue a mobile's packets, soon; see [`Rules::watch`].
    pub fn watch(&self, mobile: IpAddr, on: bool) {
        self.send(Request::Watch(mobile, on));
    }

    /// See [`Rules::set_copies`].
    pub fn set_copies(&self, copies: Option<CopySwitch>) {
        self.send(Request::Copies(copies));
    }

    /// Goes on with the rules for another configuration, and waits for them.
    ///
    /// # Errors
    /// As [`Rules::replace`].
    pub fn replace(&self, config: &GatewayConfig) -> Result<(), RulesError> {
        let (answer, done) = mpsc::channel();
        self.send(Request::Replace(Box::new(config.clone()), answer));
        done.recv().unwrap_or_else(|_| Err(RulesError::Refused("the rules are gone".into())))
    }

    fn send(&self, request: Request) {
        if let Some(requests) = &self.requests {
            // The thread ends after us.
            let _ = requests.send(request);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(mut rules: Rules, mut failed: impl FnMut(RulesError), asked: &Receiver<Request>) {
    while let Ok(first) = asked.recv() {
        // All waiting requests become one change; of each mobile, the last one counts.
        let mut watched = BTreeMap::new();
        let (mut replace, mut copies) = (None, None);
        for request in std::iter::once(first).chain(asked.try_iter()) {
            match request {
                Request::Watch(mobile, on) => drop(watched.insert(mobile, on)),
                Request::Copies(switch) => copies = Some(switch),
                Request::Replace(config, answer) => {
                    replace = Some((config, answer));
                    break;
                }
            }
        }
        if let Some(copies) = copies {
            rules.set_copies(copies);
        }
        for on in [true, false] {
            let mobiles: Vec<_> = watched
                .iter()
                .filter(|(_, is_on)| **is_on == on)
                .map(|(mobile, _)| *mobile)
                .collect();
            rules.watch(&mobiles, on).unwrap_or_else(&mut failed);
        }
        if let Some((config, answer)) = replace {
            // Whoever asked may have given up.
            let _ = answer.send(rules.replace(&config));
        }
    }
}
