//! System calls on the sockets of the host, as POSIX and Linux define them.

use super::host::{Host, Socket, SocketKind};
use crate::linux::set_congestion;
use crate::script::{Call, Expr};
use airtcp_core::event::AbortReason;
use airtcp_core::{Bytes, Duration, Instant, Length};
use airtcp_tcp::TcpState;
use airtcp_tcp::config::Nagle;
use std::collections::VecDeque;

/// Outcome of a system call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Return {
    /// The call returns this value.
    Value(i64),
    /// The call returns -1 with this errno.
    Error(&'static str),
    /// The call has not returned yet.
    Blocks,
    /// The return value is right, but the data that the call stores is not.
    Wrong { expected: String, got: String },
    /// The call needs a feature that airtcp lacks.
    Lacks(String),
}

const DONE: Return = Return::Value(0);
const BAD_DESCRIPTOR: Return = Return::Error("EBADF");

/// Calls whose second argument is a buffer.
const TRANSFERS: &[&str] = &["read", "recv", "recvfrom", "write", "send", "sendto"];

/// A call in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) since: Instant,
    /// True for the first attempt; later ones follow each event.
    pub(super) first: bool,
    /// Bytes that a write has passed to the endpoint so far.
    pub(super) written: u64,
}

impl Host {
    /// Carries out a call as far as possible.
    pub(super) fn call(&mut self, now: Instant, call: &Call, progress: &mut Progress) -> Return {
        let number = |index: usize| call.arguments.get(index).and_then(Expr::integer);
        if call.name == "socket" {
            return self.socket(call);
        }
        if call.name == "poll" {
            return self.poll(now, call, progress);
        }
        let Some(fd) = number(0).filter(|fd| self.sockets.contains_key(fd)) else {
            return BAD_DESCRIPTOR;
        };
        let no_buffer = matches!(call.arguments.get(1), Some(Expr::Words(w)) if w == &["NULL"]);
        if no_buffer && TRANSFERS.contains(&call.name.as_str()) && number(2) != Some(0) {
            return Return::Error("EFAULT");
        }
        match call.name.as_str() {
            "bind" => DONE,
            "listen" => self.listen(fd),
            "accept" | "accept4" => self.accept(fd, call),
            "connect" => self.connect(now, fd, progress),
            "read" | "recv" | "recvfrom" => {
                self.read(now, fd, number(2).unwrap_or(0), has_flag(call, 3, "MSG_DONTWAIT"))
            }
            "recvmsg" | "readv" => {
                self.read(now, fd, vector_len(call), has_flag(call, 2, "MSG_DONTWAIT"))
            }
            "write" | "send" | "sendto" => {
                let dont_wait = has_flag(call, 3, "MSG_DONTWAIT");
                self.write(now, fd, number(2).unwrap_or(0), dont_wait, progress)
            }
            "sendmsg" | "writev" => {
                let dont_wait = has_flag(call, 2, "MSG_DONTWAIT");
                self.write(now, fd, vector_len(call), dont_wait, progress)
            }
            "close" => self.close(now, fd),
            "shutdown" => self.shutdown(now, fd, call),
            "fcntl" => self.fcntl(fd, call),
            "ioctl" => self.ioctl(fd, call),
            "setsockopt" => self.set_option(fd, call),
            "getsockopt" => self.option(fd, call),
            name => Return::Lacks(format!("the system call `{name}`")),
        }
    }

    fn new_socket(&self, kind: SocketKind) -> Socket {
        Socket {
            config: self.config.clone(),
            kind,
            nonblocking: false,
            send_buffer: None,
            resets_on_close: false,
            shut_read: false,
        }
    }

    /// Opens a socket; the script chooses the descriptor.
    fn socket(&mut self, call: &Call) -> Return {
        let Some(fd @ 0..) = call.result.integer() else { return Return::Value(3) };
        let socket = self.new_socket(SocketKind::Fresh);
        self.sockets.insert(fd, socket);
        Return::Value(fd)
    }

