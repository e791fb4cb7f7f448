//! A packetdrill-like harness: a text script drives one endpoint with exact times.
//!
//! A line is `TIME ACTION`, times in seconds from the start, `#` starts a comment. The actions:
//!
//! | action | meaning |
//! |---|---|
//! | `connect`, `listen`, `close`, `abort` | application calls |
//! | `write N [takes M]`, `read N` | application calls; without `takes` all is accepted |
//! | `link fading`, `link down`, `link up` | the host's radio reports |
//! | `route failed [SEQ]`, `route found` | the network reports; without SEQ, our node's router |
//! | `hops N` | what the peer sends from now on travels N hops |
//! | `< SEGMENT [noread]` | the peer's segment arrives; the application reads all, then `reply` |
//! | `> SEGMENT` | the endpoint sends exactly this, exactly then, after whatever came before |
//! | `? KEY VALUE …` | state of the endpoint, before the timers due at that very time |
//!
//! A segment is `FLAGS SEQ:END(LEN) [ack N] [win N] [<OPTIONS>] [xN]` in tcpdump's notation,
//! numbers relative to the initial sequence numbers; `(N*LEN)` are N segments of LEN bytes, `xN`
//! repeats the whole segment, `wire` says that SEQ is not relative. A segment without `FLAGS SEQ`
//! is a pure ACK at the sequence number after everything its sender has sent. Sent segments must
//! match in flags (PSH only where written), numbers, and in the window and options where written.
//! The peer's window stays as it was last written; its timestamps, when the endpoint's
//! configuration has them, are filled in where not written.
//!
//! Every script runs at several pairs of initial sequence numbers, most of them next to a wrap.
//! Payload bytes are a function of the stream position and are checked in both directions.

use airtcp_core::event::{Connection, Source, Subscriber};
use airtcp_core::{
    Addr, Event, Events, Flags, Flow, Instant, LinkSignal, Options, SackBlock, Segment, SeqNum,
    Timestamps,
};
use airtcp_tcp::{Endpoint, Io, TcpConfig};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Ours and the peer's: ordinary, both next to the wrap, wraps in mid-stream, the sign bit.
const ISNS: [(u32, u32); 5] = [
    (1_000, 500_000),
    (u32::MAX, u32::MAX - 1),
    (u32::MAX - 2_500, 0),
    (u32::MAX - 17, u32::MAX - 3_700),
    (i32::MAX as u32 - 1_500, i32::MAX as u32),
];

/// Runs `script` at every pair of initial sequence numbers; panics with the line that failed.
#[track_caller]
pub(crate) fn run(config: &TcpConfig, script: &str) {
    for (ours, theirs) in ISNS {
        Runner::new(config, SeqNum(ours), SeqNum(theirs)).run(script);
    }
}

