//! `[[flow]]` and `[tcp]`: connections by TCP, with their endpoints, or by QUIC.

use super::application::{Application, Traffic, application};
use super::link::Link;
use super::names::{A_NODE, COUNT, fits};
use super::node::NodeId;
use super::quic::{QuicConfig, QuicSpec, Transport};
use super::traffic::{Network, ends, groups, is_new, name_by_ends};
use airtcp_config::Section;
use airtcp_core::{Bytes, Dscp, Duration, Instant, Stream};
use airtcp_settings::schema::Fallback::{Absent, Is, Required};
use airtcp_settings::schema::{Key, Kind, TIME, Table, field};
use airtcp_settings::{InTable, Name, Reader, Settings, Value, choice};
use airtcp_tcp::config::{
    AckConfig, Congestion, EcnConfig, HyStartConfig, LinkReaction, PersistOnShrink, RECEIVER,
    SENDER, SpuriousDetection,
};
use airtcp_tcp::congestion::Controls;
use airtcp_tcp::{TcpConfig, preset};
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

/// A TCP connection, or many of them, and its application. Data flows `from` → `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// Unique name; also names its random streams ("flow/ftp0/isn").
    pub name: String,
    /// Data sender. An example if the run [draws](RandomPairs) it.
    pub from: NodeId,
    /// Data receiver, likewise.
    pub to: NodeId,
    /// The earliest time at which the application opens the connection.
    pub start: Instant,
    /// A uniform random delay up to this is added (stream "flow/ftp0/start").
    pub jitter: Duration,
    /// What its application does; the flows of a table share it.
    pub application: Arc<Application>,
    /// Who opens the connection.
    pub opens: End,
    /// Endpoint of `from`; the flows of a table share it.
    pub sender: Arc<TcpConfig>,
    /// Endpoint of `to`, likewise.
    pub receiver: Arc<TcpConfig>,
    /// The DSCPs of its packets.
    pub marks: Marks,
}

/// The DSCPs of a flow's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Of those that the data sender sends.
    pub sender: Dscp,
    /// Of those that the data receiver sends, ACKs most of all.
    pub receiver: Dscp,
}

impl Marks {
    /// Of those that this end sends.
    pub const fn of(&self, end: End) -> Dscp {
        match end {
            End::Sender => self.sender,
            End::Receiver => self.receiver,
        }
    }
}

choice! {
    /// An end of a flow.
    #[default(Sender)]
    pub enum End {
        /// the data sender, `from`, as in an upload
        Sender = "sender",
        /// the data receiver, `to`, as in a download
        Receiver = "receiver",
    }
}

impl End {
    /// The other end.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// Whose draw the ends of a scenario's flows show before a run has a seed.
const EXAMPLE: u64 = 1;

airtcp_core::ids! {
    /// A flow, by its index in [`Scenario::flows`](super::Scenario::flows).
    pub struct FlowId;
}

/// Flows whose ends each run draws.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomPairs {
    /// Names the random stream ("flow/NAME/pairs").
    pub name: String,
    /// Their indices in the scenario; those of a pair are neighbours.
    pub flows: Range<usize>,
    /// Number of pairs drawn.
    pub pairs: usize,
    /// The nodes of which different ones send.
    pub from: Range<u32>,
    /// The nodes of which any, but not the sender itself, receives.
    pub to: Range<u32>,
}

impl RandomPairs {
    /// The pairs of a run with this seed; all choices are equally likely.
    fn draw(&self, seed: u64) -> Pairs {
        let mut stream = Stream::new(seed, &format!("flow/{}/pairs", self.name));
        let mut senders: Vec<u32> = self.from.clone().collect();
        let pair = |k: usize| {
            let chosen = k + stream.below((senders.len() - k) as u64) as usize;
            senders.swap(k, chosen);
            let from = senders[k];
            let others = self.to.len() as u64 - u64::from(self.to.contains(&from));
            let to = self.to.start + stream.below(others) as u32;
            let to = if self.to.contains(&from) && to >= from { to + 1 } else { to };
            (NodeId(from), NodeId(to))
        };
        (0..self.pairs).map(pair).collect()
    }

    /// Gives the flows their ends in a run with this seed.
    pub(super) fn assign(&self, seed: u64, flows: &mut [FlowSpec]) {
        let each = self.flows.len() / self.pairs;
        let ends = self.draw(seed).into_iter().flat_map(|ends| iter::repeat_n(ends, each));
        for (flow, ends) in flows[self.flows.clone()].iter_mut().zip(ends) {
            (flow.from, flow.to) = ends;
        }
    }
}

