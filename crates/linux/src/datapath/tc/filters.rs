//! Filters of tc, by netlink.
//!
//! Read first: tc-bpf(8), "direct-action"; linux/rtnetlink.h, `struct tcmsg`.

use crate::kernel::netlink::{Message, Netlink, name, u32_at, value_of};
use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook};
use std::io;
use std::os::fd::BorrowedFd;

/// Size of `struct tcmsg`.
const HEADER: usize = 20;
/// The place of the qdisc `clsact` (`TC_H_CLSACT`).
const CLSACT: u32 = 0xffff_fff1;
/// First of all filters: those behind one that redirects a packet do not see it.
const PRIORITY: u32 = 1;
/// The upper bits of our filters' handles; the lower ones are the process that made them.
const HANDLE: u32 = 0x4100_0000;
const PROCESS: u32 = 0x00ff_ffff;
// linux/rtnetlink.h, linux/pkt_cls.h, linux/if_ether.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const ETH_P_ALL: u16 = 3;

/// A side of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Ingress,
    Egress,
}

impl Hook {
    pub(super) const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    /// The name of its program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Ingress => "mirror_ingress",
            Self::Egress => "mirror_egress",
        }
    }

    fn point(self) -> TcAttachPoint {
        match self {
            Self::Ingress => TC_INGRESS,
            Self::Egress => TC_EGRESS,
        }
    }

    /// `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)`, or of egress.
    fn parent(self) -> u32 {
        match self {
            Self::Ingress => 0xffff_fff2,
            Self::Egress => 0xffff_fff3,
        }
    }
}

/// A filter, as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filter {
    handle: u32,
    priority: u32,
    is_named_as_ours: bool,
}

impl Filter {
    fn parse(body: &[u8]) -> Option<Self> {
        let attributes = body.get(HEADER..)?;
        // The head of a priority, without a filter.
        let handle = u32_at(body, 8).filter(|&handle| handle != 0)?;
        let named = value_of(attributes, TCA_OPTIONS)
            .and_then(|options| value_of(options, TCA_BPF_NAME))
            .and_then(name);
        let is_bpf = value_of(attributes, TCA_KIND).and_then(name) == Some("bpf");
        Some(Self {
            handle,
            priority: u32_at(body, 16)? >> 16,
            is_named_as_ours: is_bpf && named.is_some_and(|name| name.starts_with("mirror_")),
        })
    }

    /// The process that made it, if a gateway did.
    fn maker(self) -> Option<u32> {
        let is_ours =
            self.is_named_as_ours && self.priority == PRIORITY && self.handle & !PROCESS == HANDLE;
        is_ours.then_some(self.handle & PROCESS)
    }
}

/// Filters on the interfaces of a network namespace.
#[derive(Debug)]
pub(super) struct Filters {
    netlink: Netlink,
    /// The handle of our filters.
    handle: u32,
}

impl Filters {
    /// For the calling thread's namespace.
    pub(super) fn open() -> io::Result<Self> {
        let netlink = Netlink::open(libc::NETLINK_ROUTE)?;
        Ok(Self { netlink, handle: HANDLE | (std::process::id() & PROCESS) })
    }

    /// Attaches a program to a side of an interface that has `clsact`.
    pub(super) fn attach(&self, index: u32, hook: Hook, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut place = TcHook::new(program);
        place.ifindex(index as i32).attach_point(hook.point());
        place.handle(self.handle).priority(PRIORITY).replace(true);
        place.attach().map(drop).map_err(io_error)
    }

    /// Makes the interface's qdisc `clsact`, if it has none; true if it had none.
    ///
    /// # Errors
    /// `AlreadyExists`: the interface has the older qdisc `ingress`, which leaves no room for it.
    pub(super) fn make_clsact(&self, index: u32) -> io::Result<bool> {
        match self.qdisc(index)?.as_deref() {
            Some("clsact") => Ok(false),
            Some(other) => {
                let message = format!(
                    "it has the qdisc `{other}`, which leaves no room for `clsact`: make it `clsact`, which has an \
                     ingress, too, or name the `interfaces` of the mobiles"
                );
                Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
            }
            None => {
                let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
                let request =
                    Message::new(libc::RTM_NEWQDISC, flags, &header(index, 0xffff_0000, CLSACT, 0))
                        .with_name(TCA_KIND, "clsact");
                self.netlink.ask(&request.finish()).map(|_| true)
            }
        }
    }

