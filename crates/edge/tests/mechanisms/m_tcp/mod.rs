//! M-TCP from outside: every event of its tables, and the hazards of live traffic.

mod live;
mod properties;
mod rules;
mod signal;

use crate::script_in_words::Script;
use airtcp_core::Length;
use airtcp_edge::{FlowTableConfig, MTcp, MTcpConfig};

type MTcpScript = Script<MTcp<Length>>;

fn machine(config: MTcpConfig) -> MTcp<Length> {
    MTcp::new(config, FlowTableConfig::default(), 1 << 20)
}

/// Default settings; the handshake's last ACK went by.
fn open(isn: u32) -> MTcpScript {
    Script::open(machine(MTcpConfig::default()), isn)
}

/// The fixed host sent 0:1000, 1000:2000 and 2000:3000 at time 0, and the mobile acknowledged the
/// first at once.
fn flowing(isn: u32) -> MTcpScript {
    let mut s = open(isn);
    for seq in [0, 1000, 2000] {
        assert_eq!(s.data(seq, 1000), ["pass"]);
    }
    assert_eq!(s.ack(1000), ["drop", "to fixed: ack 999 win 500"]);
    s
}

/// [`flowing`], then an outage that began at time 0, as M-TCP finds out at 400 ms.
fn shrunk(isn: u32) -> MTcpScript {
    let mut s = flowing(isn);
    assert_eq!(
        s.until(400),
        ["400 to fixed: ack 1000 win 0", "400 to mobile: 1000:2000", "400 to mobile: 2000:3000"]
    );
    s
}