/// The key that says which protocol it is, and its words in conditions of other keys.
const TRANSPORT: &str = "transport";
const TCP: &[&str] = &["tcp"];
const QUIC: &[&str] = &["quic"];

pub(super) static FLOW: Table = Table::new(
    "flow",
    "A connection and its application: a transfer from `from` to `to`, or by TCP other `traffic`.",
    &[Key::Fields(&[
        field(
            "name",
            Kind::Name,
            Absent("`A-B` for a flow from A to B"),
            "Unique name. A flow made several times (groups, `count`) gets its number \
             behind the name: `ftp0`, `ftp1`, …; without a name it is `s0-d0`, `s1-d1`, \
             …, with `count` `s0-d0-0`, `s0-d0-1`, …",
        ),
        field(
            "from",
            A_NODE,
            Required,
            "Data sender. Two groups of equal size are connected pair by pair.",
        ),
        field("to", A_NODE, Required, "Data receiver."),
        field("transport", Transport::KIND, Is("tcp"), "The transport protocol."),
        field(
            "quic",
            Kind::Table(QuicConfig::TABLE),
            Absent("its defaults"),
            "Settings of both ends.",
        )
        .only(TRANSPORT, QUIC),
        field(
            "opens",
            Kind::Choice(End::WORDS),
            Absent("as `traffic` says, or `sender`"),
            "Who opens the connection. It decides when Linux's receiver measures its first round \
             trip, and so how soon its window grows.",
        ),
        field(
            "random-pairs",
            COUNT,
            Absent("all pairs, in order"),
            "Each run draws so many pairs of nodes: different ones of `from`, each with any other \
             node of `to`, which may be the same group. The flows are called as with `name` and a \
             number.",
        )
        .only(TRANSPORT, TCP)
        .essential(),
        field(
            "dscp",
            Dscp::KIND,
            Is("CS0"),
            "DSCP in the IP headers of what the data sender sends. In a cell with \
             `access-categories`, the packets' category follows from it.",
        )
        .source("RFC 2474"),
        field(
            "reply-dscp",
            Dscp::KIND,
            Is("CS0"),
            "The same of what the data receiver sends: ACKs. A receiver does not copy the DSCP of the \
             data, nor does Linux's (`net.ipv4.tcp_reflect_tos = 0`).",
        ),
        field("count", COUNT, Absent("one flow"), "Number of flows (between each pair)."),
        field("start", TIME, Is("0 s"), "Time at which the application opens the connection."),
        field(
            "stagger",
            TIME,
            Is("0 s"),
            "Each further flow of this entry starts this much later.",
        ),
        field(
            "jitter",
            TIME,
            Is("0 s"),
            "Each flow starts later by a random time, uniform from 0 to this.",
        ),
        field(
            "bytes",
            Kind::WordOr("endless", &Kind::Size { min: 1, max: u64::MAX }),
            Is("endless"),
            "Bytes to transfer; then the connection is closed.",
        ),
        field(
            "traffic",
            Kind::Table(Traffic::TABLE),
            Absent("a transfer of `bytes`"),
            "Another application than a transfer of `bytes`.",
        )
        .only(TRANSPORT, TCP)
        .essential(),
        field(
            "sender",
            Kind::Table(&preset::TABLE),
            Absent("as `[tcp]`"),
            "Keys that differ from `[tcp]` at the data sender.",
        )
        .only(TRANSPORT, TCP),
        field(
            "receiver",
            Kind::Table(&preset::TABLE),
            Absent("as `[tcp]`"),
            "Keys that differ from `[tcp]` at the data receiver.",
        )
        .only(TRANSPORT, TCP),
    ])],
);

/// The flows of a scenario.
#[derive(Default)]
pub(super) struct Flows {
    pub(super) tcp: Vec<FlowSpec>,
    /// Those of TCP whose ends each run draws.
    pub(super) random_pairs: Vec<RandomPairs>,
    pub(super) quic: Vec<QuicSpec>,
}

/// What only flows of one protocol have; shared by those of a table.
enum ByTransport {
    Tcp { application: Arc<Application>, sender: Arc<TcpConfig>, receiver: Arc<TcpConfig> },
    Quic { bytes: Option<Bytes>, config: Arc<QuicConfig> },
}

/// The flows of a table but for their names, ends and starts.
struct Pattern {
    jitter: Duration,
    opens: End,
    marks: Marks,
    by_transport: ByTransport,
}