    fn listen(&mut self, fd: i64) -> Return {
        let Some(socket) = self.sockets.get_mut(&fd) else { return BAD_DESCRIPTOR };
        match socket.kind {
            SocketKind::Fresh => {
                socket.kind = SocketKind::Listener(VecDeque::new());
                self.awaits_syn = true;
                DONE
            }
            SocketKind::Listener(_) => DONE,
            SocketKind::Connected(_) => Return::Error("EINVAL"),
        }
    }

    fn accept(&mut self, fd: i64, call: &Call) -> Return {
        let Some(socket) = self.sockets.get_mut(&fd) else { return BAD_DESCRIPTOR };
        let SocketKind::Listener(queue) = &mut socket.kind else { return Return::Error("EINVAL") };
        let Some(index) = queue.pop_front() else {
            return if socket.nonblocking { Return::Error("EAGAIN") } else { Return::Blocks };
        };
        let accepted = call.result.integer().filter(|fd| *fd >= 0).unwrap_or(fd + 1);
        let send_buffer = socket.send_buffer;
        let config = self.connections[index].config.clone();
        let mut socket = self.new_socket(SocketKind::Connected(index));
        socket.config = config;
        socket.send_buffer = send_buffer;
        socket.nonblocking = has_flag(call, 3, "SOCK_NONBLOCK");
        self.sockets.insert(accepted, socket);
        Return::Value(accepted)
    }

    fn connect(&mut self, now: Instant, fd: i64, progress: &Progress) -> Return {
        let Some(socket) = self.sockets.get(&fd) else { return BAD_DESCRIPTOR };
        let (config, nonblocking) = (socket.config.clone(), socket.nonblocking);
        match socket.kind {
            SocketKind::Listener(_) => Return::Error("EISCONN"),
            SocketKind::Fresh => {
                let index = self.open(now, &config, None);
                if let Some(socket) = self.sockets.get_mut(&fd) {
                    socket.kind = SocketKind::Connected(index);
                }
                self.with(now, index, |endpoint, io| endpoint.connect(now, io));
                if nonblocking { Return::Error("EINPROGRESS") } else { Return::Blocks }
            }
            SocketKind::Connected(index) => match self.connections[index].endpoint.state() {
                TcpState::SynSent | TcpState::SynReceived if nonblocking => {
                    Return::Error("EALREADY")
                }
                TcpState::SynSent | TcpState::SynReceived => Return::Blocks,
                TcpState::Closed => self.error_of(index).unwrap_or(Return::Error("ECONNREFUSED")),
                // The call that waited for the connection, or the first after it.
                _ if !progress.first || nonblocking => DONE,
                _ => Return::Error("EISCONN"),
            },
        }
    }

    /// Index of a descriptor's connection.
    fn connected(&self, fd: i64) -> Option<usize> {
        match self.sockets.get(&fd)?.kind {
            SocketKind::Connected(index) => Some(index),
            _ => None,
        }
    }

    /// Error of an aborted connection, reported once.
    fn error_of(&mut self, index: usize) -> Option<Return> {
        let connection = &mut self.connections[index];
        let reason = connection.endpoint.aborted()?;
        if std::mem::replace(&mut connection.error_told, true) {
            return None;
        }
        match reason {
            AbortReason::RetransmissionLimit | AbortReason::UserTimeout => {
                Some(Return::Error("ETIMEDOUT"))
            }
            AbortReason::Reset => Some(Return::Error("ECONNRESET")),
            AbortReason::User => None,
        }
    }

    fn read(&mut self, now: Instant, fd: i64, max: i64, dont_wait: bool) -> Return {
        let Some(index) = self.connected(fd) else { return Return::Error("ENOTCONN") };
        let endpoint = &self.connections[index].endpoint;
        if endpoint.readable() > 0 {
            let max = usize::try_from(max).unwrap_or(0);
            let data = self.with(now, index, |endpoint, io| endpoint.read(now, max, io));
            return Return::Value(data.0 as i64);
        }
        let ended = endpoint.is_eof() || endpoint.state() == TcpState::Closed;
        if let Some(error) = self.error_of(index) {
            return error;
        }
        let Some(socket) = self.sockets.get(&fd) else { return BAD_DESCRIPTOR };
        if ended || socket.shut_read {
            Return::Value(0)
        } else if socket.nonblocking || dont_wait {
            Return::Error("EAGAIN")
        } else {
            Return::Blocks
        }
    }

