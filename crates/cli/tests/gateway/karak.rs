//! `airtcp cc`: Karak in the kernel against the implementation in `airtcp-tcp`, and what loading
//! and unloading leaves behind.

use crate::capture::Capture;
use crate::testbed::{Plan, Testbed, possible};
use crate::transfer::{Load, Transfer};
use airtcp_core::{Events, Instant, Segment, SeqNum};
use airtcp_tcp::config::{Congestion, InitialWindow, KarakConfig, Recovery, TcpConfig};
use airtcp_tcp::{Endpoint, Io};
use airtcp_testing::skip;
use nix::fcntl::{Flock, FlockArg};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// The right to load and unload, in a mount namespace with a BPF file system of its own: when that
/// goes, so does what is loaded.
struct Kernel {
    /// Lives until its standard input closes.
    holder: Child,
    _alone: MutexGuard<'static, ()>,
    _on_this_machine: Flock<File>,
}

impl Kernel {
    /// Waits until no other test has it; says why it cannot be had.
    fn take() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        if !possible() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lock = File::create("/run/airtcp-test-karak.lock").unwrap();
        let lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, why)| why).unwrap();
        if is_offered() {
            skip("a kernel without karak (airtcp cc unload)");
            return None;
        }
        let script = "mount -t bpf bpf /sys/fs/bpf && echo ready && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "no BPF file system");
        let kernel = Self { holder, _alone: alone, _on_this_machine: lock };
        let able = kernel.airtcp(&["doctor", "--require", "cc"]);
        if !able.status.success() {
            let report = String::from_utf8_lossy(&able.stdout);
            skip(&format!("struct_ops: {}", report.lines().last().unwrap_or_default()));
            return None;
        }
        kernel.wait_until_gone();
        Some(kernel)
    }

    fn airtcp(&self, args: &[&str]) -> Output {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.holder.id());
        Command::new("nsenter")
            .args([&namespace, "--", env!("CARGO_BIN_EXE_airtcp")])
            .args(args)
            .output()
            .unwrap()
    }

    fn cc(&self, args: &[&str]) -> String {
        let output = self.airtcp(&[&["cc"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The kernel's reason for refusing it.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.airtcp(&[&["cc"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.cc(&["status", "--json"])).unwrap()
    }

    /// Waits until the kernel has nothing of Karak.
    fn wait_until_gone(&self) {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while self.status()["retired"] != 0 {
            assert!(std::time::Instant::now() < until, "still held: {}", self.status());
            thread::sleep(Duration::from_millis(50));
        }
        assert!(!is_offered());
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn is_offered() -> bool {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(path).unwrap().split_whitespace().any(|name| name == "karak")
}

/// Means by which the sender detects losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sack {
    Off,
    /// Three duplicates begin a recovery (RFC 6675).
    Counted,
    /// Time does, too (RFC 8985): the kernel's default.
    Timed,
}

/// A transfer whose last segments are all lost, but for a few.
#[derive(Clone, Copy, Debug)]
struct Case {
    sack: Sack,
    /// Segments sent; the first 10 and the 20 that follow them arrive.
    segments: u64,
    /// Number of the others that do; each is answered with a duplicate ACK.
    duplicates: u64,
}

/// cwnd and ssthresh, in segments.
type Windows = [u32; 2];

const ARRIVE: u64 = 30;
/// So that what the sender writes at once is a number of whole ones.
const SEGMENT: u64 = 1024;

impl Case {
    /// cwnd after the time-out, in segments (TCP Karak §3, table 1).
    fn restart(&self) -> u32 {
        let used = (self.segments - ARRIVE) as u32;
        match self.duplicates {
            1 => used.div_ceil(8).next_power_of_two(),
            2 => used.div_ceil(4).next_power_of_two(),
            _ => 1,
        }
    }

    fn plan(&self) -> Plan {
        // The first retransmission that SACK brings about, too.
        let end = self.segments + if self.sack == Sack::Off { 0 } else { 2 };
        let survivors = ARRIVE + 2..ARRIVE + 2 + self.duplicates;
        let lost: Vec<u64> = (ARRIVE..end).filter(|n| !survivors.contains(n)).collect();
        let link = format!(
            "rate = \"100 Mbit/s\"\ndelay = \"150 ms\"\nqueue = {{ limit = \"1000 packets\" }}\n\
             [down]\nloss = {{ kind = \"list\", packets = {lost:?} }}\n"
        );
        let sysctls = vec![
            ("ipv4/tcp_timestamps", "0"),
            ("ipv4/tcp_sack", if self.sack == Sack::Off { "0" } else { "1" }),
            ("ipv4/tcp_recovery", if self.sack == Sack::Timed { "1" } else { "0" }),
        ];
        Plan { link, sysctls, offload: false, ..Plan::default() }
    }

    /// The windows after the first time-out, in the kernel and in `airtcp-tcp`.
    fn run(&self) -> [Windows; 2] {
        let bed = Testbed::new(&self.plan());
        // Headers of IPv4 and TCP without options.
        bed.fixed.ip(&["link", "set", "wire", "mtu", &(SEGMENT + 40).to_string()]);
        let capture = Capture::start(&bed.fixed);
        let load = Load { allowed: Some(self.segments * SEGMENT), ..Load::endless("karak") };
        let transfer = bed.download(&load);
        let of_kernel = first_loss(&transfer);
        // What arrived for the sender so far.
        let flow = transfer.flow().reversed();
        let heard = capture.finish().filter(|(_, segment)| segment.flow == flow).collect();
        transfer.allow(u64::MAX);
        // An orphan whose testbed is gone would hold Karak for minutes.
        transfer.reset_by_sender(Duration::ZERO);
        [of_kernel, self.replay(heard)]
    }

    /// Reaction of a sender of `airtcp-tcp` to the same ACKs.
    fn replay(&self, heard: Vec<(Duration, Segment<Vec<u8>>)>) -> Windows {
        let mut config = TcpConfig {
            congestion: Congestion::Karak(KarakConfig { strict: false, ..KarakConfig::default() }),
            recovery: if self.sack == Sack::Off { Recovery::default() } else { Recovery::Sack },
            initial_window: InitialWindow::Rfc6928,
            window_scaling: true,
            // Linux's slow start counts segments.
            abc: Some(1000),
            ..TcpConfig::default()
        };
        config.mss = SEGMENT as u16;
        config.send_buffer = airtcp_core::Bytes(self.segments * SEGMENT);
        config.rto.min = airtcp_core::Duration::from_millis(200);
        // Initial sequence number of the SYN-ACK, which the first ACK acknowledges.
        let SeqNum(after_syn) = heard.iter().find_map(|(_, s)| s.ack).expect("an ACK");
        let isn = SeqNum(after_syn.wrapping_sub(1));
        let flow = heard[0].1.flow.reversed();
        let mut sender = Endpoint::new(config, flow, isn);
        sender.listen();
        let mut out = Vec::new();
        let at = |time: Duration| Instant::from_nanos(time.as_nanos() as u64);
        let mut written = false;
        for (time, segment) in heard {
            let io = &mut Io { out: &mut out, events: Events::none() };
            sender.on_segment(at(time), segment, io);
            sender.reply(at(time), io);
            if sender.send_space() > 0 && !written {
                written = true;
                sender.write(at(time), &vec![0; (self.segments * SEGMENT) as usize], io);
            }
        }
        while sender.stats().timeouts == 0 {
            let at = sender.next_deadline().expect("something is outstanding");
            sender.on_timer(at, &mut Io { out: &mut out, events: Events::none() });
        }
        [sender.cwnd(), sender.ssthresh()].map(|bytes| bytes / SEGMENT as u32)
    }
}

/// The windows after the first time-out.
fn first_loss(transfer: &Transfer) -> Windows {
    /// `TCP_CA_Loss` of `tcpi_ca_state` (linux/tcp.h).
    const LOSS: u8 = 4;
    let until = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        if transfer.info().ca_state == LOSS {
            // The kernel reads the windows a little before the state.
            let info = transfer.info();
            return [info.snd_cwnd, info.snd_ssthresh];
        }
        assert!(std::time::Instant::now() < until, "no time-out");
        thread::sleep(Duration::from_millis(1));
    }
}

/// One or two duplicates before a time-out, with and without SACK.
///
/// The kernels of some hosted machines do not run a program while process 1 has the processor. Karak
/// counts that; the connections that it happened to say nothing, and others take their place. Where
/// nothing was skipped, each connection counts.
#[test]
fn karak_in_the_kernel_sets_cwnd_as_ours_does_on_the_same_acks() {
    let Some(kernel) = Kernel::take() else { return };
    kernel.cc(&["load", "karak"]);
    let mut cases = Vec::new();
    for sack in [Sack::Off, Sack::Counted, Sack::Timed] {
        for segments in [42, 60, 70] {
            cases.extend((0..=2).map(|duplicates| Case { sack, segments, duplicates }));
        }
    }
    let each = cases.len() as u64 / 3;
    let count = |key: &str| kernel.status()["loaded"][key].as_u64().unwrap();
    while !cases.is_empty() {
        let before = count("skipped");
        let found: Vec<[Windows; 2]> = thread::scope(|scope| {
            let threads: Vec<_> = cases.iter().map(|case| scope.spawn(|| case.run())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let skipped = count("skipped") - before;
        let wrong: Vec<_> = (cases.into_iter().zip(found))
            .inspect(|found| drop(writeln!(std::io::stderr(), "measured: {found:?}")))
            .filter(|(case, [kernel, ours])| kernel != ours || kernel[0] != case.restart())
            .collect();
        assert!(wrong.len() as u64 <= skipped, "{skipped} skipped, but {wrong:?}");
        cases = wrong.into_iter().map(|(case, _)| case).collect();
    }
    let timeouts = &kernel.status()["loaded"]["timeouts"];
    for duplicates in 0..3 {
        assert!(timeouts[duplicates].as_u64() >= Some(each), "{duplicates}: {timeouts}");
    }
    kernel.cc(&["unload"]);
    kernel.wait_until_gone();
}

#[test]
fn what_cannot_be_done_is_refused_with_its_reason() {
    let Some(kernel) = Kernel::take() else { return };
    assert!(kernel.refused(&["unload"]).contains("karak is not loaded"));
    kernel.cc(&["load", "karak"]);
    assert!(kernel.refused(&["load", "karak"]).contains("already loaded"));
    // In a mount namespace without its name.
    let elsewhere = Command::new(env!("CARGO_BIN_EXE_airtcp")).args(["cc", "status"]).output();
    let said = String::from_utf8(elsewhere.unwrap().stderr).unwrap();
    assert!(said.contains("in another mount namespace"), "{said}");
    assert_eq!(kernel.cc(&["unload"]), "karak is unloaded\n");
    kernel.wait_until_gone();
}

/// Number of times the soak loads and unloads.
const ROUNDS: usize = 3;

/// Short and long connections while Karak comes and goes.
#[test]
fn nothing_is_left_of_karak_when_its_last_connection_has_ended() {
    let Some(kernel) = Kernel::take() else { return };
    let link =
        "rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nloss = { kind = \"bernoulli\", p = 0.03 }\n";
    let bed = Testbed::new(&Plan { link: link.to_owned(), ..Plan::default() });
    let load = |bytes| Load { bytes: Some(bytes), ..Load::endless("karak") };
    for round in 0..ROUNDS {
        kernel.cc(&["load", "karak"]);
        // Any namespace may have it.
        bed.fixed.sysctl("ipv4/tcp_congestion_control", "karak");
        let long = [1_000_000, 2_000_000].map(|bytes| bed.download(&load(bytes)));
        let short: Vec<_> = (1..=20).map(|n| bed.download(&load(n * 3000))).collect();
        for transfer in short {
            transfer.finish();
        }
        let loaded = &kernel.status()["loaded"];
        assert!(loaded["connections_ever"].as_u64() >= Some(22), "{round}: {loaded}");

        let last = bed.download(&Load::endless("karak"));
        let parting = kernel.cc(&["unload"]);
        assert!(parting.contains("until they end: "), "{round}: {parting}");
        assert_eq!(kernel.status()["retired"], 1);
        // The namespace holds it too.
        bed.fixed.sysctl("ipv4/tcp_congestion_control", "reno");
        for transfer in long.into_iter().chain([last]) {
            transfer.finish();
        }
        kernel.wait_until_gone();
    }
}