impl Flows {
    /// Adds a flow of this pattern.
    fn add(
        &mut self,
        pattern: &Pattern,
        name: String,
        (from, to): (NodeId, NodeId),
        start: Instant,
    ) {
        let &Pattern { jitter, opens, marks, ref by_transport } = pattern;
        match by_transport {
            ByTransport::Tcp { application, sender, receiver } => self.tcp.push(FlowSpec {
                name,
                from,
                to,
                start,
                jitter,
                application: Arc::clone(application),
                opens,
                sender: Arc::clone(sender),
                receiver: Arc::clone(receiver),
                marks,
            }),
            &ByTransport::Quic { bytes, ref config } => {
                let config = Arc::clone(config);
                self.quic.push(QuicSpec {
                    name,
                    from,
                    to,
                    start,
                    jitter,
                    bytes,
                    opens,
                    config,
                    marks,
                });
            }
        }
    }
}

/// Reads the flows. `tcp` is `None` if it was refused.
pub(super) fn flows(
    sections: &[Section<'_>],
    tcp: Option<&Section<'_>>,
    network: &Network<'_>,
) -> Flows {
    let mut flows = Flows::default();
    let mut taken = BTreeSet::new();
    for section in sections {
        // What follows depends on it.
        if let Some(transport) = section.get::<Transport>(TRANSPORT) {
            Reader::chosen(section, TRANSPORT, transport.word());
            table(section, transport, tcp, network, &mut flows, &mut taken);
        }
    }
    flows
}

/// Reports settings of TCP without a flow by TCP; not where an override has chosen QUIC, as in a
/// sweep over both.
pub(super) fn check_tcp(top: &Section<'_>, flows: &[Section<'_>]) {
    let written = |section: &Section<'_>, key| {
        section.own_keys().find(|(field, _)| field.key == key).map(|(_, spot)| spot)
    };
    let Some(tcp) = written(top, "tcp") else { return };
    let is_overridden = |flow| written(flow, TRANSPORT).is_some_and(|it| it.source > tcp.source);
    if !flows.iter().any(is_overridden) {
        let message = "has no effect without a flow by TCP";
        top.push(top.problem("tcp", message).expected("a [[flow]] with transport = \"tcp\""));
    }
}

/// Reads the flows of one table.
fn table(
    section: &Section<'_>,
    transport: Transport,
    tcp: Option<&Section<'_>>,
    network: &Network<'_>,
    flows: &mut Flows,
    taken: &mut BTreeSet<String>,
) {
    let name = section.get::<Option<Name>>("name");
    let count = section.get::<Option<u64>>("count");
    let start = section.get::<Instant>("start");
    let stagger = section.get::<Duration>("stagger");
    let jitter = section.get::<Duration>("jitter");
    let marks = section.get::<Dscp>("dscp").zip(section.get::<Dscp>("reply-dscp"));
    let marks = marks.map(|(sender, receiver)| Marks { sender, receiver });
    let by_transport = match transport {
        Transport::Tcp => by_tcp(section, tcp, network),
        Transport::Quic => by_quic(section),
    };
    let Some((pairs, random)) = listed_or_drawn(section, transport, network) else { return };
    let (Some(name), Some(count), Some(start), Some(stagger), Some(jitter), Some(marks)) =
        (name, count, start, stagger, jitter, marks)
    else {
        return;
    };
    let each = count.unwrap_or(1);
    let total = pairs.len() as u64 * each;
    let before = flows.tcp.len() + flows.quic.len();
    if !fits(section, "count", "flows", before as u64 + total) {
        return;
    }
    check_start(section, start.since_start() + stagger * (total - 1) + jitter, network.duration);
    let Some((opens, by_transport)) = by_transport else { return };
    if let ByTransport::Tcp { application, sender, receiver } = &by_transport {
        check_application(section, application, start, [sender, receiver]);
        check_on_link(section, &pairs, [sender, receiver], network);
    }
    let pattern = Pattern { jitter, opens, marks, by_transport };
    let first = flows.tcp.len();
    for k in 0..total {
        let (from, to) = pairs[(k / each) as usize];
        let name = match (&name, &random) {
            (_, Some(random)) => format!("{}{k}", random.name),
            (Some(name), _) if total == 1 => name.text.clone(),
            (Some(name), _) => format!("{}{k}", name.text),
            (None, None) => name_by_ends(network.nodes, from, to, count.map(|each| k % each)),
        };
        if !is_new(section, "flow", &name, taken) {
            break;
        }
        flows.add(&pattern, name, (from, to), start + stagger * k);
    }
    let drawn = random.map(|random| RandomPairs { flows: first..flows.tcp.len(), ..random });
    flows.random_pairs.extend(drawn);
}