    fn write(
        &mut self,
        now: Instant,
        fd: i64,
        len: i64,
        dont_wait: bool,
        progress: &mut Progress,
    ) -> Return {
        let Some(index) = self.connected(fd) else { return Return::Error("EPIPE") };
        if let Some(error) = self.error_of(index) {
            return error;
        }
        let len = u64::try_from(len).unwrap_or(0);
        let state = self.connections[index].endpoint.state();
        let opening = matches!(state, TcpState::SynSent | TcpState::SynReceived);
        if !opening && !matches!(state, TcpState::Established | TcpState::CloseWait) {
            return Return::Error("EPIPE");
        }
        if !opening {
            let rest = Length(len - progress.written);
            let taken = self.with(now, index, |endpoint, io| endpoint.write(now, &rest, io));
            progress.written += taken as u64;
        }
        let waits = !dont_wait && self.sockets.get(&fd).is_some_and(|socket| !socket.nonblocking);
        match progress.written {
            written if written == len => Return::Value(len as i64),
            _ if waits => Return::Blocks,
            0 => Return::Error("EAGAIN"),
            written => Return::Value(written as i64),
        }
    }

    fn close(&mut self, now: Instant, fd: i64) -> Return {
        let Some(socket) = self.sockets.remove(&fd) else { return BAD_DESCRIPTOR };
        match socket.kind {
            SocketKind::Fresh => {}
            SocketKind::Listener(queue) => {
                for index in queue {
                    self.with(now, index, |endpoint, io| endpoint.abort(now, io));
                }
            }
            SocketKind::Connected(index) => {
                self.connections[index].orphan = true;
                let unread = self.connections[index].endpoint.readable() > 0;
                self.with(now, index, |endpoint, io| {
                    // Data that nobody will read is lost: the peer must know (RFC 2525 §2.17).
                    if unread || socket.resets_on_close {
                        endpoint.abort(now, io);
                    } else {
                        endpoint.close(now, io);
                    }
                });
            }
        }
        DONE
    }

    fn shutdown(&mut self, now: Instant, fd: i64, call: &Call) -> Return {
        let Some(index) = self.connected(fd) else { return Return::Error("ENOTCONN") };
        let how = call.arguments.get(1).and_then(Expr::words).unwrap_or_default();
        if matches!(how.as_slice(), ["SHUT_RD" | "SHUT_RDWR"])
            && let Some(socket) = self.sockets.get_mut(&fd)
        {
            socket.shut_read = true;
        }
        if matches!(how.as_slice(), ["SHUT_WR" | "SHUT_RDWR"]) {
            self.with(now, index, |endpoint, io| endpoint.close(now, io));
        }
        DONE
    }

    fn fcntl(&mut self, fd: i64, call: &Call) -> Return {
        /// `O_RDWR` and `O_NONBLOCK` on Linux.
        const READ_WRITE: i64 = 0x2;
        const NONBLOCK: i64 = 0x800;
        let Some(socket) = self.sockets.get_mut(&fd) else { return BAD_DESCRIPTOR };
        let command = call.arguments.get(1).and_then(Expr::words).unwrap_or_default();
        match command.as_slice() {
            ["F_SETFL"] => {
                let flags = call.arguments.get(2).and_then(Expr::words).unwrap_or_default();
                socket.nonblocking = flags.contains(&"O_NONBLOCK");
                DONE
            }
            ["F_GETFL"] => {
                Return::Value(READ_WRITE | if socket.nonblocking { NONBLOCK } else { 0 })
            }
            _ => Return::Lacks(format!("fcntl {}", command.join("|"))),
        }
    }

    fn ioctl(&mut self, fd: i64, call: &Call) -> Return {
        let Some(index) = self.connected(fd) else { return Return::Error("EINVAL") };
        let endpoint = &self.connections[index].endpoint;
        let request = call.arguments.get(1).and_then(Expr::words).unwrap_or_default();
        let got = match request.as_slice() {
            ["SIOCOUTQ"] => i64::from(endpoint.unacknowledged()),
            _ => endpoint.readable() as i64,
        };
        shown(call.arguments.get(2), got)
    }

