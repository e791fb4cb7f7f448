//! The syntax tree of a script.

use airtcp_core::Duration;

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Name of the script's file, as given.
    pub file: String,
    /// Options from `--name=value` lines.
    pub options: Vec<ScriptOption>,
    /// Shell commands before the first event.
    pub setup: Option<String>,
    /// Events in the order of the script.
    pub events: Vec<Event>,
}

/// An option line, such as `--tolerance_usecs=10000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOption {
    /// Name without the dashes.
    pub name: String,
    /// Value; empty if the option has none.
    pub value: String,
    /// Line in the script, from 1.
    pub line: usize,
}

/// An event of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line in the script, from 1.
    pub line: usize,
    /// Time at which the event occurs.
    pub time: Time,
    /// Action of the event.
    pub action: Action,
}

/// Time of an event. Relative times count from the previous event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `1.5`: time since the start of the script.
    At(Duration),
    /// `+.1`: time since the previous event.
    After(Duration),
    /// `1.5~1.6`: range since the start of the script.
    AtBetween(Duration, Duration),
    /// `+.1~+.2`: range since the previous event.
    AfterBetween(Duration, Duration),
    /// `*`: any time.
    Any,
}

/// Action of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A TCP segment.
    Packet(Packet),
    /// A packet that is not plain TCP over IP, by name.
    Foreign(&'static str),
    /// A system call.
    Call(Call),
    /// Shell commands between back quotes.
    Shell(String),
    /// Code in Python, between `%{` and `}%`.
    Code(String),
}

/// Direction of a packet, as seen from the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`: injected into the endpoint.
    Inbound,
    /// `>`: expected of the endpoint.
    Outbound,
}

/// ECN field of a packet, sent or expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// Exactly this value.
    Is(airtcp_core::Ecn),
    /// `[ect01]`: ECT(0) or ECT(1).
    Ect01,
}

/// A TCP segment as tcpdump writes it. Sequence numbers count from the initial ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Direction, as seen from the endpoint.
    pub direction: Direction,
    /// ECN field of the IP header, if it matters.
    pub ecn: Option<EcnField>,
    /// Control bits without ACK.
    pub flags: airtcp_core::Flags,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Payload length, bytes.
    pub len: u32,
    /// Acknowledgement number, with its flag.
    pub ack: Option<u32>,
    /// Window field, if it matters.
    pub window: Option<u16>,
    /// Urgent pointer, if URG is set.
    pub urgent: Option<u16>,
    /// Options in order; `None` if they do not matter (`<...>`).
    pub options: Option<Vec<TcpOption>>,
    /// Features of the packet that a segment of airtcp cannot carry.
    pub extra: Vec<&'static str>,
    /// Text of the packet in the script, from the flags on.
    pub text: String,
}

/// A TCP option of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// `nop`: padding.
    Nop,
    /// `eol`: end of the list.
    Eol,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale shift.
    WindowScale(u8),
    /// `sackOK`: SACK is permitted.
    SackPermitted,
    /// SACK blocks: left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Timestamps option (RFC 7323).
    Timestamps {
        /// TSval: clock of the sender.
        value: u32,
        /// TSecr: echo of the receiver's clock.
        echo: u32,
    },
    /// AccECN (RFC 9768).
    AccEcn(airtcp_core::AccEcnOption),
    /// An option that airtcp lacks, by name.
    Other(&'static str),
}

/// A system call and its expected result.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name of the call.
    pub name: String,
    /// Arguments in order.
    pub arguments: Vec<Expr>,
    /// Return time of a call that blocks, relative to the same origin as its start.
    pub end: Option<Duration>,
    /// Expected return value.
    pub result: Expr,
    /// Expected error, such as `EAGAIN`.
    pub errno: Option<String>,
    /// Text of the call in the script.
    pub text: String,
}

/// An argument of a system call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `...`: any value.
    Ellipsis,
    /// A number, decimal or hexadecimal.
    Integer(i64),
    /// A symbol, or several joined by `|`.
    Words(Vec<String>),
    /// A string literal.
    Text(String),
    /// `[a, b]`: a list.
    List(Vec<Expr>),
    /// `{a, name=b}`: a value may have a name.
    Record(Vec<(Option<String>, Expr)>),
    /// `htons(8080)`: a function applied to arguments.
    Apply(String, Vec<Expr>),
}

impl Expr {
    /// The field `name` of a record.
    pub fn field(&self, name: &str) -> Option<&Expr> {
        let Self::Record(fields) = self else { return None };
        fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, value)| value)
    }

    /// The value of a number; `None` for other expressions.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The symbols joined by `|`; none for the number 0.
    pub fn words(&self) -> Option<Vec<&str>> {
        match self {
            Self::Words(words) => Some(words.iter().map(String::as_str).collect()),
            Self::Integer(0) => Some(Vec::new()),
            _ => None,
        }
    }
}