/// Who opens a table's TCP flows, their application and endpoints.
fn by_tcp(
    section: &Section<'_>,
    tcp: Option<&Section<'_>>,
    network: &Network<'_>,
) -> Option<(End, ByTransport)> {
    let end = Instant::ZERO + network.duration.unwrap_or_default();
    let application = application(section, network, end);
    let opens = section.get::<Option<End>>("opens");
    let endpoints = tcp.and_then(|tcp| endpoints(section, tcp, network.controls));
    let application = application?;
    let opens = opener(section, &application, opens?);
    let (sender, receiver) = endpoints?;
    Some((opens, ByTransport::Tcp { application: Arc::new(application), sender, receiver }))
}

/// Who opens a table's QUIC flows, their transfer and settings.
fn by_quic(section: &Section<'_>) -> Option<(End, ByTransport)> {
    let bytes = section.get::<Option<Bytes>>("bytes");
    let opens = section.get::<Option<End>>("opens");
    let config = <QuicConfig as Settings>::read(&section.merged("quic"), None);
    let (bytes, opens, config) = (bytes?, opens?.unwrap_or_default(), Arc::new(config?));
    (!section.is_refused("quic")).then_some((opens, ByTransport::Quic { bytes, config }))
}

/// Sender and receiver of each flow.
type Pairs = Vec<(NodeId, NodeId)>;

/// The pairs of nodes between which flows run. If each run draws them, they are an example.
fn listed_or_drawn(
    section: &Section<'_>,
    transport: Transport,
    network: &Network<'_>,
) -> Option<(Pairs, Option<RandomPairs>)> {
    if transport == Transport::Tcp && section.has("random-pairs") {
        let random = random_pairs(section, network)?;
        Some((random.draw(EXAMPLE), Some(random)))
    } else {
        Some((ends(section, network)?, None))
    }
}

/// Reports a last flow that would start after the end of the run.
fn check_start(section: &Section<'_>, last_start: Duration, duration: Option<Duration>) {
    if duration.is_some_and(|duration| last_start >= duration) {
        let keys = ["jitter", "stagger"];
        let key = keys.into_iter().find(|key| section.has(key)).unwrap_or("start");
        let message = format!("a flow starts at {last_start}, after the end of the run");
        section.push(section.problem(key, message).expected("a start before `duration`"));
    }
}

/// Who opens the connection: with some applications only one end can.
fn opener(section: &Section<'_>, application: &Application, wanted: Option<End>) -> End {
    let only = match application {
        Application::Bulk(_) | Application::OnOff(_) => return wanted.unwrap_or_default(),
        Application::Arrivals(_) => End::Sender,
        Application::Requests(_) | Application::Video(_) => End::Receiver,
    };
    if wanted.is_some_and(|wanted| wanted != only) {
        let message = format!("with this traffic the {} opens the connection", only.word());
        section.push(section.problem("opens", message).expected(format!("\"{}\"", only.word())));
    }
    only
}

/// What contradicts the application.
fn check_application(
    section: &Section<'_>,
    application: &Application,
    start: Instant,
    ends: [&TcpConfig; 2],
) {
    let Application::Arrivals(arrivals) = application else { return };
    if arrivals.stop.is_some_and(|stop| stop <= start) {
        let message = format!("nothing begins after the start at {}", start.since_start());
        section.push(section.problem("traffic", message).expected("a stop after `start`"));
    }
    if ends.iter().any(|end| end.on_link != LinkReaction::None) {
        let message = "connections that come and go are not told of the link";
        section.push(section.problem("traffic", message).expected("on-link = \"none\""));
    }
}

/// Refuses ends that react to outages where only the links near them have any: a node's radio reports
/// outages of the node.
fn check_on_link(
    section: &Section<'_>,
    pairs: &[(NodeId, NodeId)],
    [sender, receiver]: [&TcpConfig; 2],
    network: &Network<'_>,
) {
    let senders: Vec<NodeId> = pairs.iter().map(|pair| pair.0).collect();
    let receivers: Vec<NodeId> = pairs.iter().map(|pair| pair.1).collect();
    for (key, end, nodes) in [("from", sender, senders), ("to", receiver, receivers)] {
        let is_told = |&node: &NodeId| network.nodes[node].outage.is_some();
        if end.on_link == LinkReaction::None || nodes.iter().any(is_told) {
            continue;
        }
        let is_near = |link: &&Link| nodes.contains(&link.from) || nodes.contains(&link.to);
        let mut broken = network.links.iter().filter(|link| link.has_outages());
        if let Some(link) = broken.find(is_near) {
            let reaction = end.on_link.word();
            let message = format!(
                "with on-link = {reaction:?} it is told of the node's outages, not of those of {}",
                link.name
            );
            section.push(section.problem(key, message).expected("`outage` in the [[node]]"));
        }
    }
}

