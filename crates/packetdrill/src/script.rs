//! A script: what it says, without meaning yet.

use airtcp_core::Duration;

/// A script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// File name, as given.
    pub file: String,
    /// `--name=value` lines.
    pub options: Vec<ScriptOption>,
    /// Shell commands before the first event.
    pub setup: Option<String>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// An option line, such as `--tolerance_usecs=10000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOption {
    /// Name, without dashes.
    pub name: String,
    /// Value; empty if the option has none.
    pub value: String,
    /// Line, from 1.
    pub line: usize,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line, from 1.
    pub line: usize,
    /// When.
    pub time: Time,
    /// What.
    pub action: Action,
}

/// When an event happens. Relative times count from the event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// `1.5`: since the start of the script.
    At(Duration),
    /// `+.1`
    After(Duration),
    /// `1.5~1.6`
    AtBetween(Duration, Duration),
    /// `+.1~+.2`
    AfterBetween(Duration, Duration),
    /// `*`: whenever.
    Any,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A TCP segment.
    Packet(Packet),
    /// A packet that is not plain TCP over IP; what it is.
    Foreign(&'static str),
    /// A system call.
    Call(Call),
    /// Shell commands.
    Shell(String),
    /// Code in Python.
    Code(String),
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`: injected.
    Inbound,
    /// `>`: expected of the endpoint.
    Outbound,
}

/// The ECN field that a packet has or is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnField {
    /// This value.
    Is(airtcp_core::Ecn),
    /// `[ect01]`: ECT(0) or ECT(1).
    Ect01,
}

/// A TCP segment as tcpdump writes it. Sequence numbers count from the initial ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Way.
    pub direction: Direction,
    /// ECN field of the IP header, if it matters.
    pub ecn: Option<EcnField>,
    /// Control bits without ACK.
    pub flags: airtcp_core::Flags,
    /// First byte.
    pub seq: u32,
    /// Payload, bytes.
    pub len: u32,
    /// Acknowledgement number, with its flag.
    pub ack: Option<u32>,
    /// Window field, if it matters.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Options in order; `None` if they do not matter (`<...>`).
    pub options: Option<Vec<TcpOption>>,
    /// What else the packet asks for that a segment here cannot carry.
    pub extra: Vec<&'static str>,
    /// As the script writes it, from the flags on.
    pub text: String,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Padding.
    Nop,
    /// End of the list.
    Eol,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale shift.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// AccECN (RFC 9768).
    AccEcn(airtcp_core::AccEcnOption),
    /// One that airtcp does not have; its name.
    Other(&'static str),
}

/// A system call and what it returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Expr>,
    /// For a call that blocks: when it returns, counted as its start is.
    pub end: Option<Duration>,
    /// What it returns.
    pub result: Expr,
    /// The error, if it returns one: `EAGAIN`.
    pub errno: Option<String>,
    /// As the script writes it.
    pub text: String,
}

/// An argument of a system call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `...`
    Ellipsis,
    /// A number.
    Integer(i64),
    /// A symbol, or several joined by `|`.
    Words(Vec<String>),
    /// A string.
    Text(String),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{a, name=b}`: a value may have a name.
    Record(Vec<(Option<String>, Expr)>),
    /// `htons(8080)`
    Apply(String, Vec<Expr>),
}

impl Expr {
    /// The field `name` of a record.
    pub fn field(&self, name: &str) -> Option<&Expr> {
        let Self::Record(fields) = self else { return None };
        fields.iter().find(|(field, _)| field.as_deref() == Some(name)).map(|(_, value)| value)
    }

    /// The number.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The symbols; none for the number 0.
    pub fn words(&self) -> Option<Vec<&str>> {
        match self {
            Self::Words(words) => Some(words.iter().map(String::as_str).collect()),
            Self::Integer(0) => Some(Vec::new()),
            _ => None,
        }
    }
}
