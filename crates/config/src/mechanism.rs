//! The edge mechanisms in configuration files: keys that scenarios and the gateway share, and what they mean.

use crate::Section;
use crate::schema::Kind;
use airtcp_core::{Bytes, Duration};
use airtcp_edge::{
    HoldoverConfig, MTcpConfig, MTcpPlusConfig, MechanismConfig, Resume, Retransmit, SnoopConfig,
};

/// `retransmit`.
pub const RETRANSMIT: Kind = Kind::Choice(&[("head", "the first copy"), ("all", "all copies")]);

/// `nudge`: an interval that does not keep the air busy.
pub const NUDGE: Kind =
    Kind::WordOr("never", &Kind::Duration { min: Duration::from_millis(100), max: Duration::MAX });

/// Reads the settings of the mechanism `name` from the section that has its keys; `fifo` reads how much one
/// connection may hold. `None` for an unknown name, `Some(None)` for wrong settings.
pub fn mechanism(
    section: &Section<'_>,
    name: &str,
    fifo: impl FnOnce() -> Option<Bytes>,
) -> Option<Option<MechanismConfig>> {
    Some(match name {
        "packet-control" => {
            section.get("threshold").map(|threshold| MechanismConfig::PacketControl { threshold })
        }
        "m-tcp" => m_tcp(section, fifo()).map(MechanismConfig::MTcp),
        "m-tcp-plus" => m_tcp_plus(section, fifo()).map(MechanismConfig::MTcpPlus),
        "holdover" => holdover(section, fifo()).map(MechanismConfig::Holdover),
        "snoop" => snoop(section, fifo()).map(MechanismConfig::Snoop),
        _ => return None,
    })
}

fn m_tcp(section: &Section<'_>, fifo: Option<Bytes>) -> Option<MTcpConfig> {
    let (timer, release) = (section.get("timer"), section.get("release"));
    let max_down = section.get("max-down");
    let retransmit = match section.get::<&str>("retransmit")? {
        "all" => Retransmit::All,
        _ => Retransmit::Head,
    };
    Some(MTcpConfig {
        timer: timer?,
        retransmit,
        release: release?,
        fifo: fifo?,
        max_down: max_down?,
    })
}

fn m_tcp_plus(section: &Section<'_>, fifo: Option<Bytes>) -> Option<MTcpPlusConfig> {
    let (max_down, nudge) = (section.get("max-down"), section.get("nudge"));
    Some(MTcpPlusConfig { fifo: fifo?, resume: Resume::Flush, max_down: max_down?, nudge: nudge? })
}

fn holdover(section: &Section<'_>, fifo: Option<Bytes>) -> Option<HoldoverConfig> {
    let (max_down, nudge) = (section.get("max-down"), section.get("nudge"));
    Some(HoldoverConfig { fifo: fifo?, max_down: max_down?, nudge: nudge? })
}

fn snoop(section: &Section<'_>, fifo: Option<Bytes>) -> Option<SnoopConfig> {
    let (min_timeout, attempts) = (section.get("min-timeout"), section.get("attempts"));
    Some(SnoopConfig { fifo: fifo?, min_timeout: min_timeout?, attempts: attempts? })
}
