//! `airtcp link` for real: kernel TCP and UDP through the emulator.
//!
//! The command behind the link is this test program again, in the role that [`ROLE`] names; the
//! other end are threads of the test. Without the right to make network namespaces the tests are
//! skipped.

#![cfg(target_os = "linux")]

use airtcp_emu::control::{DirectionSettings, DirectionStatus, LinkStatus};
use airtcp_emu::emulator::{OUTSIDE, OUTSIDE6};
use airtcp_testing::skip;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The variable that gives [`inside`] its work: a role, `:`, and the port outside.
const ROLE: &str = "AIRTCP_LINK_TEST_ROLE";
/// The variable that names a host other than the outside end.
const HOST: &str = "AIRTCP_LINK_TEST_HOST";
/// Prefix of the line in which the program in a role prints its findings.
const TELL: &str = "found: ";

fn airtcp(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.arg("link").args(args);
    command
}

/// True if this test can run here.
fn possible() -> bool {
    let made = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    let possible = made.is_ok_and(|s| s.success()) && Path::new("/dev/net/tun").exists();
    if !possible {
        skip("the right to make network namespaces, and /dev/net/tun");
    }
    possible
}

/// Runs this program in a role behind a link.
fn behind_link(options: &[&str], role: &str, port: impl Display) -> (Output, Vec<f64>) {
    let program = std::env::current_exe().unwrap();
    let mut command = airtcp(options);
    command.arg("--").arg(program).args(["--exact", "inside", "--nocapture"]);
    found(command.env(ROLE, format!("{role}:{port}")))
}

/// Runs it and reads what the program in a role found.
fn found(command: &mut Command) -> (Output, Vec<f64>) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|l| l.split_once(TELL)).map_or("", |(_, numbers)| numbers);
    let numbers = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    (output, numbers)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Echoes datagrams in the background; its port.
fn echo() -> u16 {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || answer(&socket));
    port
}

fn answer(socket: &UdpSocket) {
    let mut buffer = [0; 2000];
    while let Ok((size, peer)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(&buffer[..size], peer);
    }
}

/// Sends `size` bytes of the pattern to every client; its port.
fn source(size: usize) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            let _ = peer.write_all(&pattern(size));
        }
    });
    port
}

/// The same to one client by Reno, which every Linux has and which fills a queue, as BBR does not;
/// its port.
fn reno_source(size: usize) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        setsockopt(&peer, TcpCongestion, &"reno".into()).unwrap();
        let _ = peer.write_all(&pattern(size));
    });
    port
}

/// Bytes that do not repeat (xorshift).
fn pattern(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..size).map(next).collect()
}

/// The part of this program that runs behind the link; does nothing unless given a role.
#[test]
fn inside() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, port) = role.split_once(':').unwrap();
    let host = std::env::var(HOST).or_else(|_| std::env::var(OUTSIDE)).unwrap();
    let outside = format!("{host}:{port}");
    let found = match role {
        "echo" => return answer(&UdpSocket::bind(outside).unwrap()),
        "ping" => round_trips(&outside),
        "ping6" => round_trips(&format!("[{}]:{port}", std::env::var(OUTSIDE6).unwrap())),
        "loaded" => loaded_round_trips(&host, port),
        _ => vec![download(&outside)],
    };
    let found: Vec<String> = found.iter().map(f64::to_string).collect();
    println!("\n{TELL}{}", found.join(" "));
}

/// Milliseconds of 25 round trips, one begun every 100 ms; lost ones are left out.
fn round_trips(outside: &str) -> Vec<f64> {
    let any = if outside.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(outside).unwrap();
    let start = Instant::now();
    let at = move |i: u64| start + Duration::from_millis(100 * i);
    let receiver = socket.try_clone().unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    let sender = std::thread::spawn(move || {
        for i in 0..25 {
            std::thread::sleep(at(i).saturating_duration_since(Instant::now()));
            let _ = socket.send(&i.to_be_bytes());
        }
    });
    let mut trips = Vec::new();
    let mut number = [0; 8];
    while trips.len() < 25 && receiver.recv(&mut number).is_ok() {
        trips.push((Instant::now() - at(u64::from_be_bytes(number))).as_secs_f64() * 1e3);
    }
    sender.join().unwrap();
    trips
}

