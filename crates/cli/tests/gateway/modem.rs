//! Uplinks whose modem ModemManager has.

use crate::control::Gateway;
use crate::host::Host;
use crate::modem_manager::{Bus, CONNECTED, ModemManager, REGISTERED, SEARCHING};
use crate::outages::WAKE_TOLD;
use crate::testbed::{LINK, Place, Plan, Testbed, possible};
use crate::transfer::Load;
use std::thread;
use std::time::{Duration, Instant};

/// Uploaded around the outage.
const SIZE: u64 = 8_000_000;

/// Waits until the gateway takes wwan0 to be as `signal` says.
fn expect(gateway: &Gateway, signal: &str) {
    let now = |away: Option<&String>| away.map_or("up", String::as_str) == signal;
    gateway.wait_until(|status| now(status.away.get("wwan0")));
}

/// Waits until the gateway has said something for so many times.
fn expect_told(gateway: &Gateway, line: &str, times: usize) {
    gateway.wait_until(|_| gateway.log().matches(line).count() == times);
}

const NOT_FOLLOWED: &str = "cannot follow ModemManager: ";
const ABSENT: &str = "ModemManager is not running";
const FOLLOWED: &str = "subscribed to ModemManager";

#[test]
fn modem_manager_is_followed_whatever_becomes_of_it() {
    let Some(mut bus) = possible().then(Bus::prepare).flatten() else { return };
    let (host, folder) = (Host::new("gateway"), tempfile::tempdir_in("/dev/shm").unwrap());
    let uplink = "[signals]\nfading-below = \"20 %\"\n[[uplink]]\ninterface = \"wwan0\"\n";
    let gateway = Gateway::start(&host, uplink, folder.path(), &[bus.environment()]);
    expect_told(&gateway, NOT_FOLLOWED, 1);
    bus.run();
    expect_told(&gateway, ABSENT, 1);
    let manager = ModemManager::start(&bus);
    manager.add(0, "wwan1", SEARCHING);
    manager.add(1, "wwan0", SEARCHING);
    expect(&gateway, "down");
    for (state, signal) in [(CONNECTED, "up"), (REGISTERED, "down"), (CONNECTED, "up")] {
        manager.set_state(1, state);
        expect(&gateway, signal);
    }
    // Not ModemManager's word: what it says itself is asked for, and there is no further "down".
    bus.forge(1, SEARCHING);
    for (quality, signal) in [(10, "fading"), (60, "up"), (10, "fading")] {
        manager.set_quality(1, quality);
        expect(&gateway, signal);
    }
    manager.remove(1);
    expect(&gateway, "up");
    manager.add(2, "wwan0", SEARCHING);
    expect(&gateway, "down");
    // Neither a ModemManager nor a bus that has gone leaves a report behind.
    drop(manager);
    expect(&gateway, "up");
    expect_told(&gateway, ABSENT, 2);
    let manager = ModemManager::start(&bus);
    manager.add(0, "wwan0", SEARCHING);
    expect(&gateway, "down");
    bus.end();
    expect(&gateway, "up");
    expect_told(&gateway, NOT_FOLLOWED, 2);
    bus.run();
    expect_told(&gateway, ABSENT, 3);
    let manager = ModemManager::start(&bus);
    manager.add(0, "wwan0", SEARCHING);
    expect(&gateway, "down");
    expect_told(&gateway, FOLLOWED, 3);
    let told = &gateway.status().signals["modem-manager"];
    assert_eq!((told["down"], told["fading"]), (5, 2), "{told:?}");
}

#[test]
fn an_upload_resumes_after_an_outage_that_only_the_modem_tells_of() {
    let Some(bus) = possible().then(Bus::start).flatten() else { return };
    let manager = ModemManager::start(&bus);
    manager.add(0, LINK, CONNECTED);
    let environment = vec![bus.environment()];
    let plan = Plan { environment, place: Place::OnBoard, ..Plan::with("\"wake\"") };
    let bed = Testbed::new(&plan);
    let transfer = bed.upload(&Load::of(SIZE));
    transfer.wait_for(SIZE / 4);
    bed.link(false);
    manager.set_state(0, SEARCHING);
    let down = bed.daemon().wait_until(|status| status.away.contains_key(LINK));
    assert_eq!(down.signals["modem-manager"]["down"], 1, "{down:?}");
    thread::sleep(Duration::from_secs(4));
    bed.link(true);
    manager.set_state(0, CONNECTED);
    let up = Instant::now();
    let dead = transfer.dead_time(up, Duration::from_secs(60));
    println!("{dead:?}");
    assert!(dead.is_some_and(|dead| dead.is_within(WAKE_TOLD)), "{dead:?}");
    assert_eq!(transfer.finish(), SIZE);
    assert_eq!(bed.daemon().status().signals["modem-manager"]["up"], 2, "at first, and at last");
}
