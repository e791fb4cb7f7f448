//! From the tree to the model: names become indices, groups are expanded, layers merged, and what only
//! shows when several keys are seen together is checked.

use super::diagnostic::{Problem, ScenarioError, Source, Spot};
use super::model::{FlowSpec, Link, MiddleboxKind, MiddleboxSpec, Node, NodeId, Scenario};
use super::reader::{Layer, Name, Problems, Section};
use super::schema::{self, End, MAX_ELEMENTS, MAX_MSS};
use super::tree::{self, Table, Tree};
use airtcp_core::{Bytes, Duration, Instant};
use airtcp_net::config::{
    DelayConfig, Distribution, LinkConfig, LossConfig, LossPlace, OutageConfig, OutageMode,
    QueueConfig, QueueLimit, Schedule, Variation,
};
use airtcp_tcp::TcpConfig;
use airtcp_tcp::config::{
    AckConfig, InitialWindow, LinkReaction, LossWindow, NewRenoConfig, PersistConfig,
    PersistOnShrink, Recovery, RtoConfig, SackPipe, SpuriousDetection,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Reads a scenario; see [`Scenario::parse`].
pub(super) fn parse(
    source_name: &str,
    text: &str,
    overrides: &[(String, String)],
) -> Result<Scenario, ScenarioError> {
    let mut sources = vec![Source { name: source_name.to_owned(), text: text.to_owned() }];
    sources.extend(overrides.iter().map(|(path, value)| Source {
        name: "--set".to_owned(),
        text: tree::override_text(path, value),
    }));
    let mut root =
        Tree::document(text, 0).map_err(|problems| ScenarioError::new(problems, &sources))?;
    let problems = Problems::default();
    for (i, (path, value)) in overrides.iter().enumerate() {
        if let Err(problem) = tree::set(&mut root, i + 1, path, value) {
            problems.borrow_mut().push(problem);
        }
    }
    let scenario = scenario(&root, &problems, source_name);
    let problems = problems.into_inner();
    match scenario {
        Some(scenario) if problems.is_empty() => Ok(scenario),
        _ => Err(ScenarioError::new(problems, &sources)),
    }
}

/// `name` of the file without folder and ending, made a name.
fn stem(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = stem.chars().take(64).map(fit).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}

fn scenario(root: &Table, problems: &Problems, source_name: &str) -> Option<Scenario> {
    let layer = |schema, table| Layer { schema, table, path: String::new(), spot: Spot::default() };
    let top = Section::new(
        problems,
        &schema::SCENARIO,
        vec![layer(&schema::SCENARIO, root)],
        Spot::default(),
        String::new(),
    );
    let name = top.get::<Option<Name>>("name");
    let duration = top.get::<Duration>("duration");
    let (nodes, names) = nodes(&top.elements("node"));
    let links = links(&top.elements("link"), &nodes, &names);
    // A link that could not be read leaves gaps that are no mistake of the flows.
    let islands = problems.borrow().is_empty().then(|| Islands::new(nodes.len(), &links));
    let tcp = top.merged("tcp");
    let flows = flows(&top.elements("flow"), &tcp, islands.as_ref(), &nodes, &names, duration);
    Some(Scenario {
        name: name?.map_or_else(|| stem(source_name), |n| n.text),
        duration: duration?,
        nodes,
        links,
        flows,
    })
}

/// Groups and single nodes by name.
type Names = BTreeMap<String, Range<u32>>;

fn nodes(sections: &[Section<'_>]) -> (Vec<Node>, Names) {
    let mut nodes = Vec::new();
    let mut names = Names::new();
    for section in sections {
        let name = section.get::<Name>("name");
        let count = section.get::<Option<u64>>("count");
        let outage = section.chosen("outage").and_then(|o| schedule(&o));
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
    (nodes, names)
}

fn resolve(section: &Section<'_>, key: &str, name: &Name, names: &Names) -> Option<Range<u32>> {
    let range = names.get(&name.text).cloned();
    if range.is_none() {
        let message = format!("no node is called {:?}", name.text);
        let path = super::reader::join(&section.path, key);
        let known = names.keys().map(String::as_str);
        section.push(Problem::new(name.spot, path, message).nearest(&name.text, known));
    }
    range
}

fn middlebox(section: &Section<'_>, names: &Names) -> Option<MiddleboxSpec> {
    let kind = match section.get::<&str>("kind")? {
        "packet-control" => {
            section.get("threshold").map(|threshold| MiddleboxKind::PacketControl { threshold })
        }
        _ => return None,
    };
    let mobiles = section.get::<Vec<Name>>("mobiles")?;
    let ids: Option<Vec<Range<u32>>> =
        mobiles.iter().map(|name| resolve(section, "mobiles", name, names)).collect();
    let ids: BTreeSet<NodeId> = ids?.into_iter().flatten().map(NodeId).collect();
    Some(MiddleboxSpec { kind: kind?, mobiles: ids.into_iter().collect() })
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
            let problem = Problem::new(part.spot, part.path.clone(), "has no distribution");
            part.push(problem.expected(expected));
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
            let problem = Problem::new(section.spot, section.path.clone(), "does not say when");
            section.push(problem.expected("listed = [[start, end], …] or period and end"));
        }
        return listed?.filter(|l| !l.is_empty()).map(Schedule::Listed);
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
    let limit = section.get::<QueueLimit>("limit");
    if kind? != "red" {
        return Some(QueueConfig::DropTail { limit: limit? });
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
        QueueLimit::Packets(n) => n,
        QueueLimit::Bytes(_) => {
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

fn flows(
    sections: &[Section<'_>],
    tcp: &Section<'_>,
    islands: Option<&Islands>,
    nodes: &[Node],
    names: &Names,
    duration: Option<Duration>,
) -> Vec<FlowSpec> {
    let mut flows: Vec<FlowSpec> = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Option<Name>>("name");
        let from = section.get::<Name>("from");
        let to = section.get::<Name>("to");
        let count = section.get::<Option<u64>>("count");
        let start = section.get::<Instant>("start");
        let stagger = section.get::<Duration>("stagger");
        let bytes = section.get::<Option<Bytes>>("bytes");
        let ends = endpoints(section, tcp);
        let from = from.and_then(|name| resolve(section, "from", &name, names));
        let to = to.and_then(|name| resolve(section, "to", &name, names));
        let (Some(from), Some(to)) = (from, to) else { continue };
        let Some(pairs) = pairs(section, "to", from, to) else { continue };
        let apart = |(a, b): &&(NodeId, NodeId)| islands.is_some_and(|i| !i.connected(*a, *b));
        if let Some((a, b)) = pairs.iter().find(apart) {
            let [a, b] = [a, b].map(|id| &nodes[id.0 as usize].name);
            let message = format!("no links lead from {a:?} to {b:?}");
            section.push(section.problem("to", message).expected("a path of links"));
        }
        let (Some(name), Some(count), Some(start), Some(stagger), Some(bytes)) =
            (name, count, start, stagger, bytes)
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
        let last_start = start.since_start() + stagger * (total - 1);
        if duration.is_some_and(|d| last_start >= d) {
            let key = if section.has("stagger") { "stagger" } else { "start" };
            let message = format!("a flow starts at {last_start}, after the end of the run");
            section.push(section.problem(key, message).expected("a start before `duration`"));
        }
        let Some((sender, receiver)) = ends else { continue };
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
        (flow.merged("sender"), "sender", "receiver", End::Receiver),
        (flow.merged("receiver"), "receiver", "sender", End::Sender),
    ] {
        for (field, spot) in own.own_keys().filter(|(field, _)| field.end == end) {
            let path = super::reader::join(&own.path, field.key);
            let message = format!("has no effect at a flow's {key}");
            own.push(Problem::new(spot, path, message).expected(format!("{other}.{}", field.key)));
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
    let recovery = recovery(section);
    let sack_pipe = match recovery {
        Some(Recovery::Sack) => section.get::<&str>("sack-pipe"),
        _ => Some("rfc6675"),
    };
    let loss_window = section.get::<&str>("loss-window");
    let grow_on_recovery_exit = section.get::<bool>("grow-on-recovery-exit");
    let initial_window = section.get::<InitialWindow>("initial-window");
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
        recovery: recovery?,
        sack_pipe: match sack_pipe? {
            "fall-floyd" => SackPipe::FallFloyd,
            _ => SackPipe::Rfc6675,
        },
        initial_window: initial_window?,
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
        on_link: LinkReaction::None,
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

/// Which nodes links connect, in whatever number of hops (union-find).
struct Islands(Vec<u32>);

impl Islands {
    fn new(nodes: usize, links: &[Link]) -> Self {
        let mut islands = Self((0..nodes as u32).collect());
        for link in links {
            let (a, b) = (islands.root(link.from.0), islands.root(link.to.0));
            islands.0[a.max(b) as usize] = a.min(b);
        }
        islands
    }
    fn root(&self, mut node: u32) -> u32 {
        while self.0[node as usize] != node {
            node = self.0[node as usize];
        }
        node
    }
    fn connected(&self, a: NodeId, b: NodeId) -> bool {
        self.root(a.0) == self.root(b.0)
    }
}
