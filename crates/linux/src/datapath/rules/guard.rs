//! Notices that another program changed the rules: firewalld, ufw, Docker, or a person, by `nft
//! flush ruleset` or `iptables -F`.
//!
//! Read first: linux/netfilter/nf_tables.h. The kernel tells whoever listens to the group
//! `NFNLGRP_NFTABLES` what changes in nftables' rules, which those of `iptables-nft` are too.
//! Nobody tells of changes by `iptables-legacy`: one has to look.

use super::{Backend, iptables};
use crate::kernel::netlink::{Message, Netlink, attributes, messages, name, u32_at, value_of};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How often to look where the kernel does not tell.
const INTERVAL: Duration = Duration::from_millis(500);

/// Rules are repaired when nobody has removed more of them for so long. Scripts flush chains, then
/// delete them: rules that came back in between would be in their way.
const PATIENCE: Duration = Duration::from_millis(200);

/// Or so long after the first was missing.
const LONGEST_PATIENCE: Duration = Duration::from_millis(400);

/// After the rules were repaired they are not looked at for so long; doubled each time, until they
/// are found whole. Two programs that undo each other's work must not take all of the machine.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Size of `struct nfgenmsg`.
const FAMILY_HEADER: usize = 4;
/// `NFTA_TABLE_NAME`, and the table of a chain, a rule, a set or an element.
const TABLE: u16 = 1;
/// `NFTA_CHAIN_NAME` and `NFTA_CHAIN_USE`.
const CHAIN_NAME: u16 = 3;
const CHAIN_USE: u16 = 6;

/// How often each chain is used: its rules, and the rules that enter it.
pub(super) type Uses = BTreeMap<String, u32>;

/// Chains that are not used as often as they should be, and how often they are.
pub(super) type Gaps = Vec<(String, Option<u32>)>;

/// What `found` lacks of `wanted`.
pub(super) fn gaps(wanted: &Uses, found: &Uses) -> Gaps {
    let found = wanted.iter().map(|(chain, count)| (chain, count, found.get(chain)));
    let gaps = found.filter(|(_, count, found)| *found != Some(*count));
    gaps.map(|(chain, _, found)| (chain.clone(), found.copied())).collect()
}

/// When to look whether the rules are whole.
#[derive(Debug)]
pub(super) struct Guard {
    source: Source,
    /// Something has changed since the last look.
    is_due: bool,
    /// When somebody began to remove rules, if they are not repaired yet.
    broken: Option<Instant>,
    pause: Duration,
    not_before: Option<Instant>,
}

#[derive(Debug)]
enum Source {
    /// The kernel tells.
    Events { socket: Netlink, tables: &'static [&'static str] },
    /// One has to look.
    Clock { next: Instant, seen: Gaps },
}

impl Guard {
    /// Of the rules that `backend` set, in the network namespace of the calling thread. The first
    /// look is due.
    pub(super) fn new(backend: Backend) -> Self {
        let clock = || Source::Clock { next: Instant::now() + INTERVAL, seen: Gaps::new() };
        let source = if backend == Backend::Iptables && iptables::is_legacy() == Ok(true) {
            clock()
        } else {
            let group = 1 << (libc::NFNLGRP_NFTABLES - 1);
            match Netlink::subscribe(libc::NETLINK_NETFILTER, group) {
                Ok(socket) => Source::Events { socket, tables: backend.tables() },
                Err(error) => {
                    tracing::debug!(%error, "the kernel does not tell of changed rules");
                    clock()
                }
            }
        };
        Self { source, is_due: true, broken: None, pause: FIRST_PAUSE, not_before: None }
    }

    /// Waits until there is a reason to look or `wake` is readable.
    pub(super) fn wait(&self, wake: BorrowedFd<'_>) {
        let next = match &self.source {
            _ if self.is_due => self.not_before,
            Source::Events { .. } => None,
            Source::Clock { next, .. } => Some(*next),
        };
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Rounded up, so as not to spin in the last millisecond.
        let round = |left: Duration| PollTimeout::try_from(left + Duration::from_micros(999));
        let timeout =
            left.map_or(PollTimeout::NONE, |left| round(left).unwrap_or(PollTimeout::MAX));
        let events = match &self.source {
            Source::Events { socket, .. } => Some(socket.as_fd()),
            Source::Clock { .. } => None,
        };
        let mut fds: Vec<_> = std::iter::once(wake)
            .chain(events)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // Whatever went wrong, the caller looks.
        let _ = poll(&mut fds, timeout);
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        match &mut self.source {
            Source::Events { socket, tables } => {
                if drain(socket, tables) {
                    self.be_patient(now);
                }
            }
            Source::Clock { next, .. } => {
                if *next <= now {
                    *next = now + INTERVAL;
                    self.is_due = true;
                }
            }
        }
        self.is_due && self.not_before.is_none_or(|at| at <= now)
    }

    /// Somebody is removing rules, and may go on.
    fn be_patient(&mut self, now: Instant) {
        let first = *self.broken.get_or_insert(now);
        let at = (now + PATIENCE).min(first + LONGEST_PATIENCE);
        self.is_due = true;
        self.not_before = self.not_before.max(Some(at));
    }

    /// Whether to repair what a look has found missing.
    pub(super) fn must_repair(&mut self, now: Instant, found: &Gaps) -> bool {
        if found.is_empty() {
            (self.is_due, self.not_before, self.pause) = (false, None, FIRST_PAUSE);
            self.forget();
            return false;
        }
        if let Source::Clock { seen, .. } = &mut self.source
            && seen != found
        {
            seen.clone_from(found);
            self.be_patient(now);
        }
        self.not_before.is_none_or(|at| at <= now)
    }

