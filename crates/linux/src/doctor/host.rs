//! Checks of the kernel's files: privileges, BPF, clocks, settings.

use super::parse::{self, Capability};
use super::{
    AS_ROOT, CC, Check, DELACK, Finding, GATEWAY, GATEWAY_AND_WAKE, HELPED_BY_BPF, LINK,
    LiveCommand, NOBODY, QUEUES, offload,
};
use crate::kernel::bpf::{self, BPF_FILE_SYSTEM};
use crate::signals::modem;
use nix::time::{ClockId, clock_getres};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = privileges(
        effective_capabilities(),
        read("/proc/self/uid_map").is_ok_and(|map| parse::is_initial_user_namespace(&map)),
    );
    checks.extend(bpf());
    checks.extend(clocks());
    checks.push(offload::finding().named(
        "offloads",
        NOBODY,
        GATEWAY,
        "super-packets (GRO, GSO, TSO) give several times the throughput",
    ));
    checks.extend(SETTINGS.iter().map(|setting| setting.check(&setting.read())));
    checks.push(reverse_path(interfaces_with_strict_filter()).named(
        "rp_filter",
        NOBODY,
        GATEWAY,
        "the strict reverse path filter drops packets of mobiles that arrive by another interface",
    ));
    checks.push(systemd(Path::new("/run/systemd/system").is_dir()).named(
        "systemd",
        NOBODY,
        GATEWAY,
        "runs the gateway as a service",
    ));
    checks.push(modem_manager(modem::count()).named(
        "modem-manager",
        NOBODY,
        GATEWAY,
        "reports that the modem of an uplink has no network",
    ));
    checks
}

fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path)
}

fn effective_capabilities() -> Option<u64> {
    read("/proc/self/status").ok().as_deref().and_then(parse::effective_capabilities)
}

/// True if this process may list BPF maps of other processes (bpf(2), BPF_MAP_GET_NEXT_ID).
pub(crate) fn sees_all_maps() -> bool {
    effective_capabilities().is_some_and(|set| Capability::SysAdmin.is_in(set))
}

fn privileges(effective: Option<u64>, on_the_machine: bool) -> Vec<Check> {
    use Capability::{Bpf, NetAdmin, NetRaw, Perfmon, SysAdmin};
    let has = |wanted: &[Capability]| match effective {
        None => Finding::unknown("cannot read /proc/self/status", "mount /proc"),
        Some(set) => {
            let lacking: Vec<_> =
                wanted.iter().filter(|c| !c.is_in(set)).map(|c| c.name()).collect();
            match lacking.as_slice() {
                [] => Finding::ok("held"),
                names => {
                    let names = names.join(" and ");
                    Finding::missing(format!("no {names}"), format!("run as root, or give {names}"))
                }
            }
        }
    };
    let bpf = match (effective, on_the_machine) {
        (Some(_), false) => Finding::missing(
            "in a user namespace",
            "run outside containers with a user namespace, where the kernel refuses BPF",
        ),
        (Some(set), true) if SysAdmin.is_in(set) => Finding::ok("held (CAP_SYS_ADMIN)"),
        _ => has(&[Bpf, Perfmon]),
    };
    vec![
        has(&[NetAdmin]).named(
            "cap-net-admin",
            QUEUES,
            NOBODY,
            "binds the queue and sets the rules",
        ),
        has(&[NetRaw]).named(
            "cap-net-raw",
            QUEUES,
            NOBODY,
            "the gateway injects segments, delack captures arriving data",
        ),
        bpf.named("cap-bpf", CC, HELPED_BY_BPF, "loads BPF programs (CAP_BPF and CAP_PERFMON)"),
        has(&[SysAdmin]).named(
            "cap-sys-admin",
            NOBODY,
            DELACK,
            "attaches a program for TCP options to the root cgroup",
        ),
    ]
}

