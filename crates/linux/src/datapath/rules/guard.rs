//! Detects that the rules were changed by another program: firewalld, ufw, Docker, or a person with
//! `nft flush ruleset` or `iptables -F`.
//!
//! Read first: linux/netfilter/nf_tables.h. The kernel notifies listeners of the group
//! `NFNLGRP_NFTABLES` of changes in nftables' rules, including those of `iptables-nft`. Changes by
//! `iptables-legacy` must be polled for.

use super::{Backend, iptables};
use crate::kernel::netlink::{Message, Netlink, attributes, messages, name, u32_at, value_of};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Polling interval if the kernel does not notify.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time without further removals after which rules are repaired. Scripts flush chains, then delete
/// them: rules repaired in between would make the deletion fail.
const PATIENCE: Duration = Duration::from_millis(200);

/// Longest time from the first removal to the repair.
const LONGEST_PATIENCE: Duration = Duration::from_millis(400);

/// Pause after the first repair; doubled with each further one, until the rules are found complete.
/// Two programs that undo each other's work must not load the machine.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause after a repair.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Size of `struct nfgenmsg`.
const FAMILY_HEADER: usize = 4;
/// The attribute `NFTA_TABLE_NAME`, and equally the table of a chain, a rule, a set or an element.
const TABLE: u16 = 1;
/// The attribute `NFTA_CHAIN_NAME`.
const CHAIN_NAME: u16 = 3;
/// The attribute `NFTA_CHAIN_USE`.
const CHAIN_USE: u16 = 6;

/// Use count of each chain: its rules, plus the rules that jump to it.
pub(super) type Uses = BTreeMap<String, u32>;

/// Chains with a wrong use count, and that count (`None`: the chain is missing).
pub(super) type Gaps = Vec<(String, Option<u32>)>;

/// Chains whose use count in `found` differs from `wanted`.
pub(super) fn gaps(wanted: &Uses, found: &Uses) -> Gaps {
    let found = wanted.iter().map(|(chain, count)| (chain, count, found.get(chain)));
    let gaps = found.filter(|(_, count, found)| *found != Some(*count));
    gaps.map(|(chain, _, found)| (chain.clone(), found.copied())).collect()
}

/// Decides when to check the rules, and when to repair them.
#[derive(Debug)]
pub(super) struct Guard {
    source: ChangeSource,
    /// Something may have changed since the last check.
    is_due: bool,
    /// Time of the first removal that is not repaired yet.
    broken: Option<Instant>,
    pause: Duration,
    not_before: Option<Instant>,
}

#[derive(Debug)]
enum ChangeSource {
    /// The kernel notifies of changes.
    Events { socket: Netlink, tables: &'static [&'static str] },
    /// The rules are polled.
    Clock { next: Instant, seen: Gaps },
}

impl Guard {
    /// A guard of the rules that `backend` set, in the network namespace of the calling thread. The
    /// first check is due.
    pub(super) fn new(backend: Backend) -> Self {
        let clock = || ChangeSource::Clock { next: Instant::now() + INTERVAL, seen: Gaps::new() };
        let source = if backend == Backend::Iptables && iptables::is_legacy() == Ok(true) {
            clock()
        } else {
            let group = 1 << (libc::NFNLGRP_NFTABLES - 1);
            match Netlink::subscribe(libc::NETLINK_NETFILTER, group) {
                Ok(socket) => ChangeSource::Events { socket, tables: backend.tables() },
                Err(error) => {
                    tracing::debug!(%error, "no notifications of changed rules; polling");
                    clock()
                }
            }
        };
        Self { source, is_due: true, broken: None, pause: FIRST_PAUSE, not_before: None }
    }

    /// Waits until a check may be due or `wake` is readable.
    pub(super) fn wait(&self, wake: BorrowedFd<'_>) {
        let next = match &self.source {
            _ if self.is_due => self.not_before,
            ChangeSource::Events { .. } => None,
            ChangeSource::Clock { next, .. } => Some(*next),
        };
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Rounded up, so as not to spin in the last millisecond.
        let round = |left: Duration| PollTimeout::try_from(left + Duration::from_micros(999));
        let timeout =
            left.map_or(PollTimeout::NONE, |left| round(left).unwrap_or(PollTimeout::MAX));
        let events = match &self.source {
            ChangeSource::Events { socket, .. } => Some(socket.as_fd()),
            ChangeSource::Clock { .. } => None,
        };
        let mut fds: Vec<_> = std::iter::once(wake)
            .chain(events)
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        // After any error the caller checks, too.
        let _ = poll(&mut fds, timeout);
    }

    /// True if a check is due.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        match &mut self.source {
            ChangeSource::Events { socket, tables } => {
                if drain(socket, tables) {
                    self.postpone(now);
                }
            }
            ChangeSource::Clock { next, .. } => {
                if *next <= now {
                    *next = now + INTERVAL;
                    self.is_due = true;
                }
            }
        }
        self.is_due && self.not_before.is_none_or(|at| at <= now)
    }

    /// Postpones the check: another program is removing rules, and may continue.
    fn postpone(&mut self, now: Instant) {
        let first = *self.broken.get_or_insert(now);
        let at = (now + PATIENCE).min(first + LONGEST_PATIENCE);
        self.is_due = true;
        self.not_before = self.not_before.max(Some(at));
    }

    /// True if the gaps that a check has found must be repaired now.
    pub(super) fn must_repair(&mut self, now: Instant, found: &Gaps) -> bool {
        if found.is_empty() {
            (self.is_due, self.not_before, self.pause) = (false, None, FIRST_PAUSE);
            self.forget();
            return false;
        }
        if let ChangeSource::Clock { seen, .. } = &mut self.source
            && seen != found
        {
            seen.clone_from(found);
            self.postpone(now);
        }
        self.not_before.is_none_or(|at| at <= now)
    }

    /// Notes that the rules were repaired, or that this failed.
    pub(super) fn repaired(&mut self, is_whole: bool) {
        self.is_due = !is_whole;
        self.not_before = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.forget();
    }

    /// Forgets earlier removals: what is missing from now on is a new removal.
    fn forget(&mut self) {
        self.broken = None;
        if let ChangeSource::Clock { seen, .. } = &mut self.source {
            seen.clear();
        }
    }
}

/// Reads notifications; true if something of these tables was removed, or notifications were lost.
fn drain(socket: &Netlink, tables: &[&str]) -> bool {
    let mut is_due = false;
    loop {
        match socket.next() {
            Ok(Some(datagram)) => {
                is_due |= messages(&datagram).any(|(kind, body)| is_removal(kind, body, tables));
            }
            Ok(None) => return is_due,
            // Notifications were lost.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => is_due = true,
            Err(_) => return true,
        }
    }
}

/// True for a message that something of one of these tables was removed.
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

/// Use counts of the chains in a table of nftables, of one family (`NFPROTO_INET`, …).
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
        let source = ChangeSource::Clock { next, seen: Gaps::new() };
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
    fn what_is_seen_to_be_removed_is_repaired_when_nobody_removes_more() {
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
