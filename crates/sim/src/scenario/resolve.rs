//! From the tree to the model: names become indices, groups are expanded, layers merged, and what only
//! shows when several keys are seen together is checked.

use super::model::{
    CbrSpec, EmulatedDirection, EmulatedLink, FlowSpec, Link, MiddleboxSpec, Node, NodeId,
    NodeOutage, OnOff, OutageLayer, Scenario, SignalSpec,
};
use super::schema::{self, MAX_ELEMENTS, MAX_MSS, RECEIVER, SENDER};
use super::wlan::{radio_outage, wlans};
use airtcp_config::{ConfigError, Name, Override, PacketsOrSize, Section, WordOrSegments, read};
use airtcp_core::{Bytes, DataRate, Duration, Instant};
use airtcp_edge::{MTcpPlusConfig, MechanismConfig, Resume};
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LossConfig, LossPlace, OutageConfig, OutageMode,
    QueueConfig, QueueLimit, Schedule, Variation,
};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{
    AckConfig, Congestion, InitialWindow, LinkReaction, LossWindow, NewRenoConfig, PersistConfig,
    PersistOnShrink, Recovery, RouteConfig, RtoConfig, RtoPolicyConfig, SackPipe,
    SpuriousDetection,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Reads a scenario; see [`Scenario::parse`].
pub(super) fn parse(
    source_name: &str,
    text: &str,
    overrides: &[(String, String)],
) -> Result<Scenario, ConfigError> {
    let set = |(path, value): &(String, String)| Override {
        option: "--set".to_owned(),
        path: path.clone(),
        value: value.clone(),
    };
    let overrides: Vec<Override> = overrides.iter().map(set).collect();
    read(&schema::SCENARIO, source_name, text, &overrides, |top| scenario(top, source_name))
}

/// Reads an emulated link; see [`EmulatedLink::parse`].
pub(super) fn parse_link(
    source_name: &str,
    text: &str,
    overrides: &[Override],
) -> Result<EmulatedLink, ConfigError> {
    read(&schema::EMULATED_LINK, source_name, text, overrides, |top| {
        let up = emulated_direction(&top.overridden_by(top, "up"));
        let down = emulated_direction(&top.overridden_by(top, "down"));
        Some(EmulatedLink { up: up?, down: down? })
    })
}

fn emulated_direction(section: &Section<'_>) -> Option<EmulatedDirection> {
    let config = link_config(section);
    let trace = section.get::<Option<Name>>("trace")?;
    Some(EmulatedDirection { config: config?, trace: trace.map(|path| path.text) })
}

/// `name` of the file without folder and ending, made a name.
fn stem(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().take(64).map(fit).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}

fn scenario(top: &Section<'_>, source_name: &str) -> Option<Scenario> {
    let name = top.get::<Option<Name>>("name");
    let duration = top.get::<Duration>("duration");
    let node_sections = top.elements("node");
    let (nodes, names, positions) = nodes(&node_sections);
    let links = links(&top.elements("link"), &nodes, &names);
    let wlans = wlans(&top.elements("wlan"), &nodes, &names, &positions);
    for section in &node_sections {
        let ids = section.get::<Name>("name").and_then(|name| names.get(&name.text).cloned());
        radio_outage(section, &nodes, ids.unwrap_or_default(), &wlans);
    }
    if !top.has("link") && !top.has("wlan") {
        top.push(
            top.problem("link", "missing").expected("at least one [[link]] or [[wlan]] table"),
        );
    }
    if !top.has("flow") && !top.has("cbr") {
        top.push(top.problem("flow", "missing").expected("at least one [[flow]] or [[cbr]] table"));
    }
    let tcp = top.merged("tcp");
    let network = Network { nodes: &nodes, names: &names, duration };
    let flows = flows(&top.elements("flow"), &tcp, &network);
    let cbr = cbr(&top.elements("cbr"), &network);
    fifos(&node_sections, &network, &flows);
    Some(Scenario {
        name: name?.map_or_else(|| stem(source_name), |n| n.text),
        duration: duration?,
        nodes,
        links,
        wlans,
        flows,
        cbr,
    })
}

/// What traffic is resolved against.
struct Network<'a> {
    nodes: &'a [Node],
    names: &'a Names,
    duration: Option<Duration>,
}

/// Groups and single nodes by name.
pub(super) type Names = BTreeMap<String, Range<u32>>;

/// Where each node is, metres, as far as the file says so.
pub(super) type Positions = Vec<Option<(f64, f64)>>;