fn bpf() -> Vec<Check> {
    const BTF: &str = "/sys/kernel/btf/vmlinux";
    let btf = fs::read(BTF);
    let fix = "needs a kernel with CONFIG_DEBUG_INFO_BTF";
    let types = match &btf {
        Ok(bytes) if parse::btf_knows(bytes, "sk_buff").is_some() => Finding::ok(BTF),
        Ok(_) => Finding::missing(format!("{BTF} is not BTF of this byte order"), fix),
        Err(error) => Finding::missing(format!("{BTF}: {error}"), fix),
    };
    let knows = |name: &str, fix: &str| match btf
        .as_ref()
        .ok()
        .and_then(|bytes| parse::btf_knows(bytes, name))
    {
        Some(true) => Finding::ok(format!("the kernel has {name}")),
        Some(false) => Finding::missing(format!("the kernel does not have {name}"), fix),
        None => Finding::unknown("cannot be determined without BTF", fix),
    };
    vec![
        types.named(
            "btf",
            CC,
            GATEWAY_AND_WAKE,
            "BPF programs adapt to this kernel's types (CO-RE)",
        ),
        // Linux 5.6 has struct_ops for TCP; 6.4 has links, with which a program outlives its
        // loader.
        knows("bpf_struct_ops_link", "needs Linux 6.4 or newer with CONFIG_BPF_JIT").named(
            "struct-ops",
            CC,
            NOBODY,
            "congestion control written in BPF",
        ),
        bpf_file_system(bpf::has_file_system()).named(
            "bpf-file-system",
            CC,
            NOBODY,
            "a loaded program is pinned there and stays when the command ends",
        ),
        // The helper that identifies the network namespace in a program for TCP options.
        knows("bpf_get_netns_cookie_sock_ops", "needs Linux 5.14 or newer with CONFIG_CGROUP_BPF")
            .named(
                "sock-ops",
                NOBODY,
                DELACK,
                "a sender's cwnd in a TCP option (--sender, --ask-cwnd)",
            ),
    ]
}

fn bpf_file_system(mounted: bool) -> Finding {
    if mounted {
        Finding::ok(BPF_FILE_SYSTEM)
    } else {
        let fix = format!("mount -t bpf bpf {BPF_FILE_SYSTEM} (systemd does it at boot)");
        Finding::missing(format!("not mounted at {BPF_FILE_SYSTEM}"), fix)
    }
}

fn clocks() -> Vec<Check> {
    let resolution = |clock| clock_getres(clock).ok().map(Duration::from);
    vec![
        high_resolution(resolution(ClockId::CLOCK_MONOTONIC)).named(
            "timers",
            LINK,
            NOBODY,
            "packets are released to the microsecond",
        ),
        hz(resolution(ClockId::CLOCK_MONOTONIC_COARSE)).named(
            "hz",
            NOBODY,
            &[LiveCommand::Link, LiveCommand::Cc],
            "the kernel's own TCP timers tick at this rate",
        ),
        clock_source(
            read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .ok()
                .as_deref(),
        )
        .named("clock-source", NOBODY, LINK, "reading the clock is cheap"),
    ]
}

fn high_resolution(resolution: Option<Duration>) -> Finding {
    match resolution {
        Some(step) if step <= Duration::from_micros(1) => Finding::ok(format!("{step:?}")),
        Some(step) => Finding::missing(
            format!("{step:?}"),
            "needs a kernel with CONFIG_HIGH_RES_TIMERS, not started with highres=off",
        ),
        None => Finding::unknown("clock_getres failed", "needs Linux 2.6.32 or newer"),
    }
}

/// Finding on the tick, which is the resolution of the coarse clock.
fn hz(tick: Option<Duration>) -> Finding {
    let Some(tick) = tick.filter(|tick| !tick.is_zero()) else {
        return Finding::unknown("clock_getres failed", "needs Linux 2.6.32 or newer");
    };
    let found = format!("HZ {:.0}", 1.0 / tick.as_secs_f64());
    if tick <= Duration::from_millis(4) {
        Finding::ok(found)
    } else {
        Finding::degraded(
            found,
            "use a kernel with CONFIG_HZ=250 or 1000: time-outs are rounded up to a tick",
        )
    }
}

fn clock_source(current: Option<&str>) -> Finding {
    match current.map(str::trim) {
        None => Finding::unknown("not reported in /sys", "mount /sys"),
        // Devices outside the processor; other clocks are read without a system call.
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit")) => {
            Finding::degraded(
                slow,
                "start the kernel with clocksource=tsc if the processor's counter is reliable (dmesg says why \
             it was rejected)",
            )
        }
        Some(other) => Finding::ok(other),
    }
}

