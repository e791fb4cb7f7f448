//! The testbed: fixed host - wire - gateway - emulated wireless link - mobile host. A gateway in a
//! bridge has a router behind it, which has the link. One on board is beyond it: fixed host -
//! wire - router - emulated wireless link - gateway - wire - mobile host.

use crate::control::{Emulator, Gateway};
use crate::host::Host;
use crate::lateness::slowness;
use crate::transfer::{Load, Transfer};
use airtcp_core::LinkSignal;
use airtcp_testing::skip;
use nix::unistd::Pid;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// The fixed host's addresses.
const FIXED: [&str; 2] = ["10.7.0.2", "fd00:7::2"];
/// The router's, at the same wire: the gateway, or what is behind it.
pub(crate) const ROUTER: [&str; 2] = ["10.7.0.1", "fd00:7::1"];
/// Addresses of the bridge.
const BRIDGE: [&str; 2] = ["10.7.0.3", "fd00:7::3"];
/// The mobile's, which `airtcp link` gives it.
pub(crate) const MOBILE: [&str; 2] = ["100.64.0.2", "fd4c:91e7:3b0a::2"];
/// The mobile's and the gateway's at the wire on board.
const ON_BOARD: [&str; 2] = ["10.8.0.2", "fd00:8::2"];
const BOARD: [&str; 2] = ["10.8.0.1", "fd00:8::1"];
/// Prefixes of all addresses on board.
const ALL_ON_BOARD: [&str; 2] = ["10.8.0.0/24", "fd00:8::/64"];
/// The interface of the emulated link, at both ends.
pub(crate) const LINK: &str = "airtcp0";

/// Testbeds at the same time on a real processor: they mostly wait, but the emulators must keep up.
const ROOM: usize = 14;

/// Role of the gateway's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A router, which forwards by address.
    Router,
    /// A router that masquerades the mobile.
    Masquerading,
    /// A router whose interfaces are in a VRF, and the gateway with them.
    Vrf,
    /// A bridge, which forwards frames.
    Bridge,
    /// The router on board, with the link as its uplink.
    OnBoard,
    /// The same, and it masquerades the host on board.
    OnBoardMasquerading,
}

impl Place {
    fn is_on_board(self) -> bool {
        matches!(self, Self::OnBoard | Self::OnBoardMasquerading)
    }
}

/// Parameters of a testbed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The link file.
    pub(crate) link: String,
    /// The gateway's mechanism, with its keys on further lines; `None`: plain forwarding by the
    /// kernel.
    pub(crate) mechanism: Option<String>,
    /// More of the gateway's configuration.
    pub(crate) config: String,
    /// Role of the host that the gateway runs on.
    pub(crate) place: Place,
    /// The transfers use IPv6.
    pub(crate) ipv6: bool,
    /// Kernel parameters of both ends, by their paths below /proc/sys/net.
    pub(crate) sysctls: Vec<(&'static str, &'static str)>,
    /// The fixed host hands whole super-packets to the wire.
    pub(crate) offload: bool,
    /// Variables of the gateways' environment.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The mechanism of another gateway, in the router at the network's edge.
    pub(crate) opposite: Option<String>,
}

impl Default for Plan {
    /// 8 Mbit/s, 20 ms one way, a queue of 60 kB; no gateway.
    fn default() -> Self {
        Self {
            link: "rate = \"8 Mbit/s\"\ndelay = \"20 ms\"\nqueue = { limit = \"60 kB\" }\n"
                .to_owned(),
            mechanism: None,
            config: String::new(),
            place: Place::Router,
            ipv6: false,
            sysctls: Vec::new(),
            offload: true,
            environment: Vec::new(),
            opposite: None,
        }
    }
}

impl Plan {
    /// The default with a mechanism.
    pub(crate) fn with(mechanism: &str) -> Self {
        Self { mechanism: Some(mechanism.to_owned()), ..Self::default() }
    }

    /// Turns the fast path off, so that all packets wait for the gateway.
    pub(crate) fn waiting(mut self) -> Self {
        self.mechanism.as_mut().expect("a mechanism").push_str("\nfast-path = \"off\"");
        self
    }
}

/// A testbed; all of it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Testbed {
    // In this order they go.
    daemon: Option<Gateway>,
    opposite: Option<Gateway>,
    link: Emulator,
    pub(crate) fixed: Host,
    pub(crate) gateway: Host,
    pub(crate) mobile: Host,
    /// Behind a bridge, or opposite of a gateway on board.
    pub(crate) router: Option<Host>,
    place: Place,
    ipv6: bool,
    _files: [tempfile::TempDir; 2],
    _permit: Permit,
}