/// Round trips beside a download that has run for a second; `ports` are those of the echo and of the
/// source, with a comma.
fn loaded_round_trips(host: &str, ports: &str) -> Vec<f64> {
    let (echo, source) = ports.split_once(',').unwrap();
    let mut bytes = TcpStream::connect(format!("{host}:{source}")).unwrap();
    std::thread::spawn(move || std::io::copy(&mut bytes, &mut std::io::sink()));
    std::thread::sleep(Duration::from_secs(1));
    round_trips(&format!("{host}:{echo}"))
}

/// Seconds of a download of the pattern.
fn download(outside: &str) -> f64 {
    let start = Instant::now();
    let mut bytes = Vec::new();
    TcpStream::connect(outside).unwrap().read_to_end(&mut bytes).unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!(!bytes.is_empty() && bytes == pattern(bytes.len()), "payload damaged");
    took
}

/// The shortest: a busy machine delays most round trips now and then, a wrong link delays all.
fn shortest(trips: &[f64]) -> f64 {
    trips.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_round_trip_takes_both_delays() {
    if !possible() {
        return;
    }
    let (output, trips) =
        behind_link(&["--up-delay", "20 ms", "--down-delay", "30 ms"], "ping", echo());
    assert_eq!(trips.len(), 25, "{}", stderr(&output));
    assert!(trips.iter().all(|&t| t >= 50.0), "{trips:?}");
    assert!(shortest(&trips) < 55.0, "{trips:?}");
}

#[test]
fn a_download_has_the_rate_of_the_link() {
    if !possible() {
        return;
    }
    const SIZE: usize = 2_000_000;
    let options = ["--rate", "8mbit", "--delay", "20ms", "--queue", "60kB"];
    let (output, found) = behind_link(&options, "download", source(SIZE));
    let [took] = found[..] else { panic!("{}", stderr(&output)) };
    // 1448 bytes of payload in a packet of 1500; slow start and recovery take some time.
    let goodput = SIZE as f64 * 8.0 / took;
    assert!((6.0e6..8.0e6 * 1448.0 / 1500.0).contains(&goodput), "{goodput} bit/s");
}

/// The median round trip, ms, beside a download at 8 Mbit/s through this queue, and the report.
fn loaded(queue: &str) -> (f64, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!("rate = \"8mbit\"\ndelay = \"20 ms\"\n[down]\nqueue = {queue}\n");
    std::fs::write(file.path(), text).unwrap();
    let options = ["--config", file.path().to_str().unwrap()];
    let ports = format!("{},{}", echo(), reno_source(6_000_000));
    let (output, mut trips) = behind_link(&options, "loaded", ports);
    assert!(trips.len() > 15, "{trips:?} {}", stderr(&output));
    trips.sort_by(f64::total_cmp);
    (trips[trips.len() / 2], stderr(&output))
}

/// RFC 8290 §1: a flow that sends little does not wait behind one that fills its queue. 200 packets
/// of 1500 bytes take 300 ms at 8 Mbit/s; the path alone takes 40 ms.
#[test]
fn a_ping_beside_a_download_waits_in_drop_tail_and_not_in_fq_codel() {
    if !possible() {
        return;
    }
    let (drop_tail, tail_report) = loaded("{ limit = \"200 packets\" }");
    let (codel, _) = loaded("{ kind = \"codel\" }");
    let (fq_codel, report) = loaded("{ kind = \"fq-codel\" }");
    println!("ms: drop-tail {drop_tail:.1}, codel {codel:.1}, fq-codel {fq_codel:.1}");
    assert!(drop_tail > 100.0, "{drop_tail} ms, {tail_report}");
    assert!((40.0..100.0).contains(&fq_codel), "{fq_codel} ms, {report}");
    assert!(codel < drop_tail, "{codel} ms");
}

#[test]
fn data_and_acks_share_the_air() {
    if !possible() {
        return;
    }
    const SIZE: usize = 2_000_000;
    let (output, found) = behind_link(&["--wlan", "ieee"], "download", source(SIZE));
    let [took] = found[..] else { panic!("{}", stderr(&output)) };
    // Data alone would have 6.0 Mbit/s, with an ACK for every second segment at most 5.24.
    let goodput = SIZE as f64 * 8.0 / took;
    assert!((3.0e6..5.5e6).contains(&goodput), "{goodput} bit/s");
    let told = stderr(&output);
    let frames = |station: &str| -> f64 {
        let line = told.lines().find_map(|line| line.split_once(station)).unwrap_or_default().1;
        line.split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{told}"))
    };
    let (acks, data) = (frames("the station: "), frames("the access point: "));
    assert!(data >= (SIZE / 1448) as f64 && (0.3..1.2).contains(&(acks / data)), "{told}");
}

#[test]
fn a_trace_whose_name_is_no_text_is_refused() {
    let name = OsStr::from_bytes(b"/tmp/lte\xff");
    let output = airtcp(&["--up-trace"]).arg(name).args(["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("--up-trace: /tmp/lte\u{fffd}: the name is not UTF-8"), "{told}");
}

#[test]
fn a_trace_sets_the_rate() {
    if !possible() {
        return;
    }
    const SIZE: usize = 1_000_000;
    // 1504 bytes every 2 ms: 6.016 Mbit/s.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    std::fs::write(&file, "2\n4\n6\n").unwrap();
    let options = ["--delay", "5ms", "--queue", "60kB", "--down-trace", file.to_str().unwrap()];
    let (output, found) = behind_link(&options, "download", source(SIZE));
    let [took] = found[..] else { panic!("{}", stderr(&output)) };
    let goodput = SIZE as f64 * 8.0 / took;
    assert!((4.5e6..6.016e6 * 1448.0 / 1504.0).contains(&goodput), "{goodput} bit/s");

    // The same in a file, which options override.
    let link = folder.path().join("link.toml");
    std::fs::write(&link, "[down]\nrate = { file = \"trace\" }\n").unwrap();
    let of_file = ["--config", link.to_str().unwrap()];
    let over_file = ["--config", link.to_str().unwrap(), "--down-rate", "1 Mbit/s"];

    std::fs::write(&file, "2\nsoon\n").unwrap();
    let output = |options: &[&str]| airtcp(options).args(["--", "true"]).output().unwrap();
    for options in [&options[..], &of_file] {
        let output = output(options);
        assert_eq!(output.status.code(), Some(2));
        let told = stderr(&output);
        assert!(told.contains("trace: line 2: \"soon\" is not a time"), "{told}");
    }
    assert!(output(&over_file).status.success());
}

#[test]
fn an_outage_that_holds_delays_and_loses_nothing() {
    if !possible() {
        return;
    }
    let outage = "down.outage={ mode = \"hold\", listed = [[\"0.5 s\", \"2.5 s\"]] }";
    let (output, trips) = behind_link(&["--set", outage], "ping", echo());
    assert_eq!(trips.len(), 25, "{}", stderr(&output));
    let longest = trips.iter().copied().fold(0.0, f64::max);
    assert!((1800.0..2100.0).contains(&longest), "{trips:?}");
}

/// Gives an order to the link that listens, or will soon, at `socket`.
fn order(socket: &str, words: &[&str]) -> LinkStatus {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let output = airtcp(&["--at", socket]).args(words).output().unwrap();
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
        assert!(Instant::now() < until, "{}", stderr(&output));
    }
}

/// Makes an outage of both directions by hand, of just over a second, during 25 round trips.
/// Returns its length in milliseconds, the status before it ended, and the round trips.
fn outage_by_hand(options: &[&str]) -> (f64, LinkStatus, Vec<f64>) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let socket = socket.to_str().unwrap();
    let options = [options, &["--control", socket]].concat();
    let (down, before_end, up, (output, trips)) = std::thread::scope(|scope| {
        let behind = scope.spawn(|| behind_link(&options, "ping", echo()));
        // The outage has to begin among the round trips.
        while order(socket, &["status"]).downlink.packets_sent < 3 {}
        let down = order(socket, &["down"]);
        std::thread::sleep(Duration::from_millis(1000));
        let before_end = order(socket, &["status"]);
        let up = order(socket, &["up"]);
        (down, before_end, up, behind.join().unwrap())
    });
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(down.uplink.down && down.downlink.down && !up.uplink.down && !up.downlink.down);
    assert!(!Path::new(socket).exists());
    ((up.monotonic_ns - down.monotonic_ns) as f64 / 1e6, before_end, trips)
}

#[test]
fn an_outage_by_hand_loses_what_is_sent_in_it() {
    if !possible() {
        return;
    }
    let (length, before_end, trips) = outage_by_hand(&["--late", "1 s"]);
    // One datagram every 100 ms; each is lost at most once, there or back.
    let lost = (25 - trips.len()) as f64;
    assert!((lost - length / 100.0).abs() <= 2.0, "{lost} lost in {length} ms");
    assert!(before_end.uplink.down && before_end.uplink.outage_drops >= 8, "{before_end:?}");
}

#[test]
fn an_outage_by_hand_of_a_link_that_holds_delays() {
    if !possible() {
        return;
    }
    let outage = "outage={ mode = \"hold\", listed = [] }";
    let (length, before_end, trips) = outage_by_hand(&["--late", "1 s", "--set", outage]);
    assert_eq!(trips.len(), 25);
    let longest = trips.iter().copied().fold(0.0, f64::max);
    assert!((length - 110.0..length + 100.0).contains(&longest), "{length} ms: {trips:?}");
    assert!(before_end.uplink.queue_packets >= 8, "{before_end:?}");
}

#[test]
fn a_delay_by_hand_and_losses_by_hand_count_from_then_on() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let socket = socket.to_str().unwrap();
    let options = ["--delay", "5ms", "--late", "1 s", "--control", socket];
    let (output, trips) = std::thread::scope(|scope| {
        let behind = scope.spawn(|| behind_link(&options, "ping", echo()));
        while order(socket, &["status"]).downlink.packets_sent < 3 {}
        let of = |status: &DirectionStatus| {
            let DirectionSettings { rate, delay, loss, duplicate, corrupt } = &status.settings;
            [rate, delay, loss, duplicate, corrupt].map(String::clone)
        };
        let before = order(socket, &["status"]);
        assert_eq!(of(&before.downlink), ["100 Gbit/s", "5 ms", "0", "0", "0"]);
        order(socket, &["delay", "60ms", "downlink"]);
        order(socket, &["duplicate", "0.25", "uplink"]);
        let after = order(socket, &["rate", "10", "Mbit/s"]);
        assert_eq!(of(&after.downlink), ["10 Mbit/s", "60 ms", "0", "0", "0"]);
        assert_eq!(of(&after.uplink), ["10 Mbit/s", "5 ms", "0", "0.25", "0"]);
        while order(socket, &["status"]).downlink.packets_sent < 10 {}
        order(socket, &["loss", "1", "uplink"]);
        behind.join().unwrap()
    });
    assert!(output.status.success(), "{}", stderr(&output));
    // Of ten answers, half of those after the third may have been copies.
    assert!((6..25).contains(&trips.len()), "{trips:?}");
    assert!(trips.iter().any(|trip| *trip < 60.0), "{trips:?}");
    assert!(trips[5..].iter().all(|trip| *trip >= 65.0), "{trips:?}");
}