    fn set_option(&mut self, fd: i64, call: &Call) -> Return {
        let option = option_name(call);
        let value = call.arguments.get(3).and_then(only);
        let number = value.and_then(Expr::integer);
        let Some(socket) = self.sockets.get_mut(&fd) else { return BAD_DESCRIPTOR };
        let open = matches!(socket.kind, SocketKind::Connected(_));
        let late = |needed: bool| match needed {
            true => Return::Lacks(format!("{option} on an open connection")),
            false => DONE,
        };
        match (option.as_str(), number) {
            ("SO_SNDBUF", Some(size)) => socket.send_buffer = Some(size),
            ("SO_RCVBUF", Some(size @ 1..)) if !open => {
                socket.config.receive_buffer = Bytes(size as u64);
                socket.config.autotuning = false;
            }
            ("SO_RCVBUF", _) => return late(true),
            ("SO_LINGER", _) => {
                let field = |name| value.and_then(|v| v.field(name)).and_then(Expr::integer);
                socket.resets_on_close =
                    field("onoff").is_some_and(|on| on != 0) && field("linger") == Some(0);
            }
            ("TCP_NODELAY", Some(on)) => {
                let nagle = if on == 0 { Nagle::Minshall } else { Nagle::Off };
                let changes = socket.config.nagle != nagle;
                socket.config.nagle = nagle;
                return late(open && changes);
            }
            ("TCP_MAXSEG", Some(mss)) => {
                let Ok(mss @ 88..=32_767) = u16::try_from(mss) else {
                    return Return::Error("EINVAL");
                };
                let changes = socket.config.mss != mss;
                socket.config.mss = mss;
                return late(open && changes);
            }
            ("TCP_USER_TIMEOUT", Some(millis @ 0..)) => {
                let timeout = (millis > 0).then(|| Duration::from_millis(millis as u64));
                socket.config.user_timeout = timeout;
                if let SocketKind::Connected(index) = socket.kind {
                    self.connections[index].endpoint.set_user_timeout(timeout);
                }
            }
            ("TCP_CONGESTION", _) => {
                let before = socket.config.congestion;
                let name = value.map(word_or_text).unwrap_or_default();
                if let Err(need) = set_congestion(&mut socket.config, &name) {
                    return Return::Lacks(need);
                }
                let changes = socket.config.congestion != before;
                return late(open && changes);
            }
            _ => {}
        }
        DONE
    }

    fn option(&mut self, fd: i64, call: &Call) -> Return {
        let option = option_name(call);
        let Some(socket) = self.sockets.get(&fd) else { return BAD_DESCRIPTOR };
        let index = self.connected(fd);
        let got = match option.as_str() {
            "SO_ERROR" => match index.and_then(|index| self.error_of(index)) {
                Some(Return::Error(error)) => {
                    let got = error.to_owned();
                    let expected = call.arguments.get(3).map(show).unwrap_or_default();
                    let same = expected == format!("[{got}]");
                    return if same { DONE } else { Return::Wrong { expected, got } };
                }
                _ => 0,
            },
            // Linux keeps twice what was asked for, for its own bookkeeping (socket(7)).
            "SO_SNDBUF" => match socket.send_buffer {
                Some(size) => 2 * size,
                None => socket.config.send_buffer.get() as i64,
            },
            "TCP_NODELAY" => i64::from(socket.config.nagle == Nagle::Off),
            "TCP_MAXSEG" => match index {
                Some(index) => i64::from(self.connections[index].endpoint.mss()),
                None => i64::from(socket.config.mss),
            },
            _ => return Return::Lacks(format!("reading the socket option {option}")),
        };
        shown(call.arguments.get(3), got)
    }