/// The pairs that runs draw for this table, its flows yet to be made.
fn random_pairs(section: &Section<'_>, network: &Network<'_>) -> Option<RandomPairs> {
    let name = section.get::<Option<Name>>("name");
    let pairs = section.get::<u64>("random-pairs");
    let (from, to) = groups(section, network)?;
    let (name, pairs) = (name?, pairs? as usize);
    if pairs > from.len() {
        let problem = section.problem("random-pairs", format!("{pairs} different senders"));
        section.push(problem.expected(format!("at most {}, the nodes of `from`", from.len())));
        return None;
    }
    if to.len() == 1 && from.contains(&to.start) {
        let message = "the only receiver may be drawn as a sender";
        section.push(section.problem("to", message).expected("another node, or a group"));
        return None;
    }
    let text = |key| section.get::<Name>(key).map(|name| name.text);
    let name = match name {
        Some(name) => name.text,
        None => format!("{}-{}-", text("from")?, text("to")?),
    };
    Some(RandomPairs { name, flows: 0..0, pairs, from, to })
}

/// The configurations of a flow's sender and receiver, and what they must agree on.
///
/// What a preset offers and the other end does not take is left to the handshake.
fn endpoints(
    flow: &Section<'_>,
    tcp: &Section<'_>,
    controls: Option<&Controls>,
) -> Option<(Arc<TcpConfig>, Arc<TcpConfig>)> {
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
    let (s, r) = (preset::read(&sender), preset::read(&receiver));
    let (s, mut r) = (s?, r?);
    if flow.is_refused("sender") || flow.is_refused("receiver") {
        return None;
    }
    agree(&sender, &s, &receiver, &mut r, controls)?;
    let s = Arc::new(s);
    let r = if r == *s { Arc::clone(&s) } else { Arc::new(r) };
    Some((s, r))
}

/// Refuses settings of a sender and a receiver that contradict each other, or themselves; lowers
/// what a preset offers and the two cannot use. `None`: a congestion control is unknown.
pub(super) fn agree(
    sender: &Section<'_>,
    s: &TcpConfig,
    receiver: &Section<'_>,
    r: &mut TcpConfig,
    controls: Option<&Controls>,
) -> Option<()> {
    check_control(sender, s, receiver, r, controls)?;
    if s.recovery.needs_sack() && !r.recovery.needs_sack() && sender.has("recovery") {
        let problem = sender.problem("recovery", "the receiver does not offer SACK");
        sender.push(problem.expected("recovery = \"sack\" at both ends, such as in [tcp]"));
    }
    if matches!(s.congestion, Congestion::Bbr | Congestion::Bbr3) && !s.recovery.is_rack() {
        let message = "BBR needs delivery rates, which RACK measures";
        let problem = sender.problem("congestion", message);
        sender.push(problem.expected("recovery = \"rack\""));
    }
    if s.pacing && paces_itself(s.congestion) {
        let problem = sender.problem("pacing", "the congestion control has a pace of its own");
        sender.push(problem.expected("no pacing"));
    }
    if s.recovery.is_rack() && s.persist.on_shrink == PersistOnShrink::Bsd {
        let problem = sender.problem("persist", "on-shrink = \"bsd\" goes back, and RACK does not");
        sender.push(problem.expected("on-shrink = \"linux\", or another recovery"));
    }
    check_ecn(sender, s, receiver, r);
    if !(s.timestamps && r.timestamps) {
        refuse_without_timestamps(sender, s, receiver, r);
    }
    if let AckConfig::Dca(dca) = r.ack
        && !matches!(s.ack, AckConfig::Dca(other) if other.cwnd_in == dca.cwnd_in)
    {
        let problem = receiver.problem("ack", "the sender does not tell its cwnd");
        receiver.push(problem.expected("TCP-DCA with the same cwnd-in at both ends: in [tcp]"));
    }
    check_receive_buffer(s, receiver, r);
    Some(())
}