#[test]
fn every_datagram_comes_twice_over_a_link_that_copies_all() {
    if !possible() {
        return;
    }
    let (output, trips) = behind_link(&["--late", "1 s", "--up-duplicate", "1"], "ping", echo());
    assert_eq!(trips.len(), 25, "{}", stderr(&output));
    // The 25 answers that it waits for come within the first 13 of 25 round trips.
    let told = stderr(&output);
    assert!(told.contains("up: ") && told.contains("; copies made: "), "{told}");
    assert_eq!(told.matches("copies made").count(), 1, "{told}");
}

#[test]
fn a_download_over_links_that_copy_is_whole() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control");
    let socket = socket.to_str().unwrap();
    let options = ["--rate", "8mbit", "--late", "1 s", "--control", socket, "--duplicate", "0.2"];
    let (output, took, status) = std::thread::scope(|scope| {
        let behind = scope.spawn(|| behind_link(&options, "download", source(1_000_000)));
        let status = order(socket, &["duplicate", "0.5", "uplink"]);
        let (output, took) = behind.join().unwrap();
        (output, took, status)
    });
    // `inside` has compared the bytes.
    assert_eq!(took.len(), 1, "{}", stderr(&output));
    assert!(took[0] > 1.0, "1 MB and a fifth of it at 8 Mbit/s: {took:?}");
    assert!(status.uplink.duplicates <= status.uplink.packets_sent + 1, "{status:?}");
    assert!(stderr(&output).matches("copies made").count() == 2, "{}", stderr(&output));
}