impl Testbed {
    /// Makes one, when there is room for it.
    pub(crate) fn new(plan: &Plan) -> Self {
        let permit = Permit::wait();
        let [fixed, mut gateway, mobile] = ["fixed", "gateway", "mobile"].map(Host::new);
        if plan.place == Place::Vrf {
            make_vrf(&gateway).unwrap();
            gateway.vrf = Some(VRF);
        }
        let is_on_board = plan.place.is_on_board();
        let behind = (plan.place == Place::Bridge || is_on_board).then(|| Host::new("router"));
        let router = behind.as_ref().unwrap_or(&gateway);
        if is_on_board {
            join(&fixed, router, "wire");
            join(&mobile, &gateway, "wire");
            attach(&mobile, ON_BOARD);
            attach(&gateway, BOARD);
        } else if let Some(router) = &behind {
            // The bridge has the wire's name.
            gateway.ip(&["link", "add", "wire", "type", "bridge"]);
            for (host, port) in [(&fixed, "left"), (router, "right")] {
                join(host, &gateway, port);
                gateway.ip(&["link", "set", port, "up", "master", "wire"]);
            }
            for sysctl in BRIDGED {
                gateway.sysctl(sysctl, "1");
            }
            attach(&gateway, BRIDGE);
        } else {
            join(&fixed, &gateway, "wire");
        }
        attach(&fixed, FIXED);
        attach(router, ROUTER);
        if !plan.offload {
            fixed.ip(&["link", "set", "wire", "gso_max_segs", "1"]);
        }
        for sysctl in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            router.sysctl(sysctl, "1");
            if is_on_board {
                gateway.sysctl(sysctl, "1");
            }
        }
        for (host, (name, value)) in
            [&fixed, &mobile].into_iter().flat_map(|h| plan.sysctls.iter().map(move |s| (h, s)))
        {
            host.sysctl(name, value);
        }
        let files = [(); 2].map(|()| tempfile::tempdir_in("/dev/shm").unwrap());
        let vehicle = if is_on_board { &gateway } else { &mobile };
        let link = Emulator::start(vehicle, router, &plan.link, files[0].path());
        if plan.place == Place::Vrf {
            for interface in ["wire", LINK] {
                // The interface keeps its IPv4 addresses, and loses those of IPv6.
                router.ip(&["link", "set", interface, "master", VRF]);
            }
        }
        for (n, (family, via)) in ["-4", "-6"].iter().zip(ROUTER).enumerate() {
            if is_on_board {
                fixed.ip(&[family, "route", "add", "default", "via", via]);
                mobile.ip(&[family, "route", "add", "default", "via", BOARD[n]]);
                gateway.ip(&[family, "route", "add", "default", "dev", LINK]);
                if plan.place == Place::OnBoard {
                    router.ip(&[family, "route", "add", ALL_ON_BOARD[n], "dev", LINK]);
                }
                continue;
            }
            if plan.place != Place::Masquerading {
                fixed.ip(&[family, "route", "add", "default", "via", via]);
            }
            if behind.is_some() {
                gateway.ip(&[family, "route", "add", "default", "via", via]);
            }
            mobile.ip(&[family, "route", "add", "default", "dev", LINK]);
        }
        let masqueraded = match plan.place {
            Place::Masquerading => Some("wire"),
            Place::OnBoardMasquerading => Some(LINK),
            Place::Router | Place::Vrf | Place::Bridge | Place::OnBoard => None,
        };
        if let Some(output) = masqueraded {
            for iptables in ["iptables", "ip6tables"] {
                let rule = ["-t", "nat", "-A", "POSTROUTING", "-o", output, "-j", "MASQUERADE"];
                let status = gateway.command(&[&[iptables], &rule[..]].concat()).status().unwrap();
                assert!(status.success(), "{iptables}");
            }
        }
        let group = |mechanism: &str, [ipv4, ipv6]: [&str; 2]| {
            format!(
                "[[mobile]]\nname = \"phones\"\naddresses = [\"{ipv4}\", \"{ipv6}\"]\nmechanism = {mechanism}\n"
            )
        };
        let environment = &plan.environment;
        let daemon = plan.mechanism.as_ref().map(|mechanism| {
            let group = match is_on_board {
                true => format!("[[uplink]]\ninterface = \"{LINK}\"\nmechanism = {mechanism}\n"),
                false => group(mechanism, MOBILE),
            };
            let config = format!("{}\n{group}", plan.config);
            Gateway::start(&gateway, &config, files[0].path(), environment)
        });
        let opposite = plan.opposite.as_ref().map(|mechanism| {
            let config = group(mechanism, ALL_ON_BOARD);
            Gateway::start(router, &config, files[1].path(), environment)
        });
        Self {
            daemon,
            opposite,
            link,
            fixed,
            gateway,
            mobile,
            router: behind,
            place: plan.place,
            ipv6: plan.ipv6,
            _files: files,
            _permit: permit,
        }
    }

    /// A transfer from the fixed host to the mobile.
    pub(crate) fn download(&self, load: &Load) -> Transfer {
        let [fixed, mobile] = self.addresses();
        Transfer::start((&self.fixed, fixed), (&self.mobile, mobile), load)
    }

    /// A transfer from the mobile to the fixed host.
    pub(crate) fn upload(&self, load: &Load) -> Transfer {
        let [fixed, mobile] = self.addresses();
        Transfer::start((&self.mobile, mobile), (&self.fixed, fixed), load)
    }

    /// A transfer from the gateway on board, by one of its own connections.
    pub(crate) fn upload_of_gateway(&self, load: &Load) -> Transfer {
        let [fixed, _] = self.addresses();
        let own = MOBILE[usize::from(self.ipv6)].parse().unwrap();
        Transfer::start((&self.gateway, own), (&self.fixed, fixed), load)
    }

    /// The fixed host's and the mobile's.
    pub(crate) fn addresses(&self) -> [IpAddr; 2] {
        let mobile = if self.place.is_on_board() { ON_BOARD } else { MOBILE };
        [FIXED, mobile].map(|pair| pair[usize::from(self.ipv6)].parse().unwrap())
    }

    /// Takes the link down or up; when that was.
    pub(crate) fn link(&self, up: bool) -> Instant {
        self.link.set(up)
    }

    /// A testbed in which the kernel mirrors packets to the gateway; prints why there is none.
    pub(crate) fn with_mirror(plan: &Plan) -> Option<Self> {
        let bed = possible().then(|| Self::new(plan))?;
        let is_there = bed.path() == "mirror";
        if !is_there {
            // The gateway has the unit's own privileges.
            let log = bed.daemon().log();
            assert!(log.contains("cannot mirror packets"), "no reason is given: {log}");
            skip(&format!("CAP_BPF and BPF programs at netfilter's hooks (Linux 6.4): {log}"));
        }
        is_there.then_some(bed)
    }

    /// Path by which the group's packets reach the mechanism.
    pub(crate) fn path(&self) -> String {
        self.daemon().status().groups[0].path.clone()
    }

    /// The daemon; there must be one.
    pub(crate) fn daemon(&self) -> &Gateway {
        self.daemon.as_ref().expect("a plan with a mechanism")
    }

    /// Ends the daemon; its log.
    pub(crate) fn stop(&mut self) -> String {
        self.daemon.take().expect("a plan with a mechanism").stop()
    }

    /// The process that does the gateway's work, if there is a gateway.
    pub(crate) fn child(&self) -> Option<Pid> {
        self.daemon.as_ref().and_then(Gateway::child)
    }

    /// Sends a signal about the mobile or the uplink to the gateways, if there are any.
    pub(crate) fn signal(&self, signal: LinkSignal) {
        let mobile = self.addresses()[1].to_string();
        let whose = if self.place.is_on_board() { LINK } else { &mobile };
        for (daemon, whose) in [(&self.daemon, whose), (&self.opposite, &mobile)] {
            if let Some(daemon) = daemon {
                daemon.signal(whose, signal);
            }
        }
    }
}