fn nodes(sections: &[Section<'_>]) -> (Vec<Node>, Names, Positions) {
    let mut nodes = Vec::new();
    let mut positions = Positions::new();
    let mut names = Names::new();
    for section in sections {
        let name = section.get::<Name>("name");
        let count = section.get::<Option<u64>>("count");
        let outage = section.chosen("outage").and_then(|o| node_outage(&o));
        let position = section.get::<Option<(f64, f64)>>("position");
        let spacing = section.get::<Option<(f64, f64)>>("spacing");
        if section.has("spacing") && !(section.has("count") && section.has("position")) {
            let problem = section.problem("spacing", "has no effect without count and position");
            section.push(problem.expected("a group with a position"));
        }
        let (Some(name), Some(count)) = (name, count) else { continue };
        if nodes.len() as u64 + count.unwrap_or(1) > MAX_ELEMENTS {
            let most = format!("at most {MAX_ELEMENTS} nodes");
            section.push(section.problem("count", "makes too many nodes").expected(most));
            continue;
        }
        let first = nodes.len() as u32;
        let members = match count {
            None => vec![name.text.clone()],
            Some(n) => (0..n).map(|i| format!("{}{i}", name.text)).collect(),
        };
        for (id, member) in (first..).zip(members) {
            if names.insert(member.clone(), id..id + 1).is_some() {
                section.push(section.problem("name", format!("a second node {member:?}")));
            }
            nodes.push(Node { name: member, middlebox: None, outage: outage.clone() });
            let (dx, dy) = spacing.flatten().unwrap_or_default();
            let i = f64::from(id - first);
            positions.push(position.flatten().map(|(x, y)| (x + i * dx, y + i * dy)));
        }
        if count.is_some() && names.insert(name.text.clone(), first..nodes.len() as u32).is_some() {
            section.push(section.problem("name", format!("a second node {:?}", name.text)));
        }
    }
    // Mobiles may be named before they are defined.
    for section in sections {
        let Some(spec) = section.chosen("middlebox") else { continue };
        let Some(spec) = middlebox(&spec, &names) else { continue };
        let name = section.get::<Name>("name").and_then(|n| names.get(&n.text).cloned());
        for id in name.into_iter().flatten() {
            if spec.mobiles.contains(&NodeId(id)) {
                section.push(section.problem("middlebox", "a node cannot be its own mobile"));
            }
            nodes[id as usize].middlebox = Some(spec.clone());
        }
    }
    (nodes, names, positions)
}

fn node_outage(section: &Section<'_>) -> Option<NodeOutage> {
    let schedule = schedule(section).filter(|schedule| *schedule != Schedule::Listed(Vec::new()));
    let layer = section.get::<&str>("layer");
    let warning = section.get("warning");
    let layer = match layer? {
        "phy" => OutageLayer::Phy,
        _ => OutageLayer::AboveMac,
    };
    Some(NodeOutage { schedule: schedule?, layer, warning: warning? })
}

pub(super) fn resolve(
    section: &Section<'_>,
    key: &str,
    name: &Name,
    names: &Names,
) -> Option<Range<u32>> {
    let range = names.get(&name.text).cloned();
    if range.is_none() {
        let message = format!("no node is called {:?}", name.text);
        let known = names.keys().map(String::as_str);
        section.push(section.problem_at(name.spot, key, message).nearest(&name.text, known));
    }
    range
}

fn middlebox(section: &Section<'_>, names: &Names) -> Option<MiddleboxSpec> {
    let mechanism = mechanism(section, section.get::<&str>("kind")?)?;
    let mobiles = section.get::<Vec<Name>>("mobiles");
    let signal = signal(section);
    let mobiles = mobiles?;
    let ids: Option<Vec<Range<u32>>> =
        mobiles.iter().map(|name| resolve(section, "mobiles", name, names)).collect();
    let ids: BTreeSet<NodeId> = ids?.into_iter().flatten().map(NodeId).collect();
    let (mechanism, memory) = mechanism?;
    Some(MiddleboxSpec { mechanism, memory, mobiles: ids.into_iter().collect(), signal: signal? })
}

/// With the memory for all connections. `None` for no mechanism, `Some(None)` for a wrong one.
fn mechanism(section: &Section<'_>, kind: &str) -> Option<Option<(MechanismConfig, Bytes)>> {
    let config = match airtcp_config::mechanism::mechanism(section, kind, || section.get("fifo"))? {
        Some(MechanismConfig::MTcpPlus(config)) => resume(section)
            .map(|resume| MechanismConfig::MTcpPlus(MTcpPlusConfig { resume, ..config })),
        config => config,
    };
    // What holds nothing has no key for it.
    let memory = match config {
        Some(config) if config.fifo().is_none() => Some(Bytes(0)),
        _ => section.get("memory"),
    };
    Some(config.and_then(|config| Some((config, memory?))))
}

fn resume(section: &Section<'_>) -> Option<Resume> {
    Some(match section.get::<&str>("resume")? {
        "probe" => Resume::Probe,
        _ => Resume::Flush,
    })
}

/// What a middlebox is told: `None` when that is wrong.
fn signal(section: &Section<'_>) -> Option<Option<SignalSpec>> {
    const LEAD: Duration = Duration::from_millis(50);
    let (late, delay, missing) = (Duration::ZERO, Duration::ZERO, 0.0);
    let Some(table) = section.chosen("signal") else {
        if section.has("signal") {
            // "none", or not a value for it.
            return section.get::<Option<bool>>("signal").map(|_| None);
        }
        return Some(Some(SignalSpec { lead: LEAD, late, delay, missing }));
    };
    let lead = table.get::<Option<Duration>>("lead");
    let late = table.get::<Duration>("late");
    let (delay, missing) = (table.get("delay"), table.get("missing"));
    if table.has("lead") && table.has("late") {
        let problem = table.problem("late", "contradicts lead");
        table.push(problem.expected("either lead or late"));
    }
    let default_lead = if table.has("late") { Duration::ZERO } else { LEAD };
    let lead = lead?.unwrap_or(default_lead);
    Some(Some(SignalSpec { lead, late: late?, delay: delay?, missing: missing? }))
}

/// A FIFO smaller than a segment would never hold a copy.
fn fifos(sections: &[Section<'_>], network: &Network<'_>, flows: &[FlowSpec]) {
    for section in sections {
        let node = section.get::<Name>("name").and_then(|n| network.names.get(&n.text).cloned());
        let spec = node.and_then(|node| network.nodes.get(node.start as usize));
        let Some(spec) = spec.and_then(|node| node.middlebox.as_ref()) else { continue };
        let Some(fifo) = spec.mechanism.fifo() else { continue };
        let to_mobile = flows.iter().filter(|f| spec.mobiles.binary_search(&f.to).is_ok());
        let Some(mss) = to_mobile.map(|flow| u64::from(flow.sender.mss)).max() else { continue };
        if fifo.get() < mss {
            let Some(middlebox) = section.chosen("middlebox") else { continue };
            let message = format!("{fifo} hold no segment of {mss} B");
            let problem = middlebox.problem("fifo", message);
            middlebox.push(problem.expected("at least the largest mss of a flow to a mobile"));
        }
    }
}

/// Pairs of nodes for two names: one with one, one with each of a group, or two groups of one size.
fn pairs(
    section: &Section<'_>,
    key: &str,
    a: Range<u32>,
    b: Range<u32>,
) -> Option<Vec<(NodeId, NodeId)>> {
    let pairs: Vec<(NodeId, NodeId)> = match (a.len(), b.len()) {
        (1, _) => b.map(|b| (NodeId(a.start), NodeId(b))).collect(),
        (_, 1) => a.map(|a| (NodeId(a), NodeId(b.start))).collect(),
        (m, n) if m == n => a.zip(b).map(|(a, b)| (NodeId(a), NodeId(b))).collect(),
        (m, n) => {
            let message = format!("a group of {m} and a group of {n}");
            let expected = "groups of one size, or a single node at one end";
            section.push(section.problem(key, message).expected(expected));
            return None;
        }
    };
    if pairs.iter().any(|(a, b)| a == b) {
        section.push(section.problem(key, "both ends are one node").expected("two nodes"));
        return None;
    }
    Some(pairs)
}

fn links(sections: &[Section<'_>], nodes: &[Node], names: &Names) -> Vec<Link> {
    let mut links = Vec::new();
    let mut linked = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let ends = section.get::<Vec<Name>>("between");
        let forward = link_config(&section.overridden_by(section, "forward"));
        let backward = link_config(&section.overridden_by(section, "backward"));
        let Some(ends) = ends else { continue };
        let label = match name {
            Some(Some(name)) => name.text,
            Some(None) => format!("{}-{}", ends[0].text, ends[1].text),
            None => continue,
        };
        if !taken.insert(label.clone()) {
            let key = if section.has("name") { "name" } else { "between" };
            section.push(section.problem(key, format!("a second link {label:?}")));
            continue;
        }
        let a = resolve(section, "between", &ends[0], names);
        let b = resolve(section, "between", &ends[1], names);
        let (Some(a), Some(b)) = (a, b) else { continue };
        let Some(pairs) = pairs(section, "between", a, b) else { continue };
        let (Some(forward), Some(backward)) = (forward, backward) else { continue };
        for (a, b) in pairs {
            let name_of = |id: NodeId| &nodes[id.0 as usize].name;
            if !linked.insert((a.min(b), a.max(b))) {
                let message = format!("{} and {} are linked already", name_of(a), name_of(b));
                section.push(section.problem("between", message));
                break;
            }
            for (from, to, config) in [(a, b, &forward), (b, a, &backward)] {
                let name = format!("{}>{}", name_of(from), name_of(to));
                links.push(Link { name, from, to, config: config.clone() });
            }
        }
    }
    links
}

fn link_config(section: &Section<'_>) -> Option<LinkConfig> {
    let rate = section.get("rate");
    let delay = delay(section);
    let (loss, loss_place) = match section.chosen("loss") {
        Some(section) => (loss(&section), loss_place(&section)),
        None => (Some(LossConfig::None), Some(LossPlace::Medium)),
    };
    let outage = section.chosen("outage").and_then(|outage| {
        let mode = outage.get::<&str>("mode");
        let schedule = schedule(&outage);
        let mode = match mode? {
            "hold" => OutageMode::Hold,
            _ => OutageMode::Drop,
        };
        Some(OutageConfig { schedule: schedule?, mode })
    });
    let queue = match section.chosen("queue") {
        Some(queue_section) => queue(&queue_section),
        None => queue(&section.merged("queue")),
    };
    Some(LinkConfig {
        rate: rate?,
        delay: delay?,
        loss: loss?,
        loss_place: loss_place?,
        outage,
        queue: queue?,
    })
}

fn delay(section: &Section<'_>) -> Option<DelayConfig> {
    let Some(table) = section.chosen("delay") else {
        return Some(DelayConfig { base: section.get("delay")?, variation: None });
    };
    let base = table.get::<Option<Duration>>("base");
    let from = table.get::<Instant>("from");
    let fifo = table.get::<bool>("fifo");
    let distribution = distribution(&table, true)?;
    let (base, from, fifo) = (base?, from?, fifo?);
    let Some(distribution) = distribution else {
        for key in ["from", "fifo"].into_iter().filter(|key| table.has(key)) {
            let problem = table.problem(key, "has no effect without a distribution");
            table.push(problem.expected("uniform, normal, exponential, constant or mixture"));
        }
        if base.is_none() {
            table.push(table.problem("base", "missing").expected("a base or a distribution"));
        }
        return Some(DelayConfig { base: base?, variation: None });
    };
    if base.is_none() && from > Instant::ZERO {
        let expected = "the delay in force until `from`";
        table.push(table.problem("base", "missing").expected(expected));
    }
    let base = base.unwrap_or_default();
    Some(DelayConfig { base, variation: Some(Variation { from, distribution, fifo }) })
}

/// The distribution among the keys of `table`: `Some(None)` when there is none, `None` when it is wrong.
fn distribution(table: &Section<'_>, mixture: bool) -> Option<Option<Distribution>> {
    const KEYS: [&str; 5] = ["constant", "uniform", "normal", "exponential", "mixture"];
    let keys = &KEYS[..if mixture { 5 } else { 4 }];
    let mut given = keys.iter().copied().filter(|key| table.has(key));
    let Some(key) = given.next() else { return Some(None) };
    if let Some(second) = given.next() {
        let message = format!("a second distribution beside `{key}`");
        table.push(table.problem(second, message).expected("one distribution"));
        return None;
    }
    let distribution = match key {
        "constant" => Distribution::Constant(table.get::<Option<Duration>>(key)??),
        "uniform" => {
            let (low, high) = table.get::<Option<(Duration, Duration)>>(key)??;
            Distribution::Uniform { low, high }
        }
        "normal" => {
            let normal = table.chosen(key)?;
            let (mean, deviation) = (normal.get("mean"), normal.get("deviation"));
            Distribution::Normal { mean: mean?, deviation: deviation? }
        }
        "exponential" => {
            let exponential = table.chosen(key)?;
            let (offset, mean) = (exponential.get("offset"), exponential.get("mean"));
            Distribution::Exponential { offset: offset?, mean: mean? }
        }
        _ => Distribution::Mixture(mixture_parts(table)?),
    };
    Some(Some(distribution))
}

fn mixture_parts(table: &Section<'_>) -> Option<Vec<(f64, Distribution)>> {
    let parts = table.elements("mixture");
    let read = |part: &Section<'_>| {
        let weight = part.get::<f64>("weight");
        let distribution = distribution(part, false)?;
        if distribution.is_none() {
            let expected = "constant, uniform, normal or exponential";
            part.push(part.problem_here("has no distribution").expected(expected));
        }
        Some((weight?, distribution?))
    };
    let read: Vec<Option<(f64, Distribution)>> = parts.iter().map(read).collect();
    if read.is_empty() { None } else { read.into_iter().collect() }
}

fn loss_place(section: &Section<'_>) -> Option<LossPlace> {
    Some(match section.get::<&str>("place")? {
        "before-queue" => LossPlace::BeforeQueue,
        _ => LossPlace::Medium,
    })
}

fn loss(section: &Section<'_>) -> Option<LossConfig> {
    Some(match section.get::<&str>("kind")? {
        "bernoulli" => LossConfig::Bernoulli { p: section.get("p")? },
        "gilbert-elliott" => {
            let [good_to_bad, bad_to_good, loss_good, loss_bad] =
                ["good-to-bad", "bad-to-good", "loss-good", "loss-bad"].map(|key| section.get(key));
            LossConfig::GilbertElliott {
                good_to_bad: good_to_bad?,
                bad_to_good: bad_to_good?,
                loss_good: loss_good?,
                loss_bad: loss_bad?,
            }
        }
        "list" => LossConfig::List(section.get("packets")?),
        _ => LossConfig::None,
    })
}

/// `None` when there is no outage or it is wrong.
fn schedule(section: &Section<'_>) -> Option<Schedule> {
    let listed = section.get::<Option<Vec<(Instant, Instant)>>>("listed");
    let period = section.get::<Option<Duration>>("period");
    let start = section.get::<Duration>("start");
    let end = section.get::<Option<Duration>>("end");
    let origin = section.get::<Instant>("origin");
    if !section.has("period") {
        for key in ["start", "end", "origin"].into_iter().filter(|key| section.has(key)) {
            let problem = section.problem(key, "has no effect without period");
            section.push(problem.expected("period, of which this is a part"));
        }
        if !section.has("listed") {
            let problem = section.problem_here("does not say when");
            section.push(problem.expected("listed = [[start, end], …] or period and end"));
        }
        return listed?.map(Schedule::Listed);
    }
    if section.has("listed") {
        let problem = section.problem("listed", "contradicts period");
        section.push(problem.expected("either listed or period"));
    }
    let (period, start) = (period??, start?);
    let Some(end) = end? else {
        section.push(
            section.problem("end", "missing").expected("the end of the outage in each cycle"),
        );
        return None;
    };
    if !(start < end && end <= period) {
        let message = format!("the outage from {start} to {end} does not fit a cycle of {period}");
        section.push(section.problem("end", message).expected("start < end, end at most period"));
    }
    Some(Schedule::Periodic { origin: origin?, period, start, end })
}

fn queue(section: &Section<'_>) -> Option<QueueConfig> {
    let kind = section.get::<&str>("kind");
    let limit = section.get::<PacketsOrSize>("limit");
    if kind? != "red" {
        return Some(QueueConfig::DropTail { limit: queue_limit(limit?) });
    }
    let [min_threshold, max_threshold, max_p, weight] =
        ["min-threshold", "max-threshold", "max-p", "weight"].map(|key| section.get::<f64>(key));
    let gentle = section.get("gentle");
    let (min_threshold, max_threshold) = (min_threshold?, max_threshold?);
    if min_threshold >= max_threshold {
        let message = format!("{min_threshold} packets is not below max-threshold");
        let expected = format!("less than {max_threshold} packets");
        section.push(section.problem("min-threshold", message).expected(expected));
    }
    let limit = match limit? {
        PacketsOrSize::Packets(n) => n,
        PacketsOrSize::Size(_) => {
            let problem = section.problem("limit", "RED counts packets");
            section.push(problem.expected("packets, such as \"50 packets\""));
            return None;
        }
    };
    Some(QueueConfig::Red {
        min_threshold,
        max_threshold,
        max_p: max_p?,
        weight: weight?,
        gentle: gentle?,
        limit,
    })
}

pub(super) fn queue_limit(limit: PacketsOrSize) -> QueueLimit {
    match limit {
        PacketsOrSize::Packets(n) => QueueLimit::Packets(n),
        PacketsOrSize::Size(size) => QueueLimit::Bytes(size),
    }
}

/// The pairs of nodes between which a flow or a source of cross traffic runs.
fn ends(section: &Section<'_>, network: &Network<'_>) -> Option<Vec<(NodeId, NodeId)>> {
    let (from, to) = (section.get::<Name>("from"), section.get::<Name>("to"));
    let from = from.and_then(|name| resolve(section, "from", &name, network.names));
    let to = to.and_then(|name| resolve(section, "to", &name, network.names));
    pairs(section, "to", from?, to?)
}

fn cbr(sections: &[Section<'_>], network: &Network<'_>) -> Vec<CbrSpec> {
    let mut sources: Vec<CbrSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let rate = section.get::<Option<DataRate>>("rate");
        let size = section.get::<Bytes>("size");
        let start = section.get::<Instant>("start");
        let stop = section.get::<Option<Instant>>("stop");
        let on_off = on_off(section);
        let pairs = ends(section, network);
        let (Some(name), Some(rate), Some(size)) = (name, rate, size) else { continue };
        let (Some(start), Some(stop), Some(on_off)) = (start, stop, on_off) else { continue };
        let Some(pairs) = pairs else { continue };
        if network.duration.is_some_and(|d| start.since_start() >= d) {
            let message = format!("starts at {}, after the end of the run", start.since_start());
            section.push(section.problem("start", message).expected("a start before `duration`"));
        }
        if stop.is_some_and(|stop| stop <= start) {
            let message = format!("not after the start at {}", start.since_start());
            section.push(section.problem("stop", message).expected("a stop after `start`"));
        }
        if rate.is_none() && on_off.is_some() {
            let problem = section.problem("on", "has no effect with rate = \"saturated\"");
            section.push(problem.expected("a rate such as \"250 kbit/s\""));
        }
        if sources.len() + pairs.len() > MAX_ELEMENTS as usize {
            let most = format!("at most {MAX_ELEMENTS} sources");
            section.push(section.problem("from", "makes too many sources").expected(most));
            continue;
        }
        let several = pairs.len() > 1;
        for (k, (from, to)) in pairs.into_iter().enumerate() {
            let name = match &name {
                Some(name) if several => format!("{}{k}", name.text),
                Some(name) => name.text.clone(),
                None => {
                    let [a, b] = [from, to].map(|id| &network.nodes[id.0 as usize].name);
                    format!("{a}-{b}")
                }
            };
            if !taken.insert(name.clone()) {
                let key = if section.has("name") { "name" } else { "from" };
                let problem = section.problem(key, format!("a second source {name:?}"));
                section.push(problem.expected("a name of its own for each source"));
                break;
            }
            sources.push(CbrSpec { name, from, to, start, stop, size, rate, on_off });
        }
    }
    sources
}

/// The pauses of a source: `None` when they are wrong.
fn on_off(section: &Section<'_>) -> Option<Option<OnOff>> {
    let (on, off) = (section.get::<Option<Duration>>("on"), section.get::<Option<Duration>>("off"));
    let periods = section.get::<&str>("periods");
    match (on?, off?) {
        (Some(on), Some(off)) => {
            Some(Some(OnOff { on, off, exponential: periods? == "exponential" }))
        }
        (None, None) => {
            if section.has("periods") {
                let problem = section.problem("periods", "has no effect without on and off");
                section.push(problem.expected("on and off, whose lengths it describes"));
            }
            Some(None)
        }
        (on, _) => {
            let missing = if on.is_none() { "on" } else { "off" };
            section.push(section.problem(missing, "missing").expected("both on and off, or none"));
            None
        }
    }
}

fn flows(sections: &[Section<'_>], tcp: &Section<'_>, network: &Network<'_>) -> Vec<FlowSpec> {
    let Network { nodes, duration, .. } = network;
    let mut flows: Vec<FlowSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let count = section.get::<Option<u64>>("count");
        let start = section.get::<Instant>("start");
        let stagger = section.get::<Duration>("stagger");
        let jitter = section.get::<Duration>("jitter");
        let bytes = section.get::<Option<Bytes>>("bytes");
        let endpoints = endpoints(section, tcp);
        let Some(pairs) = ends(section, network) else { continue };
        let (Some(name), Some(count), Some(start), Some(stagger), Some(jitter), Some(bytes)) =
            (name, count, start, stagger, jitter, bytes)
        else {
            continue;
        };
        let each = count.unwrap_or(1);
        let total = pairs.len() as u64 * each;
        if flows.len() as u64 + total > MAX_ELEMENTS {
            let most = format!("at most {MAX_ELEMENTS} flows");
            section.push(section.problem("count", "makes too many flows").expected(most));
            continue;
        }
        let last_start = start.since_start() + stagger * (total - 1) + jitter;
        if duration.is_some_and(|d| last_start >= d) {
            let keys = ["jitter", "stagger"];
            let key = keys.into_iter().find(|key| section.has(key)).unwrap_or("start");
            let message = format!("a flow starts at {last_start}, after the end of the run");
            section.push(section.problem(key, message).expected("a start before `duration`"));
        }
        let Some((sender, receiver)) = endpoints else { continue };
        for k in 0..total {
            let (from, to) = pairs[(k / each) as usize];
            let name = match &name {
                Some(name) if total == 1 => name.text.clone(),
                Some(name) => format!("{}{k}", name.text),
                None => {
                    let [a, b] = [from, to].map(|id| &nodes[id.0 as usize].name);
                    match count {
                        Some(_) => format!("{a}-{b}-{}", k % each),
                        None => format!("{a}-{b}"),
                    }
                }
            };
            if !taken.insert(name.clone()) {
                let key = if section.has("name") { "name" } else { "from" };
                let expected = "a name of its own for each flow";
                let problem = section.problem(key, format!("a second flow {name:?}"));
                section.push(problem.expected(expected));
                break;
            }
            flows.push(FlowSpec {
                name,
                from,
                to,
                start: start + stagger * k,
                jitter,
                bytes,
                sender: sender.clone(),
                receiver: receiver.clone(),
            });
        }
    }
    flows
}

/// The sender's and the receiver's configuration of a flow, and what they must agree on.
fn endpoints(flow: &Section<'_>, tcp: &Section<'_>) -> Option<(TcpConfig, TcpConfig)> {
    let sender = tcp.overridden_by(flow, "sender");
    let receiver = tcp.overridden_by(flow, "receiver");
    for (own, key, other, end) in [
        (flow.merged("sender"), "sender", "receiver", RECEIVER),
        (flow.merged("receiver"), "receiver", "sender", SENDER),
    ] {
        for (field, spot) in own.own_keys().filter(|(field, _)| field.matters_to == Some(end)) {
            let message = format!("has no effect at a flow's {key}");
            let problem = own.problem_at(spot, field.key, message);
            own.push(problem.expected(format!("{other}.{}", field.key)));
        }
    }
    let (s, r) = (tcp_config(&sender), tcp_config(&receiver));
    let (s, r) = (s?, r?);
    if s.recovery == Recovery::Sack && r.recovery != Recovery::Sack {
        let problem = sender.problem("recovery", "the receiver does not offer SACK");
        sender.push(problem.expected("recovery = \"sack\" at both ends, such as in [tcp]"));
    }
    if s.spurious == SpuriousDetection::Eifel && !(s.timestamps && r.timestamps) {
        let problem = sender.problem("spurious", "Eifel needs timestamps");
        sender.push(problem.expected("timestamps = true at both ends, such as in [tcp]"));
    }
    if r.receive_buffer > Bytes(65_535) && !(s.window_scaling && r.window_scaling) {
        let message = format!("a window of {} needs window scaling", r.receive_buffer);
        let problem = receiver.problem("receive-buffer", message);
        receiver.push(problem.expected("at most 65535 B, or window-scaling = true at both ends"));
    }
    Some((s, r))
}

fn tcp_config(section: &Section<'_>) -> Option<TcpConfig> {
    let mss = section.get::<Bytes>("mss");
    let receive_buffer = section.get::<Bytes>("receive-buffer");
    let send_buffer = section.get::<Bytes>("send-buffer");
    let window_scaling = section.get::<bool>("window-scaling");
    let timestamps = section.get::<bool>("timestamps");
    let congestion = section.get::<&str>("congestion");
    let recovery = recovery(section);
    let sack_pipe = match recovery {
        Some(Recovery::Sack) => section.get::<&str>("sack-pipe"),
        _ => Some("rfc6675"),
    };
    let loss_window = section.get::<&str>("loss-window");
    let grow_on_recovery_exit = section.get::<bool>("grow-on-recovery-exit");
    let initial_window = section.get::<WordOrSegments>("initial-window");
    let initial_ssthresh = section.get::<Option<Bytes>>("initial-ssthresh");
    let cwnd_limit = section.get::<Option<Bytes>>("cwnd-limit");
    let duplicate_ack_threshold = section.get::<u32>("duplicate-ack-threshold");
    let limited_transmit = section.get::<bool>("limited-transmit");
    let abc = section.get::<Option<u32>>("abc");
    let slow_start_after_idle = section.get::<bool>("slow-start-after-idle");
    let spurious = section.get::<&str>("spurious");
    let rto = rto(&section.merged("rto"));
    let persist = persist(&section.merged("persist"));
    let ack = ack(&section.merged("ack"));
    let nagle = section.get::<bool>("nagle");
    let time_wait = section.get::<Duration>("time-wait");
    let on_link = section.get::<&str>("on-link");

    let (mss, send_buffer, cwnd_limit) = (mss?, send_buffer?, cwnd_limit?);
    let timestamps = timestamps?;
    if timestamps && mss.get() > MAX_MSS - 12 {
        let message = format!("{mss} and timestamps exceed an IP packet");
        let expected = format!("at most {} B with timestamps", MAX_MSS - 12);
        section.push(section.problem("mss", message).expected(expected));
    }
    if mss > send_buffer {
        let message = format!("{mss} is larger than the send buffer of {send_buffer}");
        section.push(section.problem("mss", message).expected("at most send-buffer"));
    }
    if let Some(limit) = cwnd_limit
        && limit < mss
    {
        let message = format!("{limit} is smaller than a segment of {mss}");
        section.push(section.problem("cwnd-limit", message).expected("at least mss"));
    }
    Some(TcpConfig {
        mss: u16::try_from(mss.get()).ok()?,
        receive_buffer: receive_buffer?,
        send_buffer,
        window_scaling: window_scaling?,
        timestamps,
        congestion: match congestion? {
            "reno" => Congestion::Reno,
            other => unreachable!("congestion control {other:?}"),
        },
        recovery: recovery?,
        sack_pipe: match sack_pipe? {
            "fall-floyd" => SackPipe::FallFloyd,
            _ => SackPipe::Rfc6675,
        },
        initial_window: match initial_window? {
            WordOrSegments::Word("rfc6928") => InitialWindow::Rfc6928,
            WordOrSegments::Word(_) => InitialWindow::Rfc5681,
            WordOrSegments::Segments(n) => InitialWindow::Segments(n.into()),
        },
        initial_ssthresh: initial_ssthresh?,
        loss_window: match loss_window? {
            "send-window" => LossWindow::SendWindow,
            _ => LossWindow::FlightSize,
        },
        grow_on_recovery_exit: grow_on_recovery_exit?,
        cwnd_limit,
        duplicate_ack_threshold: duplicate_ack_threshold?,
        limited_transmit: limited_transmit?,
        abc: abc?,
        slow_start_after_idle: slow_start_after_idle?,
        spurious: match spurious? {
            "eifel" => SpuriousDetection::Eifel,
            "f-rto" => SpuriousDetection::FRto,
            _ => SpuriousDetection::None,
        },
        rto: rto?,
        persist: persist?,
        ack: ack?,
        nagle: nagle?,
        time_wait: time_wait?,
        on_link: match on_link? {
            "recovery-ack" => LinkReaction::RecoveryAck,
            "freeze" => LinkReaction::Freeze,
            _ => LinkReaction::None,
        },
        on_route_failure: RouteConfig::Ignore,
    })
}

fn recovery(section: &Section<'_>) -> Option<Recovery> {
    Some(match section.get::<&str>("recovery")? {
        "tahoe" => Recovery::Tahoe { avoid_multi_fr: section.get("avoid-multi-fr")? },
        "reno" => Recovery::Reno { avoid_multi_fr: section.get("avoid-multi-fr")? },
        "sack" => Recovery::Sack,
        _ => {
            let newreno = section.merged("newreno");
            let (deflate, impatient) = (newreno.get("deflate"), newreno.get("impatient"));
            Recovery::NewReno(NewRenoConfig { deflate: deflate?, impatient: impatient? })
        }
    })
}

fn rto(section: &Section<'_>) -> Option<RtoConfig> {
    let [initial, after_syn_loss, min, max, granularity, tick] =
        ["initial", "after-syn-loss", "min", "max", "granularity", "tick"]
            .map(|key| section.get::<Duration>(key));
    let max_retransmissions = section.get("max-retransmissions");
    let (min, max) = (min?, max?);
    if min > max {
        let key = if section.has("min") { "min" } else { "max" };
        let message = format!("the lower bound {min} is above the upper bound {max}");
        section.push(section.problem(key, message).expected("min at most max"));
    }
    Some(RtoConfig {
        initial: initial?,
        after_syn_loss: after_syn_loss?,
        min,
        max,
        granularity: granularity?,
        tick: tick?,
        max_retransmissions: max_retransmissions?,
        policy: RtoPolicyConfig::Exponential,
    })
}

fn persist(section: &Section<'_>) -> Option<PersistConfig> {
    let on_shrink = section.get::<&str>("on-shrink");
    let initial = section.get::<Option<Duration>>("initial");
    let backoff = section.get("backoff");
    let max = section.get::<Duration>("max");
    let (initial, max) = (initial?, max?);
    if let Some(initial) = initial
        && initial > max
    {
        let message = format!("the first interval {initial} is above the longest, {max}");
        section.push(section.problem("initial", message).expected("initial at most max"));
    }
    Some(PersistConfig {
        on_shrink: match on_shrink? {
            "bsd" => PersistOnShrink::Bsd,
            "linux" => PersistOnShrink::Linux,
            _ => PersistOnShrink::Strict,
        },
        initial,
        backoff: backoff?,
        max,
    })
}

fn ack(section: &Section<'_>) -> Option<AckConfig> {
    if section.get::<&str>("policy")? == "every" {
        return Some(AckConfig::Every);
    }
    let (segments, timeout) = (section.get("segments"), section.get("timeout"));
    Some(AckConfig::Delayed { segments: segments?, timeout: timeout? })
}