/// A large window needs window scaling, and autotuning a large window.
fn check_receive_buffer(s: &TcpConfig, receiver: &Section<'_>, r: &mut TcpConfig) {
    if r.receive_buffer > UNSCALED && !(s.window_scaling && r.window_scaling) {
        if receiver.has("receive-buffer") {
            let message = format!("a window of {} needs window scaling", r.receive_buffer);
            let problem = receiver.problem("receive-buffer", message);
            let expected = "at most 65535 B, or window-scaling = true at both ends";
            receiver.push(problem.expected(expected));
        }
        r.receive_buffer = UNSCALED;
    }
    if r.autotuning && !r.autotunes() {
        if receiver.has("autotuning") {
            let message = format!("a window of {} has no room to grow", r.receive_buffer);
            let problem = receiver.problem("autotuning", message);
            receiver.push(problem.expected("a receive-buffer above 64 KiB"));
        }
        r.autotuning = false;
    }
}

/// A congestion control from outside must be there, at both ends.
fn check_control(
    sender: &Section<'_>,
    s: &TcpConfig,
    receiver: &Section<'_>,
    r: &TcpConfig,
    controls: Option<&Controls>,
) -> Option<()> {
    let Some(controls) = controls else { return Some(()) };
    for (end, config) in [(sender, s), (receiver, r)] {
        let Some(name) = config.control.as_deref().filter(|name| !controls.has(name)) else {
            continue;
        };
        let problem = end.problem("control", format!("no congestion control {name:?} here"));
        end.push(match controls.names().next() {
            Some(_) => problem.nearest(name, controls.names()),
            None => problem.expected("a program that brings it along (docs/strategies.md)"),
        });
        return None;
    }
    Some(())
}

/// The congestion control asks for a rate.
fn paces_itself(congestion: Congestion) -> bool {
    matches!(
        congestion,
        Congestion::Bbr | Congestion::Bbr3 | Congestion::Prague | Congestion::AdaptivePacing(_)
    )
}

/// ECN needs both ends, and a sender that answers marks; some congestion controls need to know
/// which data were marked.
fn check_ecn(sender: &Section<'_>, s: &TcpConfig, receiver: &Section<'_>, r: &TcpConfig) {
    let needs_each = matches!(s.congestion, Congestion::Dctcp | Congestion::Prague);
    if needs_each && !matches!(s.ecn, EcnConfig::Dctcp | EcnConfig::AccEcn) {
        let message = "the congestion control lives on marks";
        let expected = "ecn = \"dctcp\" or \"accecn\"";
        sender.push(sender.problem("congestion", message).expected(expected));
    } else if s.ecn != EcnConfig::Off && !s.recovery.is_rack() {
        let problem = sender.problem("ecn", "only RACK answers marks");
        sender.push(problem.expected("recovery = \"rack\""));
    } else if s.ecn != r.ecn {
        let problem = receiver.problem("ecn", "the two ends differ");
        receiver.push(problem.expected("the same at both ends, such as in [tcp]"));
    } else if s.ecn != EcnConfig::AccEcn
        && let Some(section) = [sender, receiver].into_iter().find(|s| s.has("accecn-option"))
    {
        let problem = section.problem("accecn-option", "has no effect without AccECN");
        section.push(problem.expected("ecn = \"accecn\""));
    }
}

/// The largest window without window scaling (RFC 7323 §2.1).
pub(super) const UNSCALED: Bytes = Bytes(65_535);

/// Refuses what a flow without timestamps cannot do.
fn refuse_without_timestamps(
    sender: &Section<'_>,
    s: &TcpConfig,
    receiver: &Section<'_>,
    r: &TcpConfig,
) {
    let refuse = |end: &Section<'_>, key: &str, message: &str| {
        if end.has(key) {
            let expected = "timestamps = true at both ends, such as in [tcp]";
            end.push(end.problem(key, message).expected(expected));
        }
    };
    if s.spurious == SpuriousDetection::Eifel {
        refuse(sender, "spurious", "Eifel needs timestamps");
    }
    // RACK measures an RTT for each ACK without them.
    if let Congestion::Cubic(cubic) = s.congestion
        && cubic.hystart != HyStartConfig::Off
        && !s.recovery.is_rack()
    {
        refuse(sender, "cubic", "HyStart needs timestamps");
    }
    if let AckConfig::Dca(dca) = r.ack
        && (dca.delay_rule || dca.repeat_acks)
    {
        refuse(receiver, "ack", "the delay rule and repeated ACKs need timestamps");
    }
}