/// Makes `wire` of a host, an end of a wire whose other end is `port` of `other`.
fn join(host: &Host, other: &Host, port: &str) {
    let wire = ["link", "add", "wire", "type", "veth"];
    host.ip(&[&wire[..], &["peer", "name", port, "netns", other.name()]].concat());
}

/// Gives a host's end of the wire its addresses.
fn attach(host: &Host, [ipv4, ipv6]: [&str; 2]) {
    host.ip(&["addr", "add", &format!("{ipv4}/24"), "dev", "wire"]);
    host.ip(&["addr", "add", &format!("{ipv6}/64"), "dev", "wire", "nodad"]);
    host.ip(&["link", "set", "wire", "up"]);
}

/// The right to have a testbed.
#[derive(Debug)]
struct Permit;

static TAKEN: Mutex<usize> = Mutex::new(0);
static RETURNED: Condvar = Condvar::new();

impl Permit {
    fn wait() -> Self {
        let room = (ROOM / slowness() as usize).max(1);
        let mut taken = RETURNED.wait_while(TAKEN.lock().unwrap(), |taken| *taken >= room).unwrap();
        *taken += 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap() -= 1;
        RETURNED.notify_one();
    }
}

/// True if testbeds can be made here; prints why not.
pub(crate) fn possible() -> bool {
    let namespaces = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    let possible = namespaces.is_ok_and(|status| status.success())
        && Path::new("/dev/net/tun").exists()
        && nix::unistd::geteuid().is_root();
    if !possible {
        skip("root, network namespaces and /dev/net/tun");
    }
    possible
}

/// Sysctls by which the kernel hands a bridge's packets to netfilter.
const BRIDGED: [&str; 2] = ["bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"];

/// True if the kernel can do that in a namespace; prints a note if not.
pub(crate) fn has_bridge_netfilter() -> bool {
    let has = Host::new("bridge")
        .within(|| BRIDGED.iter().all(|name| Path::new("/proc/sys/net").join(name).exists()));
    if !has {
        skip("br_netfilter (modprobe br_netfilter)");
    }
    has
}

/// A VRF's device.
const VRF: &str = "blue";

/// Makes it, if the kernel has VRFs.
fn make_vrf(host: &Host) -> Result<(), String> {
    host.try_ip(&["link", "add", VRF, "type", "vrf", "table", "10"])?;
    host.try_ip(&["link", "set", VRF, "up"])
}

/// True if the kernel has VRFs; prints a note if not.
pub(crate) fn has_vrfs() -> bool {
    let has = make_vrf(&Host::new("vrf")).is_ok();
    if !has {
        skip("VRFs (CONFIG_NET_VRF)");
    }
    has
}
