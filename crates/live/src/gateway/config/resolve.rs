//! From the file's tables to the model, and what only shows when several keys are seen together.

use super::schema;
use super::{
    AgentConfig, CopyMode, FastPathMode, GatewayConfig, Group, Limits, NfqueueConfig,
    PlannedOutage, Signals,
};
use airtcp_config::{ConfigError, Moment, Section, read};
use airtcp_core::Duration;
use airtcp_edge::MechanismConfig;
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
    let limits = Limits::read(&top.merged("limits"), None);
    let groups = groups(&top.elements("mobile"), limits);
    let signals = signals(&top.merged("signals"), &groups);
    let metrics = top.chosen("metrics").map(|metrics| listen(&metrics));
    Some(GatewayConfig {
        nfqueue: nfqueue?,
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
    interfaces: Vec<String>,
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
        groups.push(Group { name, addresses, interfaces, mechanism, copy, fast_path });
    }
    groups
}

/// Notes that a group has a prefix, and refuses one that could never count, or stands for
/// everybody.
fn claim(
    section: &Section<'_>,
    text: &Name,
    prefix: IpNet,
    group: &str,
    interfaces: &[String],
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
            && interfaces.iter().all(|interface| earlier.interfaces.contains(interface));
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

fn interfaces(section: &Section<'_>) -> Option<Vec<String>> {
    let names = section.get::<Option<Vec<Name>>>("interfaces")?.unwrap_or_default();
    let read = |name: &Name| {
        section.parse("interfaces", name, |text| {
            // Some of what the kernel would allow means something else to iptables or nftables.
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let fits = (1..=15).contains(&text.len()) && text.chars().all(allowed);
            let reserved = text == "." || text == ".." || text.starts_with('-');
            let is_name = fits && !reserved;
            is_name.then(|| text.to_owned()).ok_or_else(|| "is not an interface".to_owned())
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

/// What is done for a group, when and where.
fn treatment(
    section: &Section<'_>,
    limits: Option<Limits>,
) -> Option<(MechanismConfig, CopyMode, FastPathMode)> {
    let mechanism = MechanismConfig::read(section, None);
    let (copy, fast_path) = (section.get("copy"), section.get("fast-path"));
    if let (Some(fifo), Some(Limits { memory, .. })) = (mechanism?.fifo(), limits)
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
    let silence = section.get("silence");
    let agent = section.chosen("agent").map(|agent| {
        let (listen, keys) = (listen(&agent), path(&agent, "keys"));
        Some(AgentConfig { listen: listen?, keys: keys?? })
    });
    let timetable: Vec<Option<PlannedOutage>> =
        section.elements("planned").iter().map(|outage| planned(outage, groups)).collect();
    // If groups could not be read, this complaint would be wrong.
    let whole = section.problems_found() == 0;
    if carrier == Some(true) && whole && groups.iter().all(|group| group.interfaces.is_empty()) {
        let problem = section.problem("carrier", "no group says behind which interface it is");
        section.push(problem.expected("interfaces in a [[mobile]]"));
    }
    Some(Signals {
        agent: match agent {
            Some(agent) => Some(agent?),
            None => None,
        },
        carrier: carrier?,
        neighbour: neighbour?,
        timetable: timetable.into_iter().collect::<Option<_>>()?,
        silence: silence?,
    })
}

fn planned(section: &Section<'_>, groups: &[Group]) -> Option<PlannedOutage> {
    let text = section.get::<Name>("mobile");
    let mobile = text.as_ref().and_then(|text| {
        let read = |text: &str| text.parse().map_err(|_| "is not an IP address".to_owned());
        section.parse("mobile", text, read)
    });
    let begin = section.get::<Moment>("begin");
    let length = section.get::<Duration>("length");
    let every = section.get::<Option<Duration>>("every");
    let lead = section.get::<Duration>("lead");
    let (mobile, Moment(begin)) = (mobile?, begin?);
    let (length, every, lead) = (length?, every?, lead?);
    let in_a_group =
        groups.iter().flat_map(|group| &group.addresses).any(|prefix| prefix.contains(&mobile));
    if section.problems_found() == 0 && !in_a_group {
        let problem = section.problem("mobile", format!("{mobile} is in no group"));
        section.push(problem.expected("an address of a [[mobile]]"));
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