/// Entries of net.ipv4.conf with the strict filter. An interface uses the maximum of its own value
/// and that of `all` (Documentation/networking/ip-sysctl.rst of Linux).
fn interfaces_with_strict_filter() -> io::Result<Vec<String>> {
    let mut strict = Vec::new();
    for entry in fs::read_dir("/proc/sys/net/ipv4/conf")? {
        let folder = entry?;
        // The interface may vanish meanwhile.
        if fs::read_to_string(folder.path().join("rp_filter")).is_ok_and(|v| v.trim() == "1") {
            strict.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    strict.sort();
    Ok(strict)
}

fn reverse_path(strict: io::Result<Vec<String>>) -> Finding {
    match strict {
        Err(error) => Finding::unknown(error.to_string(), AS_ROOT),
        Ok(strict) if strict.is_empty() => Finding::ok("strict nowhere"),
        Ok(strict) => Finding::degraded(
            format!("strict on {}", strict.join(", ")),
            "sysctl -w net.ipv4.conf.all.rp_filter=2 (it overrides the value of each interface)",
        ),
    }
}

fn systemd(running: bool) -> Finding {
    if running {
        Finding::ok("running")
    } else {
        Finding::missing("not running", "start the gateway by hand or by another service manager")
    }
}

fn modem_manager(modems: Result<usize, String>) -> Finding {
    match modems {
        Ok(1) => Finding::ok("1 modem"),
        Ok(modems) => Finding::ok(format!("{modems} modems")),
        Err(why) => Finding::missing(
            why,
            "if an uplink is a modem, install ModemManager and start it (Debian: apt install modemmanager)",
        ),
    }
}

/// A kernel setting (sysctl(8)) and its recommended value.
struct Setting {
    name: &'static str,
    wants: fn(&str) -> bool,
    /// Recommended value, as for `sysctl -w`.
    wanted: &'static str,
    /// Commands that cannot work with another value.
    needed_for: &'static [LiveCommand],
    helps: &'static [LiveCommand],
    purpose: &'static str,
}

/// Settings to check. Forwarding matters on a gateway; the TCP settings matter on the end hosts,
/// and on this machine if its own connections are protected or emulated.
const SETTINGS: &[Setting] = &[
    Setting {
        name: "net.ipv4.ip_forward",
        wants: |v| v == "1",
        wanted: "1",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "a gateway that is a router must forward (a bridge need not)",
    },
    Setting {
        name: "net.ipv6.conf.all.forwarding",
        wants: |v| v != "0",
        wanted: "1",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "the same for IPv6",
    },
    Setting {
        name: "net.ipv4.tcp_slow_start_after_idle",
        wants: |v| v == "0",
        wanted: "0",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "a sender keeps its cwnd through a freeze (reno and cubic restart from 10 segments with 1)",
    },
    Setting {
        name: "net.ipv4.tcp_retries2",
        wants: |v| v.parse().is_ok_and(|n: u32| n >= 15),
        wanted: "15",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "a sender survives an outage without a gateway's help",
    },
    Setting {
        name: "net.ipv4.tcp_rto_max_ms",
        wants: |v| v.parse().is_ok_and(|ms: u32| ms <= 120_000),
        wanted: "120000",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "the longest pause of a sender after an outage without a signal (Linux 6.15)",
    },
    Setting {
        name: "net.ipv4.tcp_sack",
        wants: |v| v == "1",
        wanted: "1",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "a sender recovers several losses in one round trip",
    },
    Setting {
        name: "net.ipv4.tcp_timestamps",
        wants: |v| v != "0",
        wanted: "1",
        needed_for: NOBODY,
        helps: GATEWAY,
        purpose: "a sender distinguishes spurious time-outs from losses",
    },
    Setting {
        name: "net.core.bpf_jit_enable",
        wants: |v| v != "0",
        wanted: "1",
        needed_for: CC,
        helps: GATEWAY,
        purpose: "BPF programs run as machine code, which those that call kernel functions require",
    },
];

impl Setting {
    fn path(&self) -> String {
        format!("/proc/sys/{}", self.name.replace('.', "/"))
    }
    fn read(&self) -> io::Result<String> {
        read(&self.path())
    }
    fn check(&self, value: &io::Result<String>) -> Check {
        self.finding(value).named(self.name, self.needed_for, self.helps, self.purpose)
    }
    fn finding(&self, value: &io::Result<String>) -> Finding {
        let fix = || format!("sysctl -w {}={}", self.name, self.wanted);
        match value {
            Ok(value) if (self.wants)(value.trim()) => Finding::ok(value.trim()),
            Ok(value) if self.needed_for.is_empty() => Finding::degraded(value.trim(), fix()),
            Ok(value) => Finding::missing(value.trim(), fix()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Finding::unknown("no permission to read it", AS_ROOT)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::unknown(
                "this kernel does not have it",
                "needs a newer kernel, or one with the feature",
            ),
            Err(error) => Finding::unknown(error.to_string(), AS_ROOT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
    use super::*;

    const ROOT: u64 = 0x1ff_ffff_ffff;

    fn states(checks: &[Check]) -> Vec<CheckState> {
        checks.iter().map(|check| check.state).collect()
    }

    #[test]
    fn modem_manager_is_found_or_the_reason_is_reported() {
        assert_eq!(modem_manager(Ok(2)), Finding::ok("2 modems"));
        let missing = modem_manager(Err("it is not running".to_owned()));
        assert_eq!(
            (missing.state, missing.found.as_str()),
            (CheckState::Missing, "it is not running")
        );
    }

    #[test]
    fn root_holds_every_privilege_and_nobody_none() {
        assert_eq!(states(&privileges(Some(ROOT), true)), [CheckState::Ok; 4]);
        assert_eq!(states(&privileges(Some(0), true)), [CheckState::Missing; 4]);
        assert_eq!(states(&privileges(None, true)), [CheckState::Unknown; 4]);
    }

    #[test]
    fn bpf_is_refused_in_a_user_namespace_whatever_is_held_there() {
        let states = states(&privileges(Some(ROOT), false));
        assert_eq!(states, [CheckState::Ok, CheckState::Ok, CheckState::Missing, CheckState::Ok]);
    }

    #[test]
    fn bpf_and_perfmon_do_for_loading_and_one_alone_does_not() {
        let set = |bits: &[u64]| bits.iter().map(|bit| 1 << bit).sum();
        assert_eq!(privileges(Some(set(&[38, 39])), true)[2].state, CheckState::Ok);
        let one = &privileges(Some(set(&[39])), true)[2];
        assert_eq!((one.state, one.found.as_str()), (CheckState::Missing, "no CAP_PERFMON"));
    }

    #[test]
    fn the_tick_is_the_step_of_the_coarse_clock() {
        assert_eq!(hz(Some(Duration::from_millis(4))), Finding::ok("HZ 250"));
        let slow = hz(Some(Duration::from_millis(10)));
        assert_eq!((slow.state, slow.found.as_str()), (CheckState::Degraded, "HZ 100"));
        assert_eq!(hz(None).state, CheckState::Unknown);
        assert_eq!(hz(Some(Duration::ZERO)).state, CheckState::Unknown);
    }

    #[test]
    fn a_clock_outside_the_processor_is_slow() {
        assert_eq!(clock_source(Some("tsc\n")), Finding::ok("tsc"));
        assert_eq!(clock_source(Some("kvm-clock\n")).state, CheckState::Ok);
        assert_eq!(clock_source(Some("acpi_pm\n")).state, CheckState::Degraded);
        assert_eq!(clock_source(None).state, CheckState::Unknown);
    }

    #[test]
    fn a_strict_reverse_path_filter_is_named_with_its_interfaces() {
        assert_eq!(reverse_path(Ok(vec![])).state, CheckState::Ok);
        let strict = reverse_path(Ok(vec!["eth0".into(), "eth1".into()]));
        assert_eq!(
            (strict.state, strict.found.as_str()),
            (CheckState::Degraded, "strict on eth0, eth1")
        );
        assert_eq!(reverse_path(Err(io::ErrorKind::NotFound.into())).state, CheckState::Unknown);
    }

    #[test]
    fn every_setting_is_content_with_the_value_it_asks_for() {
        for setting in SETTINGS {
            assert!((setting.wants)(setting.wanted), "{}", setting.name);
            assert!(setting.check(&Ok(format!("{}\n", setting.wanted))).fix.is_empty());
        }
    }

    #[test]
    fn a_setting_says_how_to_change_it() {
        let idle = SETTINGS.iter().find(|s| s.name.ends_with("after_idle")).unwrap();
        let check = idle.check(&Ok("1\n".into()));
        assert_eq!(check.state, CheckState::Degraded);
        assert_eq!(check.fix, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0");
        assert_eq!(idle.path(), "/proc/sys/net/ipv4/tcp_slow_start_after_idle");
    }

    #[test]
    fn a_setting_that_a_command_needs_is_missing_with_another_value() {
        let jit = SETTINGS.iter().find(|s| s.name.ends_with("bpf_jit_enable")).unwrap();
        let check = jit.check(&Ok("0\n".into()));
        assert_eq!((check.state, check.needed_for), (CheckState::Missing, CC));
    }

    #[test]
    fn a_bpf_file_system_that_is_not_mounted_is_missing() {
        assert_eq!(bpf_file_system(true).state, CheckState::Ok);
        assert_eq!(bpf_file_system(false).state, CheckState::Missing);
    }

    #[test]
    fn a_setting_that_cannot_be_read_is_unknown_and_has_a_fix() {
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::NotFound, io::ErrorKind::Other]
        {
            let check = SETTINGS[0].check(&Err(kind.into()));
            assert_eq!(check.state, CheckState::Unknown);
            assert!(!check.fix.is_empty());
        }
    }
}
