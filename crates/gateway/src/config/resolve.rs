//! From the file's tables to the model, and what only shows when several keys are seen together.

use super::Mode;
use super::schema;
use super::{
    AgentConfig, CopyMode, DataPath, FastPathMode, GatewayConfig, Group, InterfacePattern, Limits,
    Members, NfqueueConfig, PlannedOutage, Signals, uplink_name,
};
use airtcp_config::{ConfigError, Moment, Section, read};
use airtcp_core::Duration;
use airtcp_edge::{InterfaceName, MechanismConfig, MobileId};
use airtcp_settings::{Name, Settings};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// The longest path of a Unix socket (`sockaddr_un`, unix(7)), without the zero at its end.
const LONGEST_SOCKET_PATH: usize = 107;

/// Reads the gateway's file; see [`GatewayConfig::parse`].
pub(super) fn parse(source_name: &str, text: &str) -> Result<GatewayConfig, ConfigError> {
    read(&schema::GATEWAY, source_name, text, &[], gateway)
}

fn gateway(top: &Section<'_>) -> Option<GatewayConfig> {
    let (state, control) = (path(top, "state"), path(top, "control"));
    if let Some(Some(control)) = &control
        && control.as_os_str().len() > LONGEST_SOCKET_PATH
    {
        let message = format!("too long for a socket, {} B", control.as_os_str().len());
        let expected = format!("at most {LONGEST_SOCKET_PATH} B");
        top.push(top.problem("control", message).expected(expected));
    }
    let record = path(top, "record");
    let nfqueue = NfqueueConfig::read(&top.merged("nfqueue"), None);
    let (mode, data_path) = (top.get("mode"), top.get("data-path"));
    let mark = top.get::<Name>("mark").and_then(|text| top.parse("mark", &text, str::parse));
    let limits = Limits::read(&top.merged("limits"), None);
    let (mobiles, uplinks) = (top.elements("mobile"), top.elements("uplink"));
    if mobiles.is_empty() && uplinks.is_empty() && top.problems_found() == 0 {
        let expected = "at least one [[mobile]] or [[uplink]] table";
        top.push(top.problem("mobile", "missing").expected(expected));
    }
    let mut groups = groups(&mobiles, limits);
    add_uplinks(&mut groups, &uplinks, limits);
    refuse_data_path(top, mode, data_path, &groups);
    let signals = signals(&top.merged("signals"), &groups);
    let metrics = top.chosen("metrics").map(|metrics| listen(&metrics));
    Some(GatewayConfig {
        nfqueue: nfqueue?,
        mode: mode?,
        data_path: data_path?,
        mark: mark?,
        state: state??,
        control: control??,
        limits: limits?,
        groups,
        signals: signals?,
        metrics: match metrics {
            Some(listen) => Some(listen?),
            None => None,
        },
        record: record?,
    })
}

/// Refuses a path that no group uses, and one that cannot serve a group.
fn refuse_data_path(
    top: &Section<'_>,
    mode: Option<Mode>,
    data_path: Option<DataPath>,
    groups: &[Group],
) {
    let (Some(mode), Some(data_path)) = (mode, data_path) else { return };
    // If groups could not be read, the complaint may be wrong.
    if data_path == DataPath::Auto || top.problems_found() > 0 {
        return;
    }
    let is_copied = |group: &&Group| mode == Mode::Observe || group.is_mirrored();
    let refuse = |message: String, expected: &str| {
        top.push(top.problem("data-path", message).expected(expected));
    };
    if !groups.iter().any(|group| is_copied(&group)) {
        refuse(
            "no packets are copied".to_owned(),
            "a group with `wake`, or with `fast-path = \"auto\"`",
        );
    }
    let is_unserved = |group: &&Group| is_copied(group) && !group.is_served_by_tc(mode);
    if data_path == DataPath::Tc
        && let Some(group) = groups.iter().find(is_unserved)
    {
        let message = format!("tc cannot copy packets for {}", group.name);
        refuse(message, "`wake` for uplinks, and `mode = \"protect\"`");
    }
}

/// The path under `key`, `Some(None)` when there is none; `None` when it is wrong.
fn path(section: &Section<'_>, key: &str) -> Option<Option<PathBuf>> {
    let Some(text) = section.get::<Option<Name>>(key)? else { return Some(None) };
    let path = section.parse(key, &text, |text| match PathBuf::from(text) {
        _ if text.contains('\0') => Err("has a zero byte".to_owned()),
        path if path.is_absolute() => Ok(path),
        _ => Err("is not an absolute path".to_owned()),
    });
    path.map(Some)
}

fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    let text = section.get::<Name>("listen")?;
    section.parse("listen", &text, socket_address)
}

fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let too_high = || {
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u64>().ok());
        port.is_some_and(|port| port > u16::MAX.into())
    };
    Err(match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => return Ok(address),
        Ok(_) => "has port 0",
        Err(_) if text.parse::<IpAddr>().is_ok() => "has no port",
        Err(_) if too_high() => "has a port above 65535",
        Err(_) => "is not an address and a port",
    }
    .to_owned())
}