#[test]
fn a_datagram_with_a_flipped_bit_is_dropped_by_the_kernel() {
    if !possible() {
        return;
    }
    let (output, trips) = behind_link(&["--late", "1 s", "--up-corrupt", "1"], "ping", echo());
    let told = stderr(&output);
    assert!(output.status.success() && trips.is_empty(), "{trips:?}\n{told}");
    assert!(told.contains("; with a flipped bit: ") && !told.contains("lost on output"), "{told}");
}

#[test]
fn a_download_over_links_that_flip_bits_is_whole() {
    if !possible() {
        return;
    }
    let options = ["--late", "1 s", "--rate", "100mbit", "--corrupt", "0.02"];
    let (output, took) = behind_link(&options, "download", source(1_000_000));
    // `inside` has compared the bytes.
    assert_eq!(took.len(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("; with a flipped bit: "), "{}", stderr(&output));
}

#[test]
fn only_the_packets_of_a_port_are_delayed() {
    if !possible() {
        return;
    }
    let (delayed, other) = (echo(), echo());
    let port = delayed.to_string();
    let options = ["--late", "1 s", "--delay", "50ms", "--only-port", &port];
    let (output, trips) = behind_link(&options, "ping", delayed);
    assert!(trips.len() == 25 && shortest(&trips) >= 100.0, "{trips:?}\n{}", stderr(&output));
    let (output, trips) = behind_link(&options, "ping", other);
    assert!(trips.len() == 25 && shortest(&trips) < 50.0, "{trips:?}\n{}", stderr(&output));
    assert_eq!(stderr(&output).matches("; beside the link: ").count(), 2, "{}", stderr(&output));
}

#[test]
fn only_the_packets_of_a_network_are_lost() {
    if !possible() {
        return;
    }
    let lost = |network| {
        let options = ["--late", "1 s", "--loss", "1", "--only-network", network];
        behind_link(&options, "ping", echo()).1.is_empty()
    };
    assert!(lost("0.0.0.0/0") && !lost("192.0.2.0/24"));
}

#[test]
fn an_order_that_no_link_takes_is_refused() {
    let output = airtcp(&["--at", "/nonexistent/socket", "down"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is a link running with --control?"), "{}", stderr(&output));
    let output = airtcp(&["--at", "/nonexistent/socket", "down", "left"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no such order: \"down left\""), "{}", stderr(&output));
    for (words, near) in [
        (&["down", "uplnik"][..], "uplink"),
        (&["rate", "5mbit", "downlik"], "downlink"),
        (&["stauts"], "status"),
        (&["dwon", "uplink"], "down"),
    ] {
        let output = airtcp(&["--at", "/nonexistent/socket"]).args(words).output().unwrap();
        let told = format!("; did you mean `{near}`?");
        assert!(stderr(&output).contains(&told), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn a_command_without_its_separator_is_told_where_it_belongs() {
    for words in
        [&["curl", "http://192.0.2.1/"][..], &["curl", "-s", "x"], &["a", "b", "c", "d", "e"], &[]]
    {
        let output = airtcp(&["--delay", "20ms"]).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let told = stderr(&output);
        assert!(told.contains("comes after `--`, as in `airtcp link"), "{words:?}: {told}");
        assert!(!told.contains("--at <SOCKET>\n"), "{words:?}: {told}");
    }
}

#[test]
fn a_file_in_no_folder_is_refused_with_its_option() {
    for option in ["--up-log", "--down-log", "--control"] {
        let output = airtcp(&[option, "/nonexistent/x", "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("{option}: /nonexistent/x: there is no folder /nonexistent\n");
        assert!(stderr(&output).ends_with(&expected), "{}", stderr(&output));
    }
}

/// The lines of a log of this kind: milliseconds and what follows.
fn lines<'a>(log: &'a str, kind: &str) -> Vec<(u64, Vec<&'a str>)> {
    let words = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let of_kind = words.filter(|words| words[0] != "#" && words[1] == kind);
    of_kind.map(|words| (words[0].parse().unwrap(), words[2..].to_vec())).collect()
}

#[test]
fn logs_tell_what_passed_in_the_format_of_mahimahi() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [up, down] = ["up", "down"].map(|name| folder.path().join(name));
    let logs = ["--up-log", up.to_str().unwrap(), "--down-log", down.to_str().unwrap()];
    let options = ["--late", "1 s", "--rate", "1 Mbit/s", "--delay", "20 ms"];
    let (output, trips) = behind_link(&[&options[..], &logs].concat(), "ping", echo());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(trips.len(), 25);
    for (path, title) in [(&up, "Uplink"), (&down, "Downlink")] {
        let log = std::fs::read_to_string(path).unwrap();
        let first = format!("# mahimahi mm-link ({title}) [1 Mbit/s] > {}\n", path.display());
        assert!(log.starts_with(&first), "{log}");
        assert!(log.contains("\n# base timestamp: 0\n"), "{log}");
        // Datagrams of 8 bytes; IPv6 may have sent its own packets on the device, too.
        let pings = |kind| {
            let all = lines(&log, kind);
            all.into_iter().filter(|(_, rest)| rest[0] == "36").collect::<Vec<_>>()
        };
        assert_eq!(pings("+").len(), 25);
        let departures = pings("-");
        assert_eq!(departures.len(), 25);
        // 36 bytes at 1 Mbit/s, on time but where the machine is busy; the propagation delay comes
        // after the queue.
        let delays = departures.iter().map(|(_, rest)| rest[1].parse::<u64>().unwrap());
        assert!(delays.clone().min().unwrap() <= 1, "{:?}", delays.collect::<Vec<_>>());
        // From the first millisecond on, one opportunity in each.
        let opportunities = lines(&log, "#");
        assert!(opportunities.len() > 2400, "{}", opportunities.len());
        let counted = opportunities.iter().zip(1..);
        assert!(counted.clone().all(|((at, rest), n)| *at == n && rest[0] == "125"), "{log}");
    }
    let folder = folder.path().to_str().unwrap();
    let output = airtcp(&["--up-log", folder, "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("cannot write {folder}")), "{}", stderr(&output));
}

#[test]
fn a_command_that_ends_while_its_traffic_flows_ends_the_link() {
    if !possible() {
        return;
    }
    let port = source(100_000_000);
    let script = format!("exec 3<>/dev/tcp/${OUTSIDE}/{port}; head -c 300000 <&3 | wc -c; exit 3");
    let options = ["--rate", "20mbit", "--delay", "20ms", "--late", "1 s", "--", "bash", "-c"];
    let start = Instant::now();
    let output = airtcp(&options).arg(script).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "300000");
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// The devices of links and the tables that masquerade for them, in this namespace.
fn traces() -> Vec<String> {
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    let tables = Command::new("nft").args(["list", "tables"]).output();
    let tables = tables.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned());
    let lines = devices.lines().chain(tables.lines()).map(str::to_owned);
    let mut lines: Vec<String> = lines.filter(|line| line.contains("airtcp")).collect();
    lines.iter_mut().for_each(|line| line.truncate(line.find(':').unwrap_or(line.len())));
    lines
}

/// The part of this program that starts and stops links, in a namespace without others.
#[test]
fn cycles() {
    if std::env::var(ROLE).as_deref() != Ok("cycles") {
        return;
    }
    assert_eq!(traces(), Vec::<String>::new());
    // Two at a time.
    for _ in 0..50 {
        let pair = [0, 1].map(|_| {
            // The test is about what links leave behind: a busy machine may be late.
            let mut command = airtcp(&["--delay", "1ms", "--late", "1s", "--", "true"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        });
        for link in pair {
            let output = link.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
    }
    assert_eq!(traces(), Vec::<String>::new());
}

#[test]
fn a_hundred_links_two_at_a_time_leave_nothing() {
    if !possible() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.arg("-n").arg(program).args(["--exact", "cycles"]).env(ROLE, "cycles");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn ipv6_passes_too() {
    if !possible() {
        return;
    }
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    if disabled.is_ok_and(|text| text.trim() != "0") || UdpSocket::bind("[::]:0").is_err() {
        skip("IPv6");
        return;
    }
    let socket = UdpSocket::bind("[::]:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || answer(&socket));
    // Nothing but IPv6 is left inside.
    let script =
        "ip -4 address flush dev $(ip -o link | grep -o 'airtcp[0-9]*' | head -n 1); exec \"$@\"";
    let program = std::env::current_exe().unwrap();
    let mut command =
        airtcp(&["--delay", "20 ms", "--late", "1 s", "--", "sh", "-c", script, "sh"]);
    command.arg(program).args(["--exact", "inside", "--nocapture"]);
    let (output, trips) = found(command.env(ROLE, format!("ping6:{port}")));
    assert_eq!(trips.len(), 25, "{}", stderr(&output));
    assert!(trips.iter().all(|&t| t >= 40.0), "{trips:?}");
}

#[test]
fn the_status_is_that_of_the_command() {
    if !possible() {
        return;
    }
    let code = |script| airtcp(&["--", "sh", "-c", script]).output().unwrap().status.code();
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("kill -KILL $$"), Some(128 + 9));
    assert_eq!(airtcp(&["--", "no-such-command"]).output().unwrap().status.code(), Some(127));
}

/// A link around a command that says where it is and sleeps.
struct Sleeper {
    emulator: Child,
    /// The device outside.
    device: String,
    /// Index of the device: its name, once free, goes to the next link, perhaps of another test.
    index: String,
    /// The process id of the command.
    command: String,
}

impl Sleeper {
    fn start() -> Self {
        let script = "awk -F: '/airtcp/ { print $1 }' /proc/net/dev; echo $$; exec sleep 30";
        let mut emulator = airtcp(&["--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut text = String::new();
        let stdout = emulator.stdout.as_mut().unwrap();
        while text.matches('\n').count() < 2 {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            text.push(byte[0].into());
        }
        let mut lines = text.lines().map(|l| l.trim().to_owned());
        let device = lines.next().unwrap();
        let index = interface_index(&device).unwrap();
        Self { emulator, device, index, command: lines.next().unwrap() }
    }

    /// The device and the command.
    fn exists(&self) -> [bool; 2] {
        let device = interface_index(&self.device).is_ok_and(|index| index == self.index);
        [device, Path::new("/proc").join(&self.command).exists()]
    }

    /// Waits until both are gone.
    fn assert_gone(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.exists() != [false, false] {
            assert!(Instant::now() < until, "the device, the command: {:?}", self.exists());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn interface_index(device: &str) -> std::io::Result<String> {
    std::fs::read_to_string(Path::new("/sys/class/net").join(device).join("ifindex"))
}

#[test]
fn kill_9_leaves_neither_device_nor_command() {
    if !possible() {
        return;
    }
    let mut sleeper = Sleeper::start();
    assert_eq!(sleeper.exists(), [true, true]);
    sleeper.emulator.kill().unwrap();
    sleeper.emulator.wait().unwrap();
    sleeper.assert_gone();
}

#[test]
fn sigterm_goes_to_the_command() {
    if !possible() {
        return;
    }
    let mut sleeper = Sleeper::start();
    let id = sleeper.emulator.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(sleeper.emulator.wait().unwrap().code(), Some(128 + 15));
    sleeper.assert_gone();
}

#[test]
fn a_device_that_vanishes_ends_the_run_at_once() {
    if !possible() {
        return;
    }
    let script = "ip link delete $(ip -o link | grep -o 'airtcp[0-9]*' | head -n 1); exec sleep 30";
    let start = Instant::now();
    let output = airtcp(&["--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the link broke"), "{}", stderr(&output));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn links_nest() {
    if !possible() {
        return;
    }
    if Command::new("nft").arg("--version").output().is_err() {
        skip("nft, to reach across the namespace in the middle");
        return;
    }
    let script = format!(
        "export {HOST}=${OUTSIDE}; exec {} link --delay 15ms -- {} --exact inside --nocapture",
        env!("CARGO_BIN_EXE_airtcp"),
        std::env::current_exe().unwrap().display()
    );
    let mut command = airtcp(&["--delay", "10ms", "--", "sh", "-c", &script]);
    let (output, trips) = found(command.env(ROLE, format!("ping:{}", echo())));
    assert_eq!(trips.len(), 25, "{}", stderr(&output));
    assert!((50.0..68.0).contains(&shortest(&trips)), "{trips:?}");
}

/// A named network namespace, deleted when dropped.
struct Named(String);

impl Named {
    fn new(what: &str) -> Self {
        let name = format!("airtcp-test-{what}-{}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).status().unwrap();
        assert!(added.success());
        Self(name)
    }
    fn exec(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(args);
        command
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn two_namespaces_are_joined() {
    if !possible() {
        return;
    }
    let (first, second) = (Named::new("a"), Named::new("b"));
    let options = ["--late", "1 s", "--delay", "10 ms", "--between", &first.0, &second.0];
    let mut emulator = airtcp(&options).stderr(Stdio::piped()).spawn().unwrap();
    // "airtcp: airtcp0: 100.64.0.2 in A, 100.64.0.1 in B"
    let mut lines = BufReader::new(emulator.stderr.take().unwrap()).lines();
    let line = lines.find_map(|l| l.ok().filter(|l| l.contains(" in ")));
    let line = line.expect("the emulator prints the addresses");
    let before = format!(" in {}", second.0);
    let host = line.split(&before).next().unwrap().rsplit(' ').next().unwrap();
    let program = std::env::current_exe().unwrap();
    let test = [program.to_str().unwrap(), "--exact", "inside", "--nocapture"];
    let mut echo = second
        .exec(&test)
        .env(HOST, host)
        .env(ROLE, "echo:7777")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let (_, trips) = found(first.exec(&test).env(HOST, host).env(ROLE, "ping:7777"));
    echo.kill().unwrap();
    echo.wait().unwrap();
    let id = emulator.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(emulator.wait().unwrap().code(), Some(0), "{rest:?}");
    assert_eq!(trips.len(), 25, "{rest:?}");
    // Twice the delay; four times if each direction had both.
    assert!((20.0..38.0).contains(&shortest(&trips)), "{trips:?}");
    let left = first.exec(&["cat", "/proc/net/dev"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&left.stdout).contains("airtcp"));
}

#[test]
fn a_packet_that_waits_for_its_predecessor_is_not_late() {
    if !possible() {
        return;
    }
    let delay = r#"delay={uniform=["10 ms","600 ms"]}"#;
    let (output, trips) = behind_link(&["--late", "100 ms", "--set", delay], "ping", echo());
    assert_eq!(trips.len(), 25);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn an_emulator_that_is_too_late_fails_loudly() {
    if !possible() {
        return;
    }
    let (output, trips) = behind_link(&["--late", "1 ns"], "ping", echo());
    assert_eq!(trips.len(), 25);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("DID NOT KEEP UP"), "{}", stderr(&output));
}

#[test]
fn bad_input_is_refused_with_the_option_and_the_nearest_name() {
    let refused = |args: &[&str], told: &str| {
        let output = airtcp(args).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    };
    refused(&["--delay", "20"], "--delay:1:7: delay: 20 has no unit");
    refused(&["--rate", "8 mbits"], "did you mean `Mbit/s`?");
    refused(&["--loss", "1.5"], "--loss:1:8: loss.p: 1.5");
    refused(&["--up-duplicate", "2"], "--up-duplicate:1:14: up.duplicate: 2 is out of range");
    refused(&["--set", "down.duplicat=0.1"], "unknown key (did you mean `duplicate`?)");
    refused(&["--down-corrupt", "1%"], "--down-corrupt:1:14: down.corrupt: ");
    refused(&["--only-port", "0"], "--only-port:1:12: only.ports: 0 is no port");
    refused(&["--only-port", "https"], "--only-port:1:");
    refused(&["--only-port", "443"], "only: has no effect, as the link changes no packets");
    refused(
        &["--up-rate", "5 Mbit/s", "--set", "up.rate=1 Mbit/s"],
        "--up-rate would have no effect beside --set up.rate=1 Mbit/s",
    );
    refused(
        &["--queue", "60 kB", "--set", "queue={kind=\"codel\"}"],
        "--queue would have no effect",
    );
    refused(&["--only-network", "10.0.0.1/8"], "(did you mean `10.0.0.0/8`?)");
    refused(&["--set", "only.port=[443]"], "unknown key (did you mean `ports`?)");
    refused(&["--set", "delais=1 s"], "delais: unknown key (did you mean `delay`?)");
    refused(&["--wlan", "iee"], "did you mean `ieee`?");
    refused(&["--set", "wlan.sifs=60 us"], "sifs must be shorter");
    refused(&["--config", "/nonexistent.toml"], "/nonexistent.toml: there is no such file");
    let both = ["--up-log", "/tmp/one.log", "--down-log", "/tmp/one.log"];
    refused(&both, "--down-log: /tmp/one.log: used for two outputs");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let config = file("link.toml", "rate = \"8 Mbit/s\"\n");
    refused(&["--config", &config, "--up-log", &config], "link.toml: is read, too");
    let table = file("path.csv", "time (s),rate (Mbit/s),delay (ms)\n0,8,40\n");
    refused(&["--up-trace", &table, "--up-log", &table], "path.csv: is read, too");
    refused(
        &["--up-trace", &table, "--up-delay", "20ms"],
        "--up-delay contradicts --up-trace (expected one of them)",
    );
}

#[test]
fn a_namespace_that_is_not_there_is_named() {
    let output = airtcp(&["--between", "no-such-a", "no-such-b"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no network namespace \"no-such-a\""), "{}", stderr(&output));
}

#[test]
fn without_privileges_one_line_says_what_is_missing() {
    if !possible() {
        return;
    }
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"];
    let output = Command::new("setpriv")
        .args(nobody)
        .args(["--bounding-set=-all", env!("CARGO_BIN_EXE_airtcp"), "link", "--", "true"])
        .output()
        .unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("CAP_NET_ADMIN"), "{told}");
}
