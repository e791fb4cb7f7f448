//! How fast and how punctual the emulator is: `make bench-link`, as root.
//!
//! Small datagrams over a plain veth pair, then through an emulated link without limits: packets a
//! second. Then paced datagrams at 8 Mbit/s, and TCP at 100 and 500 Mbit/s: lateness, beside how
//! late this machine wakes a real-time thread that does nothing else. The sender is this program
//! again, in the role that [`ROLE`] names. All in one run, as the machine's other load moves all
//! numbers.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use airtcp_core::{DataRate, Duration as Span};
    use airtcp_emu::emulator::OUTSIDE;
    use airtcp_emu::{DirectionSetup, Report, Setup, around_command};
    use airtcp_net::config::{DelayConfig, LinkConfig, LossConfig, QueueConfig, QueueLimit};
    use nix::poll::ppoll;
    use nix::sys::time::TimeSpec;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    /// The variable that makes this program a sender: `flood`, `paced` or `stream`, `:`, and where
    /// to.
    const ROLE: &str = "AIRTCP_LINK_BENCH_ROLE";
    /// Duration of each measurement.
    const TIME: Duration = Duration::from_secs(5);
    /// Payload of a small datagram.
    const SMALL: usize = 22;

    pub(super) fn main() {
        if let Ok(role) = std::env::var(ROLE) {
            let (role, to) = role.split_once(':').expect("ROLE:ADDRESS");
            return send(role, to);
        }
        let Some(veth) = veth() else {
            let _ = writeln!(std::io::stderr(), "skipped: needs root and iproute2");
            return;
        };
        println!("veth: {:.0} kpps", veth / 1e3);
        for role in ["flood", "stream"] {
            let report = behind_link(&link(DataRate::mbps(100_000), Span::ZERO), role);
            let kpps = report.up.packets_sent as f64 / TIME.as_secs_f64() / 1e3;
            println!(
                "link without limits, {role}: {kpps:.0} kpps ({:.0} % of veth; {:.0} kpps dropped in \
                 front of it)",
                kpps * 1e5 / veth,
                report.dropped_by_kernel as f64 / TIME.as_secs_f64() / 1e3
            );
        }
        let [p50, p99, max] = wake_ups();
        println!("a real-time thread wakes up p50 {p50} us, p99 {p99} us, max {max} us late");
        for (mbps, role) in [(8, "paced"), (100, "stream"), (500, "stream")] {
            let report = behind_link(&link(DataRate::mbps(mbps), Span::from_millis(20)), role);
            let micros = |quantile| report.lateness.quantile(quantile).as_nanos() / 1000;
            let bits = report.up.bytes_sent.get() as f64 * 8.0;
            println!(
                "{mbps} Mbit/s, {role}: {:.1} Mbit/s, lateness p50 {} us, p99 {} us, max {} us{}",
                bits / TIME.as_secs_f64() / 1e6,
                micros(0.5),
                micros(0.99),
                report.lateness.max().as_nanos() / 1000,
                if report.real_time { "" } else { " (without SCHED_FIFO)" }
            );
        }
    }

    /// Wake-up latency of a real-time thread that sleeps 1 ms at a time, in microseconds: median,
    /// 99th percentile, maximum.
    fn wake_ups() -> [u128; 3] {
        let thread = std::thread::spawn(|| {
            be_real_time();
            let (mut late, end) = (Vec::new(), Instant::now() + TIME);
            while Instant::now() < end {
                let due = Instant::now() + Duration::from_millis(1);
                let _ = ppoll(&mut [], Some(TimeSpec::from_duration(due - Instant::now())), None);
                late.push(due.elapsed().as_micros());
            }
            late.sort_unstable();
            [late[late.len() / 2], late[late.len() * 99 / 100], late[late.len() - 1]]
        });
        thread.join().expect("it only sleeps")
    }

    /// Gives this thread the emulator's priority; otherwise the machine's other load is measured.
    fn be_real_time() {
        let real_time = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, real_time);
        let _ = nix::sys::prctl::set_timerslack(1);
    }

    fn link(rate: DataRate, delay: Span) -> LinkConfig {
        LinkConfig {
            rate: rate.into(),
            delay: DelayConfig { base: delay, variation: None },
            loss: LossConfig::None.into(),
            duplicate: 0.0,
            policer: None,
            outage: None,
            reconfiguration: None,
            handover: None,
            rlc: None,
            queue: QueueConfig::DropTail { limit: QueueLimit::Packets(2000) },
        }
    }

    fn behind_link(config: &LinkConfig, role: &str) -> Report {
        let direction = DirectionSetup { config, corrupt: 0.0, log: None };
        let setup = Setup {
            up: direction,
            down: direction,
            only: None,
            air: None,
            seed: 1,
            late: Span::from_millis(1),
            control: None,
            prefix: None,
            command_line: "",
        };
        let datagrams = UdpSocket::bind("0.0.0.0:0").expect("a port");
        let streams = TcpListener::bind("0.0.0.0:0").expect("a port");
        let to = if role == "stream" { streams.local_addr() } else { datagrams.local_addr() };
        let port = to.expect("an address").port();
        std::thread::spawn(move || {
            while let Ok((mut peer, _)) = streams.accept() {
                let mut buffer = vec![0; 1 << 20];
                while peer.read(&mut buffer).is_ok_and(|size| size > 0) {}
            }
        });
        let program = std::env::current_exe().expect("the name of this program");
        let command =
            ["env".into(), format!("{ROLE}={role}:{port}").into(), program.into_os_string()];
        around_command(setup, &command, &mut |_| {}).expect("a link").report
    }

    /// Packets a second over a pair of veth devices between two namespaces; `None` without the
    /// right to make them.
    fn veth() -> Option<f64> {
        let id = std::process::id();
        let [a, b] = ["a", "b"].map(|end| format!("airtcp-bench-{id}-{end}"));
        let ip = |text: &str| {
            let args = text.split(' ');
            Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
        };
        let made = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("link add a{id} netns {a} type veth peer name b{id} netns {b}"))
            && ip(&format!("-n {a} address add 192.0.2.1/30 dev a{id}"))
            && ip(&format!("-n {b} address add 192.0.2.2/30 dev b{id}"))
            && ip(&format!("-n {a} link set a{id} up"))
            && ip(&format!("-n {b} link set b{id} up"));
        let rate = made.then(|| {
            let counter = format!("netns exec {b} cat /sys/class/net/b{id}/statistics/rx_packets");
            let received = || {
                let output = Command::new("ip").args(counter.split(' ')).output().expect("ip");
                String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("a number")
            };
            // Without a listener each packet is answered by an ICMP error.
            let program = std::env::current_exe().expect("the name of this program");
            let exec = |end: &str, role: &str| {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", end]).arg(&program).env(ROLE, role);
                command
            };
            let mut listener = exec(&b, "listen:192.0.2.2:9").spawn().expect("a listener");
            let sent = exec(&a, "flood:192.0.2.2:9").status().expect("a sender");
            assert!(sent.success());
            let rate = received() / TIME.as_secs_f64();
            let _ = listener.kill();
            let _ = listener.wait();
            rate
        });
        let _ = ip(&format!("netns delete {a}")) | ip(&format!("netns delete {b}"));
        rate
    }

    fn send(role: &str, to: &str) {
        let outside = std::env::var(OUTSIDE);
        let to = outside.map_or(to.to_owned(), |host| format!("{host}:{to}"));
        let until = Instant::now() + TIME;
        match role {
            "listen" => {
                let _socket = UdpSocket::bind(to).expect("an address");
                std::thread::sleep(TIME * 10);
            }
            "flood" => {
                be_real_time();
                let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
                socket.connect(to).expect("a way");
                while Instant::now() < until {
                    for _ in 0..64 {
                        let _ = socket.send(&[0; SMALL]);
                    }
                }
            }
            "paced" => {
                let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
                socket.connect(to).expect("a way");
                // 1000 bytes with headers each 1.25 ms: 6.4 Mbit/s.
                while Instant::now() < until {
                    let _ = socket.send(&[0; 972]);
                    std::thread::sleep(Duration::from_micros(1250));
                }
            }
            _ => {
                let mut stream = TcpStream::connect(to).expect("a connection");
                let block = vec![0; 1 << 16];
                while Instant::now() < until {
                    stream.write_all(&block).expect("the connection");
                }
            }
        }
    }
}