    fn poll(&mut self, now: Instant, call: &Call, progress: &Progress) -> Return {
        let Some(Expr::List(polled)) = call.arguments.first() else {
            return Return::Error("EFAULT");
        };
        let mut ready = 0;
        let mut wrong = None;
        for entry in polled {
            let fd = entry.field("fd").and_then(Expr::integer).unwrap_or(-1);
            let words = |name| entry.field(name).and_then(Expr::words).unwrap_or_default();
            let (asked, wanted) = (words("events"), words("revents"));
            let mut got: Vec<&str> = self.readiness(fd);
            got.retain(|event| asked.contains(event) || matches!(*event, "POLLHUP" | "POLLERR"));
            ready += i64::from(!got.is_empty());
            let mut sorted = wanted.clone();
            sorted.sort_unstable();
            got.sort_unstable();
            if sorted != got {
                let (expected, got) = (wanted.join("|"), got.join("|"));
                wrong = Some(Return::Wrong { expected, got });
            }
        }
        let timeout = call.arguments.get(2).and_then(Expr::integer).unwrap_or(0);
        let over = u64::try_from(timeout)
            .is_ok_and(|millis| now >= progress.since + Duration::from_millis(millis));
        match wrong {
            _ if ready == 0 && !over => Return::Blocks,
            Some(wrong) => wrong,
            None => Return::Value(ready),
        }
    }

    /// Events that `poll` would report for a descriptor if it asked for all.
    fn readiness(&self, fd: i64) -> Vec<&'static str> {
        let Some(socket) = self.sockets.get(&fd) else { return vec!["POLLNVAL"] };
        let SocketKind::Connected(index) = socket.kind else {
            let waits = matches!(&socket.kind, SocketKind::Listener(queue) if !queue.is_empty());
            return if waits { vec!["POLLIN"] } else { Vec::new() };
        };
        let endpoint = &self.connections[index].endpoint;
        let state = endpoint.state();
        let opening = matches!(state, TcpState::SynSent | TcpState::SynReceived);
        let peer_closed = endpoint.is_eof() || state == TcpState::Closed;
        let mut events = Vec::new();
        if endpoint.readable() > 0 || peer_closed || socket.shut_read {
            events.push("POLLIN");
        }
        if peer_closed {
            events.push("POLLRDHUP");
        }
        if !opening && (state == TcpState::Closed || endpoint.send_space() > 0) {
            events.push("POLLOUT");
        }
        if state == TcpState::Closed {
            events.push("POLLHUP");
        }
        if endpoint.aborted().is_some() && !self.connections[index].error_told {
            events.push("POLLERR");
        }
        events
    }
}

fn option_name(call: &Call) -> String {
    call.arguments.get(2).and_then(Expr::words).unwrap_or_default().join("|")
}

/// The only element of a list, or the value itself.
fn only(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::List(items) => items.first(),
        other => Some(other),
    }
}

fn word_or_text(expr: &Expr) -> String {
    match expr {
        Expr::Text(text) => text.clone(),
        Expr::Words(words) => words.join("|"),
        _ => String::new(),
    }
}

/// Total length of the parts of a message or vector of buffers.
fn vector_len(call: &Call) -> i64 {
    let Some(vector) = call.arguments.get(1) else { return 0 };
    let parts = vector.field("msg_iov").unwrap_or(vector);
    let Expr::List(parts) = parts else { return 0 };
    let len = |part: &Expr| match part {
        Expr::Record(fields) => fields.last().and_then(|(_, value)| value.integer()).unwrap_or(0),
        _ => 0,
    };
    parts.iter().map(len).fold(0, i64::saturating_add)
}

fn has_flag(call: &Call, index: usize, flag: &str) -> bool {
    let words = call.arguments.get(index).and_then(Expr::words).unwrap_or_default();
    words.contains(&flag)
}

/// Checks a number that a call stores where the script can see it, such as `[1000]`.
fn shown(expected: Option<&Expr>, got: i64) -> Return {
    match expected.and_then(only) {
        Some(Expr::Integer(value)) if *value != got => {
            Return::Wrong { expected: format!("[{value}]"), got: format!("[{got}]") }
        }
        _ => DONE,
    }
}

fn show(expr: &Expr) -> String {
    match expr {
        Expr::List(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        Expr::Integer(value) => value.to_string(),
        other => word_or_text(other),
    }
}
