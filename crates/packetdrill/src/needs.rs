//! Features that a script needs and airtcp lacks, as far as the text alone shows.
//!
//! A script that needs one of these is not run: it says nothing about the endpoint.

use crate::python;
use crate::run::info;
use crate::script::{Action, Call, Expr, Packet, Script, TcpOption};
use crate::shell;

/// System calls that the runner's sockets support.
const CALLS: &[&str] = &[
    "accept",
    "accept4",
    "bind",
    "close",
    "connect",
    "fcntl",
    "getsockopt",
    "ioctl",
    "listen",
    "poll",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "write",
    "writev",
];

/// Socket options that the runner's sockets support, or that have no effect here.
const OPTIONS: &[&str] = &[
    "IP_FREEBIND",
    "IP_MTU_DISCOVER",
    "IP_TOS",
    "SO_ERROR",
    "SO_LINGER",
    "SO_MARK",
    "SO_PRIORITY",
    "SO_RCVBUF",
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_SNDBUF",
    "TCP_CONGESTION",
    "TCP_MAXSEG",
    "TCP_NODELAY",
    "TCP_USER_TIMEOUT",
];

/// Flags of calls that are supported, or have no effect here.
const SYMBOLS: &[&str] = &["MSG_DONTWAIT", "MSG_NOSIGNAL"];

/// Features that `script` needs and airtcp lacks, each once, in the order of the script. `files`
/// returns the text of a shell script.
pub(crate) fn of(script: &Script, files: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for option in &script.options {
        match (option.name.as_str(), option.value.as_str()) {
            ("define", _) => found.push("definitions of symbols (--define)".to_owned()),
            ("ip_version", "ipv4-mapped-ipv6") | ("wire_client" | "wire_server", _) => {
                found.push(format!("--{}", option.name));
            }
            _ => {}
        }
    }
    for event in &script.events {
        match &event.action {
            Action::Packet(packet) => of_packet(packet, &mut found),
            Action::Foreign(what) => found.push((*what).to_owned()),
            Action::Call(call) => of_call(call, &mut found),
            Action::Shell(text) => found.extend(shell::read(text, files).needs),
            Action::Code(text) => of_code(text, &mut found),
        }
    }
    once(found)
}

/// Removes repeated needs; keeps the order.
pub(crate) fn once(needs: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for need in needs {
        if !kept.contains(&need) {
            kept.push(need);
        }
    }
    kept
}

fn of_packet(packet: &Packet, found: &mut Vec<String>) {
    found.extend(packet.extra.iter().map(|extra| (*extra).to_owned()));
    for option in packet.options.iter().flatten() {
        if let TcpOption::Other(name) = option {
            found.push((*name).to_owned());
        }
    }
}

fn of_call(call: &Call, found: &mut Vec<String>) {
    let name = call.name.as_str();
    if !CALLS.contains(&name) {
        found.push(format!("the system call `{name}`"));
        return;
    }
    match name {
        "socket" => {
            let stream = call.arguments.get(1).and_then(Expr::words);
            if stream.is_some_and(|words| !words.contains(&"SOCK_STREAM")) {
                found.push("sockets other than TCP".to_owned());
            }
        }
        "setsockopt" | "getsockopt" => of_option(call, found),
        "ioctl" => {
            let request = call.arguments.get(1).and_then(Expr::words).unwrap_or_default();
            if !matches!(request.as_slice(), ["SIOCINQ" | "FIONREAD" | "SIOCOUTQ"]) {
                found.push(format!("ioctl {}", request.join("|")));
            }
        }
        _ => call.arguments.iter().for_each(|argument| of_argument(argument, found)),
    }
}

fn of_option(call: &Call, found: &mut Vec<String>) {
    let Some(Expr::Words(words)) = call.arguments.get(2) else { return };
    let option = words.join("|");
    if option.starts_with("TCP_FASTOPEN") {
        found.push("TCP Fast Open".to_owned());
    } else if !OPTIONS.contains(&option.as_str()) {
        found.push(format!("the socket option {option}"));
    }
}

/// Adds unsupported message flags, and ancillary data.
fn of_argument(argument: &Expr, found: &mut Vec<String>) {
    match argument {
        Expr::Words(words) => {
            for word in words.iter().filter(|word| word.starts_with("MSG_")) {
                if word == "MSG_FASTOPEN" {
                    found.push("TCP Fast Open".to_owned());
                } else if !SYMBOLS.contains(&word.as_str()) {
                    found.push(word.clone());
                }
            }
        }
        Expr::Record(fields) => {
            for (name, value) in fields {
                match name.as_deref() {
                    Some("msg_control") => found.push("ancillary data (msg_control)".to_owned()),
                    _ => of_argument(value, found),
                }
            }
        }
        _ => {}
    }
}

fn of_code(text: &str, found: &mut Vec<String>) {
    match python::parse(text) {
        Ok(statements) => {
            for name in python::names(&statements) {
                if name.starts_with("tcpi_") && !info::has(&name) {
                    found.push(format!("tcp_info's {name}"));
                }
            }
        }
        Err(python::Beyond(what)) => found.push(what),
    }
}