/// Byte number `position` of a stream.
fn pattern(position: u32) -> u8 {
    (position.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

fn bytes(from: u32, len: u32) -> Vec<u8> {
    (from..from + len).map(pattern).collect()
}

/// A segment as written, sequence numbers relative.
#[derive(Clone, Debug, Default)]
struct Written {
    /// `None`: a pure ACK where the sender stands.
    seq: Option<u32>,
    len: u32,
    count: u32,
    flags: Flags,
    ack: Option<u32>,
    window: Option<u16>,
    options: Option<WrittenOptions>,
    repeat: u32,
    read: bool,
    /// The sequence number is absolute, as on the wire.
    wire: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct WrittenOptions {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    cwnd: Option<u32>,
}

/// Counts the events that the endpoint's state does not show.
#[derive(Default)]
struct Published {
    established: u32,
    closed: u32,
    aborted: u32,
}

impl Subscriber for Published {
    fn on_event(&mut self, _: Instant, _: Source, event: &Event) {
        match event {
            Event::Established => self.established += 1,
            Event::Closed => self.closed += 1,
            Event::Aborted { .. } => self.aborted += 1,
            _ => {}
        }
    }
}

struct Runner<'a> {
    published: Published,
    config: &'a TcpConfig,
    endpoint: Endpoint<Vec<u8>>,
    isn: SeqNum,
    peer_isn: SeqNum,
    now: Instant,
    out: VecDeque<(Instant, Segment<Vec<u8>>)>,
    line: String,
    /// One past the highest relative sequence number each side has sent.
    sent_end: u32,
    peer_end: u32,
    peer_window: u16,
    hops: Option<u8>,
    written: u32,
    read: u32,
    /// Our timestamp clock at time zero, learnt from our SYN; the last TSval seen.
    clock_base: Option<u32>,
    last_value: u32,
}

impl<'a> Runner<'a> {
    fn new(config: &'a TcpConfig, isn: SeqNum, peer_isn: SeqNum) -> Self {
        let addr = |n| Addr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)), 1000);
        let flow = Flow { src: addr(1), dst: addr(2) };
        Self {
            published: Published::default(),
            config,
            endpoint: Endpoint::new(config.clone(), flow, isn),
            isn,
            peer_isn,
            now: Instant::ZERO,
            out: VecDeque::new(),
            line: String::new(),
            sent_end: 0,
            peer_end: 0,
            peer_window: 60_000,
            hops: None,
            written: 0,
            read: 0,
            clock_base: None,
            last_value: 0,
        }
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let rest: Vec<String> =
            self.out.iter().map(|(at, s)| format!("\n    {at} > {}", self.show(s))).collect();
        panic!(
            "at ISNs {} and {}: {}\n  {what}\n  sent and not yet matched:{}\n  {:?} cwnd {} ssthresh {} \
             flight {} rto {} next deadline {:?}",
            self.isn,
            self.peer_isn,
            self.line,
            if rest.is_empty() { " nothing".to_owned() } else { rest.concat() },
            self.endpoint.state(),
            self.endpoint.cwnd(),
            self.endpoint.ssthresh(),
            self.endpoint.flight(),
            self.endpoint.rto(),
            self.endpoint.next_deadline(),
        );
    }

    /// Formats one of our segments with relative numbers.
    fn show(&self, segment: &Segment<Vec<u8>>) -> String {
        let relative = Segment {
            seq: SeqNum(segment.seq.0.wrapping_sub(self.isn.0)),
            ack: segment.ack.map(|a| SeqNum(a.0.wrapping_sub(self.peer_isn.0))),
            options: Options {
                sack: segment
                    .options
                    .sack
                    .as_slice()
                    .iter()
                    .map(|b| SackBlock {
                        left: SeqNum(b.left.0.wrapping_sub(self.peer_isn.0)),
                        right: SeqNum(b.right.0.wrapping_sub(self.peer_isn.0)),
                    })
                    .collect(),
                timestamps: segment.options.timestamps.map(|t| Timestamps {
                    value: t.value.wrapping_sub(self.clock_base.unwrap_or(0)),
                    echo: t.echo.wrapping_sub(self.peer_clock_base()),
                }),
                ..segment.options
            },
            ..segment.clone()
        };
        relative.to_string()
    }

    /// The peer's timestamp clock at time zero: wraps in some of the runs.
    fn peer_clock_base(&self) -> u32 {
        self.peer_isn.0.wrapping_sub(50)
    }

    fn run(mut self, script: &str) {
        for (number, text) in script.lines().enumerate() {
            let text = text.split('#').next().unwrap_or("").trim();
            if text.is_empty() {
                continue;
            }
            self.line = format!("line {}: {text}", number + 1);
            let (time, action) = text.split_once(' ').unwrap_or_else(|| self.fail("no action"));
            let at = self.time(time);
            self.step(at, action.trim());
        }
        self.line = "end of script".to_owned();
        if !self.out.is_empty() {
            self.fail("unexpected segments");
        }
    }

    fn time(&self, text: &str) -> Instant {
        let (s, fraction) = text.split_once('.').unwrap_or((text, ""));
        let nanos = format!("{fraction:0<9}");
        match (s.parse::<u64>(), nanos.parse::<u64>()) {
            (Ok(s), Ok(n)) if nanos.len() == 9 => Instant::from_nanos(s * 1_000_000_000 + n),
            _ => self.fail("bad time"),
        }
    }

    fn number<T: FromStr>(&self, text: Option<&str>) -> T {
        text.and_then(|t| t.parse().ok()).unwrap_or_else(|| self.fail("bad number"))
    }

    fn step(&mut self, at: Instant, action: &str) {
        if at < self.now {
            self.fail("time runs backwards");
        }
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        if verb == ">" {
            self.expect(at, rest);
            return;
        }
        self.run_timers(|deadline| deadline < at);
        if !self.out.is_empty() {
            self.fail("segments before this line that the script does not expect");
        }
        self.now = at;
        let mut words = rest.split_whitespace();
        match verb {
            "connect" => self.call(|e, now, io| e.connect(now, io)),
            "listen" => self.endpoint.listen(),
            "close" => self.call(|e, now, io| e.close(now, io)),
            "abort" => self.call(|e, now, io| e.abort(now, io)),
            "write" => {
                let len: u32 = self.number(words.next());
                let takes = match words.next() {
                    Some("takes") => self.number(words.next()),
                    _ => len as usize,
                };
                self.write(len, takes);
            }
            "read" => {
                let len: usize = self.number(words.next());
                if self.read(len) != len {
                    self.fail("less to read");
                }
            }
            "link" => {
                let signal = match rest {
                    "fading" => LinkSignal::Fading,
                    "down" => LinkSignal::Down,
                    "up" => LinkSignal::Up,
                    _ => self.fail("unknown signal"),
                };
                self.call(|e, now, io| e.on_link(now, signal, io));
            }
            "route" => match (words.next(), words.next()) {
                (Some("failed"), seq) => {
                    let seq = seq.map(|seq| self.isn + self.number::<u32>(Some(seq)));
                    self.call(|e, now, io| e.on_route_failure(now, seq, io));
                }
                (Some("found"), None) => self.call(|e, now, io| e.on_route_restored(now, io)),
                _ => self.fail("unknown notice"),
            },
            "hops" => self.hops = Some(self.number(words.next())),
            "<" => self.receive(rest),
            "?" => self.check(rest),
            _ => self.fail("unknown action"),
        }
    }

    fn write(&mut self, len: u32, takes: usize) {
        let data = bytes(self.written + 1, len);
        let taken = self.call(|e, now, io| e.write(now, &data, io));
        if taken != takes {
            self.fail(&format!("write took {taken}"));
        }
        self.written += taken as u32;
    }

    /// Calls the endpoint and keeps the segments that it sends.
    fn call<T>(
        &mut self,
        f: impl FnOnce(&mut Endpoint<Vec<u8>>, Instant, &mut Io<'_, Vec<u8>>) -> T,
    ) -> T {
        let mut out = Vec::new();
        let events = Events::new(Some(&mut self.published), Source::Sender(Connection::of(0)));
        let mut io = Io { out: &mut out, events };
        let result = f(&mut self.endpoint, self.now, &mut io);
        self.out.extend(out.into_iter().map(|s| (self.now, s)));
        result
    }

    fn run_timers(&mut self, due: impl Fn(Instant) -> bool) {
        for _ in 0..1000 {
            match self.endpoint.next_deadline() {
                Some(deadline) if due(deadline) => {
                    self.now = self.now.max(deadline);
                    self.call(|e, now, io| e.on_timer(now, io));
                    if self.endpoint.next_deadline().is_some_and(|next| next < self.now) {
                        self.fail("a deadline that has passed survives on_timer");
                    }
                }
                _ => return,
            }
        }
        self.fail("a timer expires forever");
    }

    fn read(&mut self, max: usize) -> usize {
        let data = self.call(|e, now, io| e.read(now, max, io));
        if data != bytes(self.read + 1, data.len() as u32) {
            self.fail("wrong bytes read");
        }
        self.read += data.len() as u32;
        data.len()
    }

    fn receive(&mut self, text: &str) {
        let written = self.parse(text);
        self.peer_window = written.window.unwrap_or(self.peer_window);
        for n in 0..written.count * written.repeat {
            let part = n % written.count;
            let seq = written.seq.unwrap_or(self.peer_end) + part * written.len;
            let flags = if part + 1 == written.count { written.flags } else { Flags::empty() };
            let segment = self.incoming(&written, seq, flags);
            self.peer_end = self.peer_end.max(seq + segment.seq_len());
            let hops = self.hops;
            self.call(|e, now, io| e.on_segment_over(now, &segment, hops, io));
            if written.read {
                self.read(usize::MAX);
            }
            self.call(|e, now, io| e.reply(now, io));
        }
    }

    fn incoming(&self, written: &Written, seq: u32, flags: Flags) -> Segment<Vec<u8>> {
        let options = written.options.clone().unwrap_or_default();
        let elapsed = (self.now.since_start().as_millis()) as u32;
        let timestamps = match options.timestamps {
            Some((value, echo)) => Some(Timestamps {
                value: self.peer_clock_base().wrapping_add(value),
                echo: self.clock_base.unwrap_or(0).wrapping_add(echo),
            }),
            None if self.config.timestamps && written.options.is_none() => Some(Timestamps {
                value: self.peer_clock_base().wrapping_add(elapsed),
                echo: self.last_value,
            }),
            None => None,
        };
        Segment {
            flow: self.endpoint.flow().reversed(),
            seq: self.peer_isn + seq,
            ack: written.ack.map(|n| self.isn + n),
            window: self.peer_window,
            flags,
            ecn: Default::default(),
            options: Options {
                mss: options.mss,
                window_scale: options.window_scale,
                sack_permitted: options.sack_permitted,
                timestamps,
                sack: options
                    .sack
                    .iter()
                    .map(|&(l, r)| SackBlock { left: self.isn + l, right: self.isn + r })
                    .collect(),
                cwnd: options.cwnd,
                accecn: None,
            },
            payload: bytes(seq, written.len),
        }
    }

    fn expect(&mut self, at: Instant, text: &str) {
        let written = self.parse(text);
        for n in 0..written.count * written.repeat {
            let part = n % written.count;
            if self.out.is_empty() {
                self.run_timers(|deadline| deadline < at);
            }
            if self.out.is_empty() {
                self.now = at;
                self.run_timers(|deadline| deadline <= at);
            }
            let Some((sent_at, segment)) = self.out.front().cloned() else {
                self.fail("nothing was sent")
            };
            if sent_at != at {
                self.fail(&format!("sent at {sent_at}: {}", self.show(&segment)));
            }
            let offset = part * written.len;
            let seq = written.seq.unwrap_or(self.sent_end) + offset;
            let last = part + 1 == written.count;
            if let Some(error) = self.mismatch(&written, seq, last, &segment) {
                self.fail(&format!("got {}: {error}", self.show(&segment)));
            }
            if !segment.flags.contains(Flags::RST) {
                self.sent_end = self.sent_end.max(seq + segment.seq_len());
            }
            if let Some(ts) = segment.options.timestamps {
                self.last_value = ts.value;
            }
            self.out.pop_front();
        }
    }

    fn mismatch(
        &mut self,
        written: &Written,
        seq: u32,
        last: bool,
        segment: &Segment<Vec<u8>>,
    ) -> Option<String> {
        let relative = |n: SeqNum, origin: SeqNum| n.0.wrapping_sub(origin.0);
        let origin = if written.wire { SeqNum(0) } else { self.isn };
        if relative(segment.seq, origin) != seq {
            return Some(format!("sequence number is not {seq}"));
        }
        if segment.payload.len() as u32 != written.len {
            return Some(format!("length is not {}", written.len));
        }
        if segment.payload != bytes(seq, written.len) {
            return Some("wrong payload".to_owned());
        }
        let flags = if last { written.flags } else { Flags::empty() };
        let compared =
            if flags.contains(Flags::PSH) { Flags::all() } else { !Flags::PSH & Flags::all() };
        if segment.flags & compared != flags {
            return Some(format!("flags are not {flags:?}"));
        }
        if segment.ack.map(|a| relative(a, self.peer_isn)) != written.ack {
            return Some(format!("ack is not {:?}", written.ack));
        }
        if written.window.is_some_and(|w| w != segment.window) {
            return Some(format!("window is not {:?}", written.window));
        }
        if let Some(ts) = segment.options.timestamps {
            let elapsed = self.now.since_start().as_millis() as u32;
            let base = *self.clock_base.get_or_insert(ts.value.wrapping_sub(elapsed));
            if ts.value != base.wrapping_add(elapsed) {
                return Some("the timestamp clock jumped".to_owned());
            }
        }
        let expected = written.options.as_ref()?;
        let got = self.relative_options(segment);
        (got != *expected).then(|| format!("options are {got:?}"))
    }

    /// The options of one of our segments with relative numbers.
    fn relative_options(&self, segment: &Segment<Vec<u8>>) -> WrittenOptions {
        let options = &segment.options;
        let relative = |n: SeqNum| n.0.wrapping_sub(self.peer_isn.0);
        let blocks = options.sack.as_slice().iter();
        WrittenOptions {
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.map(|t| {
                // Before the peer's first timestamp there is nothing to echo: plain zero.
                let origin = if segment.ack.is_some() { self.peer_clock_base() } else { 0 };
                (t.value.wrapping_sub(self.clock_base.unwrap_or(0)), t.echo.wrapping_sub(origin))
            }),
            sack: blocks.map(|b| (relative(b.left), relative(b.right))).collect(),
            cwnd: options.cwnd,
        }
    }

    fn parse(&self, text: &str) -> Written {
        let mut written = Written { count: 1, repeat: 1, read: true, ..Written::default() };
        let mut rest = text;
        if let Some((head, tail)) = text.split_once('<') {
            let (options, tail) =
                tail.split_once('>').unwrap_or_else(|| self.fail("options without end"));
            written.options = Some(self.parse_options(options));
            let joined = format!("{head} {tail}");
            return self.parse_words(&joined, written);
        }
        rest = rest.trim();
        self.parse_words(rest, written)
    }

    fn parse_words(&self, text: &str, mut written: Written) -> Written {
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "ack" => written.ack = Some(self.number(words.next())),
                "win" => written.window = Some(self.number(words.next())),
                "wire" => written.wire = true,
                "noread" => written.read = false,
                _ if word.contains(':') => self.parse_range(word, &mut written),
                _ if word.starts_with('x') => written.repeat = self.number(word.get(1..)),
                _ => {
                    for letter in word.chars() {
                        written.flags |= match letter {
                            'S' => Flags::SYN,
                            'F' => Flags::FIN,
                            'R' => Flags::RST,
                            'P' => Flags::PSH,
                            '.' => Flags::empty(),
                            _ => self.fail("unknown word"),
                        };
                    }
                }
            }
        }
        written
    }

    /// Parses `1:2001(2000)` or `1:2001(2*1000)`.
    fn parse_range(&self, word: &str, written: &mut Written) {
        let parts: Vec<&str> = word.split([':', '(', ')']).collect();
        let [seq, end, len, _] = parts[..] else { self.fail("bad range") };
        let (count, len) = len.split_once('*').unwrap_or(("1", len));
        let seq = self.number(Some(seq));
        written.seq = Some(seq);
        written.count = self.number(Some(count));
        written.len = self.number(Some(len));
        if seq + written.count * written.len != self.number::<u32>(Some(end)) {
            self.fail("range and length differ");
        }
    }

    fn parse_options(&self, text: &str) -> WrittenOptions {
        let mut options = WrittenOptions::default();
        for option in text.split(',') {
            let words: Vec<&str> = option.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["mss", n] => options.mss = Some(self.number(Some(n))),
                ["wscale", n] => options.window_scale = Some(self.number(Some(n))),
                ["cwnd", n] => options.cwnd = Some(self.number(Some(n))),
                ["sackOK"] => options.sack_permitted = true,
                ["TS", "val", value, "ecr", echo] => {
                    options.timestamps = Some((self.number(Some(value)), self.number(Some(echo))));
                }
                ["sack", ref blocks @ ..] => {
                    for block in blocks {
                        let (left, right) =
                            block.split_once(':').unwrap_or_else(|| self.fail("bad block"));
                        options.sack.push((self.number(Some(left)), self.number(Some(right))));
                    }
                }
                _ => self.fail("unknown option"),
            }
        }
        options
    }

    fn check(&self, text: &str) {
        let e = &self.endpoint;
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.chunks(2) {
            let [key, expected] = pair else { self.fail("a key without a value") };
            let got = match *key {
                "state" => format!("{:?}", e.state()),
                "cwnd" => e.cwnd().to_string(),
                "ssthresh" => e.ssthresh().to_string(),
                "flight" => e.flight().to_string(),
                "peerwnd" => e.send_window().to_string(),
                "rto" => e.rto().as_secs_f64().to_string(),
                "srtt" => e.rtt().map_or("none".into(), |r| r.srtt.as_secs_f64().to_string()),
                "rttvar" => e.rtt().map_or("none".into(), |r| r.rttvar.as_secs_f64().to_string()),
                "persisting" => e.is_persisting().to_string(),
                "standby" => e.is_standing_by().to_string(),
                "aborted" => e.aborted().map_or("no".into(), |r| format!("{r:?}")),
                "published" => {
                    let Published { established, closed, aborted } = &self.published;
                    format!("established:{established},closed:{closed},aborted:{aborted}")
                }
                "eof" => e.is_eof().to_string(),
                "allacked" => e.is_all_acked().to_string(),
                "readable" => e.readable().to_string(),
                "timer" => e
                    .next_deadline()
                    .map_or("none".into(), |d| d.since_start().as_secs_f64().to_string()),
                "timeouts" => e.stats().timeouts.to_string(),
                "fewdups" => e.stats().timeouts_after_duplicates.to_string(),
                "larger" => e.stats().larger_restarts.to_string(),
                "fast" => e.stats().fast_retransmits.to_string(),
                "reductions" => e.stats().cwnd_reductions.to_string(),
                "spurious" => e.stats().spurious_detected.to_string(),
                "retransmitted" => e.stats().segments_retransmitted.to_string(),
                "probes" => e.stats().window_probes.to_string(),
                "acks" => e.stats().acks_sent.to_string(),
                "dups" => e.stats().duplicate_acks_received.to_string(),
                "useless" => e.stats().duplicate_segments_received.to_string(),
                _ => self.fail("unknown key"),
            };
            if got != *expected {
                self.fail(&format!("{key} is {got}"));
            }
        }
    }
}
