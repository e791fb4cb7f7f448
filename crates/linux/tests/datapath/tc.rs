//! Programs of tc: which interfaces have them, and what is left of them.

use super::*;
use airtcp_edge::WakeConfig;
use airtcp_gateway::config::FastPathMode;
use airtcp_linux::datapath::mirror::{Mirror, MirrorPath};
use std::sync::mpsc;

/// Wake for mobiles behind these interfaces; none: any.
fn waking(interfaces: &[&str]) -> GatewayConfig {
    let mut config = always();
    config.data_path = DataPath::Tc;
    config.groups[0].mechanism = MechanismConfig::Wake(WakeConfig::default());
    config.groups[0].fast_path = FastPathMode::Auto;
    if let Members::Mobiles { interfaces: own, .. } = &mut config.groups[0].members {
        *own = interfaces.iter().map(|name| name.parse().unwrap()).collect();
    }
    config
}

/// Runs `steps` while the programs are attached in the gateway's namespace and follow its
/// interfaces; then they are dropped. False, with a note, if tc's programs cannot be loaded.
fn while_attached(net: &Net, config: GatewayConfig, steps: impl FnOnce()) -> bool {
    let ((ready, is_ready), (done, is_done)) = (mpsc::channel(), mpsc::channel::<()>());
    let thread = net.run("g", move || {
        let mut mirror = Mirror::default();
        let (config, prepared) = match mirror.prepare(config) {
            Ok(prepared) => prepared,
            Err(error) => return airtcp_testing::skip(&format!("programs of tc: {error}")),
        };
        mirror.commit(&config, prepared);
        assert_eq!(mirror.program().unwrap().path(), MirrorPath::Tc);
        ready.send(()).unwrap();
        while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
            mirror.follow();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let is_possible = is_ready.recv().is_ok();
    if is_possible {
        steps();
    }
    drop(done);
    thread.join().unwrap();
    is_possible
}

/// The filters of an interface, both sides.
fn filters(net: &Net, interface: &str) -> String {
    net.sh(
        "g",
        &format!("tc filter show dev {interface} ingress; tc filter show dev {interface} egress"),
    )
}

fn is_attached(net: &Net, interface: &str) -> bool {
    let listed = filters(net, interface);
    listed.contains("mirror_ingress") && listed.contains("mirror_egress")
}

/// Waits until it is so.
fn expect(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_and_what_others_have_attached_stays() {
    if !possible() {
        return;
    }
    let net = Net::new();
    net.sh(
        "g",
        "tc qdisc add dev fixed clsact
                 tc filter add dev fixed egress pref 7 protocol ip u32 match u32 0 0 classid 1:1",
    );
    let before = filters(&net, "fixed");
    let attached = while_attached(&net, waking(&[]), || {
        assert!(is_attached(&net, "fixed") && is_attached(&net, "mobile"));
    });
    if attached {
        assert_eq!(filters(&net, "fixed"), before);
        assert!(!net.sh("g", "tc qdisc show dev mobile").contains("clsact"));
        assert!(net.sh("g", "tc qdisc show dev fixed").contains("clsact"));
    }
}

#[test]
fn only_interfaces_with_mobiles_have_programs_and_new_ones_get_them() {
    if !possible() {
        return;
    }
    let net = Net::new();
    while_attached(&net, waking(&["mobile", "new*"]), || {
        assert!(is_attached(&net, "mobile") && !is_attached(&net, "fixed"));
        net.sh("g", "ip link add new7 type veth peer name end7; ip link add br7 type bridge");
        expect("a new interface", || is_attached(&net, "new7"));
        // Behind a bridge of another name are no mobiles.
        net.sh("g", "ip link set new7 master br7");
        expect("a port", || !is_attached(&net, "new7"));
        net.sh("g", "ip link del new7");
    });
}

#[test]
fn what_somebody_removes_is_restored() {
    if !possible() {
        return;
    }
    let net = Net::new();
    while_attached(&net, waking(&[]), || {
        for removed in ["tc qdisc del dev mobile clsact", "tc filter del dev mobile egress"] {
            net.sh("g", removed);
            expect(removed, || is_attached(&net, "mobile"));
        }
    });
}

#[test]
fn an_interface_with_the_older_qdisc_is_named() {
    if !possible() {
        return;
    }
    let net = Net::new();
    net.sh("g", "tc qdisc add dev mobile ingress");
    let config = waking(&["mobile"]);
    let refused = net.run("g", move || {
        let mirror = Mirror::default();
        mirror.prepare(config).map(drop).map_err(|error| error.to_string())
    });
    let Err(error) = refused.join().unwrap() else { panic!("it was not refused") };
    assert!(error.contains("mobile") && error.contains("`ingress`"), "{error}");
}