    /// The rules have been repaired, or could not be.
    pub(super) fn repaired(&mut self, is_whole: bool) {
        self.is_due = !is_whole;
        self.not_before = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.forget();
    }

    /// Whatever is missing from now on, somebody has just begun to remove it.
    fn forget(&mut self) {
        self.broken = None;
        if let Source::Clock { seen, .. } = &mut self.source {
            seen.clear();
        }
    }
}

/// Reads what the kernel told; whether something of these tables has gone, or the kernel may have
/// told more.
fn drain(socket: &Netlink, tables: &[&str]) -> bool {
    let mut is_due = false;
    loop {
        match socket.next() {
            Ok(Some(datagram)) => {
                is_due |= messages(&datagram).any(|(kind, body)| is_removal(kind, body, tables));
            }
            Ok(None) => return is_due,
            // There was too much to tell.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => is_due = true,
            Err(_) => return true,
        }
    }
}

/// A message about something of one of these tables that is no longer there.
fn is_removal(kind: u16, body: &[u8], tables: &[&str]) -> bool {
    const REMOVALS: [i32; 5] = [
        libc::NFT_MSG_DELTABLE,
        libc::NFT_MSG_DELCHAIN,
        libc::NFT_MSG_DELRULE,
        libc::NFT_MSG_DELSET,
        libc::NFT_MSG_DELSETELEM,
    ];
    let kind = i32::from(kind);
    let is_removal = kind >> 8 == libc::NFNL_SUBSYS_NFTABLES && REMOVALS.contains(&(kind & 0xff));
    let table = || value_of(body.get(FAMILY_HEADER..).unwrap_or_default(), TABLE).and_then(name);
    is_removal && table().is_some_and(|table| tables.contains(&table))
}

/// How often the chains of a table of nftables are used, of one family (`NFPROTO_INET`, …).
pub(super) fn uses(family: i32, table: &str) -> io::Result<Uses> {
    let socket = Netlink::open(libc::NETLINK_NETFILTER)?;
    let (subsystem, dump) = (libc::NFNL_SUBSYS_NFTABLES, libc::NLM_F_DUMP);
    let request = Message::netfilter(subsystem, libc::NFT_MSG_GETCHAIN, dump, family, 0).finish();
    let mut uses = Uses::new();
    for (_, body) in socket.dump(&request)? {
        let (mut of, mut chain, mut count) = (None, None, None);
        for (kind, value) in attributes(body.get(FAMILY_HEADER..).unwrap_or_default()) {
            match kind {
                TABLE => of = name(value),
                CHAIN_NAME => chain = name(value),
                CHAIN_USE => count = u32_at(value, 0).map(u32::from_be),
                _ => {}
            }
        }
        if let (Some(chain), Some(count)) = (chain, count)
            && of == Some(table)
        {
            uses.insert(chain.to_owned(), count);
        }
    }
    Ok(uses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, table: &str) -> (u16, Vec<u8>) {
        let bytes = Message::netfilter(libc::NFNL_SUBSYS_NFTABLES, kind, 0, libc::AF_INET, 0)
            .with_name(TABLE, table)
            .finish();
        let (kind, body) = messages(&bytes).next().unwrap();
        (kind, body.to_vec())
    }

    #[test]
    fn only_what_is_removed_from_a_table_with_our_rules_counts() {
        let counts = |kind, table| {
            let (kind, body) = message(kind, table);
            is_removal(kind, &body, &["raw", "mangle"])
        };
        assert!(counts(libc::NFT_MSG_DELRULE, "mangle"));
        assert!(counts(libc::NFT_MSG_DELTABLE, "raw"));
        assert!(!counts(libc::NFT_MSG_DELRULE, "filter"));
        assert!(!counts(libc::NFT_MSG_NEWCHAIN, "mangle"));
    }

    fn by_clock() -> Guard {
        let next = Instant::now() + LONGEST_PAUSE;
        let source = Source::Clock { next, seen: Gaps::new() };
        Guard { source, is_due: true, broken: None, pause: FIRST_PAUSE, not_before: None }
    }

    #[test]
    fn who_repairs_again_and_again_pauses_longer_and_longer() {
        let mut guard = by_clock();
        assert!(guard.is_due());
        guard.repaired(true);
        guard.is_due = true;
        assert!(!guard.is_due(), "a pause");
        assert_eq!(guard.pause, 2 * FIRST_PAUSE);
        assert!(!guard.must_repair(Instant::now(), &Gaps::new()));
        guard.is_due = true;
        assert!(guard.is_due(), "found whole: no pause");
        (0..20).for_each(|_| guard.repaired(false));
        assert_eq!(guard.pause, LONGEST_PAUSE);
    }

    #[test]
    fn what_is_seen_to_be_removed_is_mended_when_nobody_removes_more() {
        let gaps = |uses: Option<u32>| vec![("airtcp".to_owned(), uses)];
        let mut guard = by_clock();
        let begin = Instant::now();
        let flushed = gaps(Some(1));
        assert!(!guard.must_repair(begin, &flushed), "more may be removed");
        assert_eq!(guard.not_before, Some(begin + PATIENCE));
        assert!(guard.must_repair(begin + PATIENCE, &flushed), "nothing more was");
        guard.repaired(true);

        guard.not_before = None;
        assert!(!guard.must_repair(begin, &flushed));
        let later = begin + PATIENCE;
        assert!(!guard.must_repair(later, &gaps(None)), "more was removed");
        assert_eq!(guard.not_before, Some(later + PATIENCE));
        let last = begin + LONGEST_PATIENCE;
        assert!(guard.must_repair(last, &gaps(Some(0))), "but not for ever");
    }
}