/// A prefix that belongs to a group already.
struct Taken {
    prefix: IpNet,
    group: String,
    interfaces: Vec<InterfacePattern>,
}

fn groups(sections: &[Section<'_>], limits: Option<Limits>) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut names = BTreeSet::new();
    let mut taken: Vec<Taken> = Vec::new();
    for section in sections {
        let name = section.get::<Name>("name").map(|name| name.text);
        let interfaces = interfaces(section);
        let addresses = addresses(section);
        let treatment = treatment(section, limits);
        let (Some(name), Some(interfaces)) = (name, interfaces) else { continue };
        if !names.insert(name.clone()) {
            let problem = section.problem("name", format!("a second group {name:?}"));
            section.push(problem.expected("a unique name for each group"));
        }
        let Some(addresses) = addresses else { continue };
        for (text, prefix) in &addresses {
            claim(section, text, *prefix, &name, &interfaces, &mut taken);
        }
        let Some((mechanism, copy, fast_path)) = treatment else { continue };
        let addresses = addresses.into_iter().map(|(_, prefix)| prefix).collect();
        let members = Members::Mobiles { addresses, interfaces };
        groups.push(Group { name, members, mechanism, copy, fast_path });
    }
    groups
}

fn add_uplinks(groups: &mut Vec<Group>, sections: &[Section<'_>], limits: Option<Limits>) {
    for section in sections {
        let interface = section
            .get::<Name>("interface")
            .and_then(|text| section.parse("interface", &text, uplink));
        let treatment = treatment(section, limits);
        let Some(interface) = interface else { continue };
        let refuse = |message: String, expected: &str| {
            section.push(section.problem("interface", message).expected(expected));
        };
        for group in groups.iter() {
            if group.uplink() == Some(interface) {
                refuse(format!("a second uplink {interface}"), "each interface once");
            }
            if group.is_behind(interface.as_str()) {
                let message = format!("mobile.{} is behind {interface}", group.name);
                refuse(message, "mobiles behind one interface, the network behind another");
            }
        }
        let Some((mechanism, copy, fast_path)) = treatment else { continue };
        let (name, members) = (uplink_name(interface), Members::Uplink(interface));
        groups.push(Group { name, members, mechanism, copy, fast_path });
    }
}

fn uplink(text: &str) -> Result<InterfaceName, String> {
    match text.parse::<InterfaceName>() {
        Ok(_) if text == "lo" => Err("leads to this host itself".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Notes that a group has a prefix, and refuses one that could never count, or stands for
/// everybody.
fn claim(
    section: &Section<'_>,
    text: &Name,
    prefix: IpNet,
    group: &str,
    interfaces: &[InterfacePattern],
    taken: &mut Vec<Taken>,
) {
    if prefix.prefix_len() == 0 && interfaces.is_empty() {
        let message = format!("{prefix} is every address, of fixed hosts too");
        let problem = section.problem_at(text.spot, "addresses", message);
        section
            .push(problem.expected("the mobiles' addresses, or interfaces behind which they are"));
    }
    let covers = |earlier: &&Taken| {
        let all = earlier.interfaces.is_empty();
        let behind = !interfaces.is_empty()
            && interfaces.iter().all(|own| earlier.interfaces.iter().any(|its| its.covers(own)));
        earlier.prefix.contains(&prefix) && (all || behind)
    };
    if let Some(earlier) = taken.iter().find(covers) {
        let message =
            format!("{prefix} is in {} of mobile.{} already", earlier.prefix, earlier.group);
        let problem = section.problem_at(text.spot, "addresses", message);
        section.push(problem.expected("each address once; an exception before the rule"));
        return;
    }
    let (group, interfaces) = (group.to_owned(), interfaces.to_vec());
    taken.push(Taken { prefix, group, interfaces });
}

fn interfaces(section: &Section<'_>) -> Option<Vec<InterfacePattern>> {
    let names = section.get::<Option<Vec<Name>>>("interfaces")?.unwrap_or_default();
    let read = |name: &Name| {
        section.parse("interfaces", name, |text| {
            text.parse::<InterfacePattern>().map_err(|error| error.to_string())
        })
    };
    names.iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn addresses(section: &Section<'_>) -> Option<Vec<(Name, IpNet)>> {
    let texts = section.get::<Vec<Name>>("addresses")?;
    let read = |text: Name| {
        let prefix = section.parse("addresses", &text, |text| {
            let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
            let prefix = text.parse::<IpNet>().ok().or_else(address);
            prefix.ok_or_else(|| "is not a prefix or an address".to_owned())
        })?;
        if prefix.trunc() != prefix {
            let message = format!("{prefix} has bits set behind the prefix");
            let problem = section.problem_at(text.spot, "addresses", message);
            section.push(problem.suggest(prefix.trunc().to_string()));
            return None;
        }
        Some((text, prefix))
    };
    texts.into_iter().map(read).collect::<Vec<_>>().into_iter().collect()
}

/// The mechanism of a group, with its copies and its path.
fn treatment(
    section: &Section<'_>,
    limits: Option<Limits>,
) -> Option<(MechanismConfig, CopyMode, FastPathMode)> {
    let mechanism = MechanismConfig::read(section, None);
    let (copy, fast_path) = (section.get("copy"), section.get("fast-path"));
    if let (Some(fifo), Some(Limits { memory, .. })) = (mechanism?.capabilities().fifo, limits)
        && fifo > memory
    {
        let message = format!("{fifo} for one connection is more than the {memory} for all");
        section.push(section.problem("fifo", message).expected("at most limits.memory"));
    }
    Some((mechanism?, copy?, fast_path?))
}

fn signals(section: &Section<'_>, groups: &[Group]) -> Option<Signals> {
    let carrier = section.get::<bool>("carrier");
    let neighbour = section.get("neighbour");
    let modems = modems(section, groups);
    let silence = section.get("silence");
    let agent = section.chosen("agent").map(|agent| {
        let (listen, keys) = (listen(&agent), path(&agent, "keys"));
        Some(AgentConfig { listen: listen?, keys: keys?? })
    });
    let timetable: Vec<Option<PlannedOutage>> =
        section.elements("planned").iter().map(|outage| planned(outage, groups)).collect();
    // If groups could not be read, this complaint would be wrong.
    let whole = section.problems_found() == 0;
    let has_place = |group: &Group| !group.interfaces().is_empty() || group.uplink().is_some();
    if carrier == Some(true) && whole && !groups.iter().any(has_place) {
        let problem = section.problem("carrier", "no group says behind which interface it is");
        section.push(problem.expected("interfaces in a [[mobile]]"));
    }
    let (modem_manager, fading_below) = modems?;
    Some(Signals {
        agent: match agent {
            Some(agent) => Some(agent?),
            None => None,
        },
        carrier: carrier?,
        neighbour: neighbour?,
        modem_manager,
        fading_below,
        timetable: timetable.into_iter().collect::<Option<_>>()?,
        silence: silence?,
    })
}

/// `modem-manager`, and the signal level below which uplinks fade.
fn modems(section: &Section<'_>, groups: &[Group]) -> Option<(bool, Option<u8>)> {
    let wanted = section.get::<bool>("modem-manager");
    let level = section.get::<Option<Name>>("fading-below")?;
    let has_uplinks = groups.iter().any(|group| group.uplink().is_some());
    let fading_below = match &level {
        Some(text) => Some(section.parse("fading-below", text, percentage)?),
        None => None,
    };
    // If groups could not be read, the complaint about uplinks would be wrong.
    if fading_below.is_some() && !has_uplinks && section.problems_found() == 0 {
        let problem = section.problem("fading-below", "there is no uplink");
        section.push(problem.expected("an [[uplink]]"));
    }
    Some((wanted? && has_uplinks, fading_below))
}

fn percentage(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<u32>().ok());
    match number.map(u8::try_from) {
        Some(Ok(percent @ 1..=100)) => Ok(percent),
        Some(_) => Err("is out of range".to_owned()),
        None => Err("is not a percentage".to_owned()),
    }
}

/// The mobile or the uplink that is named.
fn of_whom(section: &Section<'_>) -> Option<MobileId> {
    let mobile = section.get::<Option<Name>>("mobile")?;
    let interface = section.get::<Option<Name>>("uplink")?;
    match (mobile, interface) {
        (Some(text), None) => {
            let read = |text: &str| text.parse().map_err(|_| "is not an IP address".to_owned());
            section.parse("mobile", &text, read).map(MobileId::Host)
        }
        (None, Some(text)) => section.parse("uplink", &text, uplink).map(MobileId::Uplink),
        (None, None) => {
            section.push(section.problem("mobile", "missing").expected("`mobile` or `uplink`"));
            None
        }
        (Some(_), Some(_)) => {
            let problem = section.problem("uplink", "there is a `mobile` too");
            section.push(problem.expected("one of them"));
            None
        }
    }
}

fn planned(section: &Section<'_>, groups: &[Group]) -> Option<PlannedOutage> {
    let mobile = of_whom(section);
    let begin = section.get::<Moment>("begin");
    let length = section.get::<Duration>("length");
    let every = section.get::<Option<Duration>>("every");
    let lead = section.get::<Duration>("lead");
    let (mobile, Moment(begin)) = (mobile?, begin?);
    let (length, every, lead) = (length?, every?, lead?);
    if section.problems_found() == 0 && !groups.iter().any(|group| group.has(mobile)) {
        let (problem, expected) = match mobile {
            MobileId::Host(_) => (
                section.problem("mobile", format!("{mobile} is in no group")),
                "an address of a [[mobile]]",
            ),
            MobileId::Uplink(_) => (
                section.problem("uplink", format!("there is no uplink {mobile}")),
                "the interface of an [[uplink]]",
            ),
        };
        section.push(problem.expected(expected));
    }
    if let Some(every) = every
        && every <= length + lead
    {
        let message = format!("comes again after {every}, before it is over");
        let expected = "more than `length` and `lead` together";
        section.push(section.problem("every", message).expected(expected));
    }
    Some(PlannedOutage { mobile, begin, length, every, lead })
}
