//! UDP through an outage: a sender that waits for each answer, and twice as long after each attempt
//! without one, as QUIC's does (RFC 9002 §6.2).

use crate::lateness::{self, Wait};
use crate::outages::{Told, WAKE_TOLD, WAKE_UNTOLD, outage};
use crate::testbed::{Place, Plan, Testbed, possible};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Before the first attempt that is repeated.
const TIMEOUT: Duration = Duration::from_millis(200);

/// From the return of the link until the sender has the first answer, in an exchange with an outage
/// of 5 s.
fn dead_time(mechanism: Option<&str>, told: Told) -> Wait {
    let mechanism = mechanism.map(|name| format!("{name:?}"));
    let bed = Testbed::new(&Plan { mechanism, ..Plan::default() });
    let [fixed, mobile] = bed.addresses();
    let bind = |ip| move || UdpSocket::bind((ip, 5000)).unwrap();
    let (sender, echo) = (bed.fixed.within(bind(fixed)), bed.mobile.within(bind(mobile)));
    sender.connect((mobile, 5000)).unwrap();
    echo.set_read_timeout(Some(TIMEOUT)).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 8];
            while !over.load(Ordering::Relaxed) {
                if let Ok((_, from)) = echo.recv_from(&mut bytes) {
                    echo.send_to(&bytes, from).unwrap();
                }
            }
        });
        let answers = scope.spawn(|| {
            let mut answers = Vec::new();
            let mut timeout = TIMEOUT;
            while !over.load(Ordering::Relaxed) {
                let number = answers.len() as u64;
                sender.send(&number.to_be_bytes()).unwrap();
                sender.set_read_timeout(Some(timeout)).unwrap();
                let mut bytes = [0; 8];
                timeout = match sender.recv(&mut bytes) {
                    Ok(_) if u64::from_be_bytes(bytes) == number => {
                        answers.push(Instant::now());
                        TIMEOUT
                    }
                    Ok(_) => timeout,
                    Err(_) => timeout * 2,
                };
            }
            answers
        });
        let begin = Instant::now() + Duration::from_secs(1);
        let up = outage(&bed, begin, Duration::from_secs(5), told, || {});
        thread::sleep(Duration::from_secs(7));
        over.store(true, Ordering::Relaxed);
        let answers = answers.join().unwrap();
        let first = answers.into_iter().find(|&at| at > up).expect("an answer in 7 s");
        Wait { length: first - up, allowance: lateness::allowance(up) }
    })
}

/// The mobile's NAT, in the gateway, forgets the exchange in an outage of 6 s and gives it another
/// port afterwards. As with QUIC the server takes a new address of the mobile, and the mobile only
/// answers. From the return of the link until the server has the first answer, if one comes.
fn dead_time_behind_nat(mechanism: Option<&str>) -> Option<Wait> {
    let mechanism = mechanism.map(|name| format!("{name:?}"));
    let place = Place::Masquerading;
    let bed = Testbed::new(&Plan { mechanism, place, ..Plan::default() });
    let rule = ["iptables", "-t", "nat", "-R", "POSTROUTING", "1", "-o", "wire", "-j"];
    let random = bed.gateway.command(&[&rule[..], &["MASQUERADE", "--random-fully"]].concat());
    assert!({ random }.status().unwrap().success());
    // The server's attempts are soon further apart.
    for timeout in ["nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"] {
        bed.gateway.sysctl(&format!("netfilter/{timeout}"), "1");
    }
    let [fixed, mobile] = bed.addresses();
    let bind = |ip| move || UdpSocket::bind((ip, 5000)).unwrap();
    let (server, echo) = (bed.fixed.within(bind(fixed)), bed.mobile.within(bind(mobile)));
    echo.connect((fixed, 5000)).unwrap();
    echo.set_read_timeout(Some(TIMEOUT)).unwrap();
    echo.send(&0_u64.to_be_bytes()).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 8];
            while !over.load(Ordering::Relaxed) {
                if echo.recv(&mut bytes).is_ok() {
                    echo.send(&bytes).unwrap();
                }
            }
        });
        let answers = scope.spawn(|| {
            let mut answers: Vec<(Instant, SocketAddr)> = Vec::new();
            let mut timeout = TIMEOUT;
            while !over.load(Ordering::Relaxed) {
                let number = answers.len() as u64;
                if let Some((_, peer)) = answers.last() {
                    server.send_to(&number.to_be_bytes(), peer).unwrap();
                }
                server.set_read_timeout(Some(timeout)).unwrap();
                let mut bytes = [0; 8];
                timeout = match server.recv_from(&mut bytes) {
                    Ok((_, from)) if u64::from_be_bytes(bytes) == number => {
                        answers.push((Instant::now(), from));
                        TIMEOUT
                    }
                    Ok(_) => timeout,
                    Err(_) => timeout * 2,
                };
            }
            answers
        });
        let begin = Instant::now() + Duration::from_secs(1);
        let up = outage(&bed, begin, Duration::from_secs(6), Told::Nothing, || {});
        thread::sleep(Duration::from_secs(8));
        over.store(true, Ordering::Relaxed);
        let answers = answers.join().unwrap();
        let before = answers.iter().rfind(|(at, _)| *at < up).expect("an answer before");
        let (first, from) = answers.iter().find(|(at, _)| *at > up)?;
        assert_ne!(from, &before.1, "a new binding");
        Some(Wait { length: *first - up, allowance: lateness::allowance(up) })
    })
}

#[test]
fn wake_revives_an_exchange_whose_nat_binding_is_lost_in_an_outage() {
    if !possible() {
        return;
    }
    let without = dead_time_behind_nat(None);
    assert!(without.is_none(), "nobody can reach the mobile: {without:?}");
    let woken = dead_time_behind_nat(Some("wake"));
    assert!(woken.is_some_and(|dead| dead.is_within(WAKE_UNTOLD)), "{woken:?}");
}

#[test]
fn wake_serves_udp_as_it_serves_tcp() {
    if !possible() {
        return;
    }
    let without = dead_time(None, Told::Nothing);
    assert!(without.length > Duration::from_millis(500), "the sender waits: {without:?}");
    let told = dead_time(Some("wake"), Told::Timely);
    assert!(told.is_within(WAKE_TOLD), "{told:?}");
    let untold = dead_time(Some("wake"), Told::Nothing);
    assert!(untold.is_within(WAKE_UNTOLD), "{untold:?}");
}
