//! UDP through an outage: a sender that waits for each answer, and twice as long after each attempt
//! without one, as QUIC's does (RFC 9002 §6.2).

use crate::lateness::{self, Wait};
use crate::outages::{Told, WAKE_TOLD, WAKE_UNTOLD, outage};
use crate::testbed::{Plan, Testbed, possible};
use std::net::UdpSocket;
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