    /// The kind of the qdisc in the place of `clsact`.
    fn qdisc(&self, index: u32) -> io::Result<Option<String>> {
        let request = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &header(index, 0, 0, 0));
        let all = self.netlink.dump(&request.finish())?;
        Ok(all.iter().find_map(|(_, body)| {
            let is_there = u32_at(body, 4)? == index && u32_at(body, 12)? == CLSACT;
            let kind = value_of(body.get(HEADER..)?, TCA_KIND).and_then(name)?;
            is_there.then(|| kind.to_owned())
        }))
    }

    /// All filters of a side of an interface.
    fn list(&self, index: u32, hook: Hook) -> io::Result<Vec<Filter>> {
        let header = header(index, 0, hook.parent(), 0);
        let request = Message::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP, &header);
        let all = self.netlink.dump(&request.finish())?;
        Ok(all.iter().filter_map(|(_, body)| Filter::parse(body)).collect())
    }

    /// True if our filters are on both sides of an interface.
    pub(super) fn are_attached(&self, index: u32) -> bool {
        let is_there = |hook| {
            let all = self.list(index, hook).unwrap_or_default();
            all.iter().any(|filter| filter.handle == self.handle && filter.maker().is_some())
        };
        Hook::ALL.into_iter().all(is_there)
    }

    /// Removes the filters of gateways that have ended; true if there were some.
    pub(super) fn remove_left(&self, index: u32) -> bool {
        let has_ended = |maker| maker == self.handle & PROCESS || !is_alive(maker);
        let mut found = false;
        for hook in Hook::ALL {
            for filter in self.list(index, hook).unwrap_or_default() {
                if filter.maker().is_some_and(has_ended) {
                    found |= self.remove(index, hook, filter.handle).is_ok();
                }
            }
        }
        found
    }

    /// Removes our filters, and `clsact` if we made it and nobody uses it.
    pub(super) fn detach(&self, index: u32, has_made_clsact: bool) {
        // Errors: the interface, or `clsact`, is gone.
        for hook in Hook::ALL {
            let _ = self.remove(index, hook, self.handle);
        }
        let is_unused = |hook| self.list(index, hook).is_ok_and(|all| all.is_empty());
        if has_made_clsact && Hook::ALL.into_iter().all(is_unused) {
            let request =
                Message::new(libc::RTM_DELQDISC, libc::NLM_F_ACK, &header(index, 0, CLSACT, 0));
            let _ = self.netlink.ask(&request.finish());
        }
    }

    fn remove(&self, index: u32, hook: Hook, handle: u32) -> io::Result<()> {
        let info = PRIORITY << 16 | u32::from(ETH_P_ALL.to_be());
        let header = header(index, handle, hook.parent(), info);
        let request =
            Message::new(libc::RTM_DELTFILTER, libc::NLM_F_ACK, &header).with_name(TCA_KIND, "bpf");
        self.netlink.ask(&request.finish()).map(drop)
    }
}

/// True if the process runs: one that nobody has waited for yet (a zombie) does not (proc(5)).
fn is_alive(process: u32) -> bool {
    let state = |stat: String| stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.ok().and_then(state).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Bytes of a `struct tcmsg`.
fn header(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, index, handle, parent, info].map(u32::to_ne_bytes).concat()
}

fn io_error(error: libbpf_rs::Error) -> io::Error {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::Error::from_raw_os_error(libc::EPERM),
        _ => io::Error::other(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::netlink::{one, one_name};

    fn listed(handle: u32, priority: u32, kind: &str, program: &str) -> Vec<u8> {
        let mut body = header(7, handle, CLSACT, priority << 16);
        body.extend(one_name(TCA_KIND, kind));
        body.extend(one(TCA_OPTIONS, &one_name(TCA_BPF_NAME, program)));
        body
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while is_alive(child.id()) && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!is_alive(child.id()));
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn only_filters_of_gateways_are_taken_for_ours() {
        let maker = |handle, priority, kind, name| {
            Filter::parse(&listed(handle, priority, kind, name)).and_then(Filter::maker)
        };
        let ours = "mirror_ingress:[12]";
        assert_eq!(maker(HANDLE | 4711, PRIORITY, "bpf", ours), Some(4711));
        assert_eq!(maker(4711, PRIORITY, "bpf", ours), None);
        assert_eq!(maker(HANDLE | 4711, PRIORITY + 1, "bpf", ours), None);
        assert_eq!(maker(HANDLE | 4711, PRIORITY, "matchall", ours), None);
        assert_eq!(maker(HANDLE | 4711, PRIORITY, "bpf", "other:[12]"), None);
        assert_eq!(Filter::parse(&listed(0, PRIORITY, "bpf", ours)), None, "a priority's head");
        assert_eq!(Filter::parse(&[0; 10]), None);
    }
}
