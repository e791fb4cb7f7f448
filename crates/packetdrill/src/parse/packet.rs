//! Packets: TCP segments as tcpdump writes them. Other packets are named, and their line skipped.

use crate::script::{Action, Direction, EcnField, Packet, TcpOption};
use crate::source::{Cursor, Parsed};
use airtcp_core::{AccEcnOption, AccEcnOrder, Ecn, EcnBytes, Flags};

/// Words that begin something other than a plain TCP segment, and its name.
const FOREIGN: &[(&str, &str)] = &[
    ("icmp", "ICMP"),
    ("udp", "UDP"),
    ("ipv4", "encapsulated packets"),
    ("ipv6", "encapsulated packets"),
    ("gre", "encapsulated packets"),
    ("GREv0", "encapsulated packets"),
    ("mpls", "encapsulated packets"),
];

pub(super) fn packet(cursor: &mut Cursor<'_>) -> Parsed<Action> {
    let direction = if cursor.eat("<")? { Direction::Inbound } else { Direction::Outbound };
    if direction == Direction::Outbound {
        cursor.expect(">")?;
    }
    let mut extra = Vec::new();
    if let Some(foreign) = foreign(cursor)? {
        return Ok(Action::Foreign(foreign));
    }
    let ecn = ip_info(cursor, direction, &mut extra)?;
    if let Some(foreign) = foreign(cursor)? {
        return Ok(Action::Foreign(foreign));
    }
    if cursor.eat_word("encap")? {
        cursor.take_while(|c| c != '\n');
        return Ok(Action::Foreign("encapsulated packets"));
    }
    ports(cursor, &mut extra)?;
    let text = segment_text(cursor)?;
    let (flags, has_ack) = flags(cursor, &mut extra)?;
    let (seq, len) = sequence(cursor)?;
    let ack = if cursor.eat_word("ack")? {
        Some(cursor.number("an acknowledgement number")?)
    } else {
        // packetdrill then writes 0.
        has_ack.then_some(0)
    };
    let window =
        if cursor.eat_word("win")? { Some(cursor.number("a window of 16 bits")?) } else { None };
    let urgent =
        if cursor.eat_word("urg")? { Some(cursor.number("an urgent pointer")?) } else { None };
    let options = options(cursor, direction)?;
    let ack = ack.filter(|_| has_ack);
    Ok(Action::Packet(Packet {
        direction,
        ecn,
        flags,
        seq,
        len,
        ack,
        window,
        urgent,
        options,
        extra,
        text,
    }))
}

/// Skips the line of a packet that is not a plain TCP segment; returns its name.
fn foreign(cursor: &mut Cursor<'_>) -> Parsed<Option<&'static str>> {
    let word = cursor.peek_word()?;
    let known = FOREIGN.iter().find(|(first, _)| *first == word);
    if known.is_some() {
        cursor.take_while(|c| c != '\n');
    }
    Ok(known.map(|(_, name)| *name))
}

/// Parses IP fields such as `[ect0]`, `(tos 0x2)` or `[ttl 1]`.
fn ip_info(
    cursor: &mut Cursor<'_>,
    direction: Direction,
    extra: &mut Vec<&'static str>,
) -> Parsed<Option<EcnField>> {
    let end = match cursor.peek()? {
        Some('[') => "]",
        Some('(') => ")",
        _ => return Ok(None),
    };
    cursor.eat("[")?;
    cursor.eat("(")?;
    let mut ecn = None;
    loop {
        let place = *cursor;
        match cursor.word("`ect0`, `ect1`, `ce`, `noecn`, `tos`, `ttl` or `flowlabel`")? {
            "noecn" => ecn = Some(EcnField::Is(Ecn::NotEct)),
            "ect0" => ecn = Some(EcnField::Is(Ecn::Ect0)),
            "ect1" => ecn = Some(EcnField::Is(Ecn::Ect1)),
            "ce" => ecn = Some(EcnField::Is(Ecn::Ce)),
            "ect01" if direction == Direction::Outbound => ecn = Some(EcnField::Ect01),
            "tos" => {
                let tos: u8 = cursor.number("the 8 bits of the TOS field")?;
                ecn = Some(EcnField::Is(Ecn::from_bits(tos)));
                if tos > 3 {
                    extra.push("DSCP");
                }
            }
            "ttl" => {
                cursor.number::<u8>("a TTL")?;
                extra.push("TTL");
            }
            "flowlabel" => {
                cursor.number::<u32>("a flow label")?;
                extra.push("IPv6 flow labels");
            }
            _ => {
                return Err(
                    place.expected("`ect0`, `ect1`, `ce`, `noecn`, `tos`, `ttl` or `flowlabel`")
                );
            }
        }
        if !cursor.eat(",")? {
            break;
        }
    }
    cursor.expect(end)?;
    Ok(ecn)
}

/// Parses ports such as `8080 > 1234`.
fn ports(cursor: &mut Cursor<'_>, extra: &mut Vec<&'static str>) -> Parsed<()> {
    let mut ahead = *cursor;
    if ahead.number::<u16>("a port").is_ok() && ahead.eat(">")? {
        ahead.number::<u16>("a port")?;
        *cursor = ahead;
        extra.push("several connections at once (ports)");
    }
    Ok(())
}

/// The segment as written in the script: the rest of the line, without a comment.
fn segment_text(cursor: &mut Cursor<'_>) -> Parsed<String> {
    cursor.skip_blank()?;
    let mut ahead = *cursor;
    let line = ahead.take_while(|c| c != '\n');
    Ok(line.split("//").next().unwrap_or_default().trim_end().to_owned())
}

/// The control bits without ACK, and true if ACK is set.
fn flags(cursor: &mut Cursor<'_>, extra: &mut Vec<&'static str>) -> Parsed<(Flags, bool)> {
    const WHAT: &str = "flags of `FSRPUEWA` or the ACE counter, and `.` for ACK; or `-` for none";
    cursor.skip_blank()?;
    if cursor.eat("-")? {
        return Ok((Flags::empty(), false));
    }
    let place = *cursor;
    let mut flags = Flags::empty();
    for letter in cursor.take_while(|c| c.is_ascii_alphabetic()).chars() {
        flags |= match letter {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            'A' => Flags::AE,
            _ => return Err(place.expected(WHAT)),
        };
    }
    // The three bits as a counter (RFC 9768 §3.2.2): `.5`, or `5.`.
    let before = counter(cursor, place)?;
    let has_ack = cursor.peek_raw() == Some('.');
    let after = if has_ack {
        cursor.expect(".")?;
        counter(cursor, place)?
    } else {
        None
    };
    let ace = before.or(after);
    flags |= ace.unwrap_or_default();
    if flags.is_empty() && ace.is_none() && !has_ack {
        return Err(place.expected(WHAT));
    }
    if flags.contains(Flags::URG) {
        extra.push("urgent data");
    }
    Ok((flags, has_ack))
}

/// Parses digits that stand for AE, CWR and ECE.
fn counter(cursor: &mut Cursor<'_>, place: Cursor<'_>) -> Parsed<Option<Flags>> {
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    match digits.parse::<u8>() {
        Ok(ace @ 0..=7) => Ok(Some(counter_bits(ace))),
        Err(_) if digits.is_empty() => Ok(None),
        _ => Err(place.error("the ACE counter has three bits: expected 0 to 7")),
    }
}

/// AE, CWR and ECE, from the highest bit down (RFC 9768 §3.2.2).
fn counter_bits(ace: u8) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::AE, ace & 4 != 0);
    flags.set(Flags::CWR, ace & 2 != 0);
    flags.set(Flags::ECE, ace & 1 != 0);
    flags
}

/// Parses `1:1001(1000)`; returns the first byte and the length.
fn sequence(cursor: &mut Cursor<'_>) -> Parsed<(u32, u32)> {
    cursor.skip_blank()?;
    let place = *cursor;
    let start: u32 = cursor.number("a range of sequence numbers, such as `1:1001(1000)`")?;
    cursor.expect(":")?;
    let end: u32 = cursor.number("the end of the range")?;
    cursor.expect("(")?;
    let len: u16 = cursor.number("the length of the payload, 16 bits")?;
    cursor.expect(")")?;
    let len = u32::from(len);
    if start.wrapping_add(len) != end {
        let right = start.wrapping_add(len);
        return Err(place.error(format!("{len} bytes from {start} end at {right}, not at {end}")));
    }
    Ok((start, len))
}

fn options(cursor: &mut Cursor<'_>, direction: Direction) -> Parsed<Option<Vec<TcpOption>>> {
    if !cursor.sees("<")? {
        return Ok(Some(Vec::new()));
    }
    let place = *cursor;
    cursor.expect("<")?;
    if cursor.eat("...")? {
        cursor.expect(">")?;
        if direction == Direction::Inbound {
            return Err(place.error("`<...>` matches any options: only outbound packets have it"));
        }
        return Ok(None);
    }
    let mut options = vec![option(cursor)?];
    while cursor.eat(",")? {
        options.push(option(cursor)?);
    }
    cursor.expect(">")?;
    // A header is a number of 32-bit words, and packetdrill pads nothing.
    let length: Option<usize> = options.iter().map(length).sum();
    if let Some(length) = length.filter(|length| length % 4 != 0) {
        let missing = 4 - length % 4;
        let nops = ["nop"].repeat(missing).join(",");
        return Err(place.error(format!(
            "these options take {length} bytes, which is not a multiple of 4: pad them with {missing} \
             (`{nops}`)"
        )));
    }
    Ok(Some(options))
}

/// Bytes on the wire; `None` if its content was not read.
fn length(option: &TcpOption) -> Option<usize> {
    Some(match option {
        TcpOption::Nop | TcpOption::Eol => 1,
        TcpOption::SackPermitted => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::Mss(_) => 4,
        TcpOption::Timestamps { .. } => 10,
        TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
        TcpOption::AccEcn(accecn) => accecn.len(),
        TcpOption::Other(_) => return None,
    })
}

fn option(cursor: &mut Cursor<'_>) -> Parsed<TcpOption> {
    const WHAT: &str = "a TCP option: `mss`, `sackOK`, `sack`, `TS`, `wscale`, `nop`, `eol`, `FO`, \
                        `FOEXP`, `ECN`, `exp-ecn` or `md5`";
    cursor.skip_blank()?;
    let place = *cursor;
    Ok(match cursor.word(WHAT)? {
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::Eol,
        "mss" => TcpOption::Mss(cursor.number("a segment size of 16 bits")?),
        "wscale" => TcpOption::WindowScale(cursor.number("a shift of 8 bits")?),
        "sackOK" => TcpOption::SackPermitted,
        "sack" => sack(cursor)?,
        "TS" => {
            cursor.expect("val")?;
            let value = cursor.number("a timestamp of 32 bits")?;
            cursor.expect("ecr")?;
            TcpOption::Timestamps { value, echo: cursor.number("a timestamp of 32 bits")? }
        }
        "FO" | "FOEXP" => skipped(cursor, "TCP Fast Open"),
        "ECN" => accecn(cursor)?,
        "exp" => skipped(cursor, "the experimental AccECN option"),
        "md5" => skipped(cursor, "MD5 signatures (RFC 2385)"),
        _ => return Err(place.expected(WHAT)),
    })
}

fn skipped(cursor: &mut Cursor<'_>, name: &'static str) -> TcpOption {
    cursor.take_while(|c| !matches!(c, ',' | '>' | '\n'));
    TcpOption::Other(name)
}

/// Parses `ECN e1b 1 ceb 0 e0b 1`: the counters in either order; trailing ones may be missing.
fn accecn(cursor: &mut Cursor<'_>) -> Parsed<TcpOption> {
    let place = *cursor;
    let order = match cursor.peek_word()? {
        "e0b" => AccEcnOrder::Ect0First,
        "e1b" => AccEcnOrder::Ect1First,
        _ => return Err(place.expected("`e0b` or `e1b`, the first counter of the option")),
    };
    let mut bytes = EcnBytes::INITIAL;
    let names = match order {
        AccEcnOrder::Ect0First => ["e0b", "ceb", "e1b"],
        AccEcnOrder::Ect1First => ["e1b", "ceb", "e0b"],
    };
    let mut fields = 0;
    for name in names {
        if !cursor.eat_word(name)? {
            break;
        }
        fields += 1;
        let place = *cursor;
        let value: u32 = cursor.number("a counter of 24 bits")?;
        if value > 0x00ff_ffff {
            return Err(place.expected("a counter of 24 bits"));
        }
        match name {
            "e0b" => bytes.ect0 = value,
            "e1b" => bytes.ect1 = value,
            _ => bytes.ce = value,
        }
    }
    Ok(TcpOption::AccEcn(AccEcnOption::new(order, &bytes, fields)))
}

fn sack(cursor: &mut Cursor<'_>) -> Parsed<TcpOption> {
    let mut blocks = Vec::new();
    while blocks.is_empty() || cursor.peek()?.is_some_and(|c| c.is_ascii_digit()) {
        let left = cursor.number("a SACK block, such as `1001:2001`")?;
        cursor.expect(":")?;
        blocks.push((left, cursor.number("the right edge of the SACK block")?));
    }
    Ok(TcpOption::Sack(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn packet(text: &str) -> Packet {
        let script = parse("t.pkt", &format!("+0 {text}\n")).unwrap();
        match script.events.into_iter().next().map(|event| event.action) {
            Some(Action::Packet(packet)) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_syn_with_its_options() {
        let syn = packet("< S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>");
        assert_eq!((syn.flags, syn.ack, syn.window), (Flags::SYN, None, Some(32792)));
        let options = syn.options.unwrap();
        assert_eq!(options[0], TcpOption::Mss(1000));
        assert_eq!(options[5], TcpOption::WindowScale(7));
    }

    #[test]
    fn options_fill_whole_words() {
        let text = "+0 < S 0:0(0) win 9 <mss 1000,sackOK,nop,wscale 7>\n";
        let error = parse("t.pkt", text).unwrap_err().to_string();
        let expected = "these options take 10 bytes, which is not a multiple of 4: pad them with 2 \
                        (`nop,nop`)";
        assert!(error.contains(expected), "{error}");
        // What was not read has a length of its own.
        packet("< S 0:0(0) win 9 <mss 1000,FO 1234>");
    }

    #[test]
    fn sack_blocks_and_timestamps() {
        let options =
            packet("< . 1:1(0) ack 1 win 9 <nop,nop,TS val 7 ecr 8,nop,nop,sack 5:6 1:2>").options;
        let options = options.unwrap();
        assert_eq!(options[2], TcpOption::Timestamps { value: 7, echo: 8 });
        assert_eq!(options[5], TcpOption::Sack(vec![(5, 6), (1, 2)]));
    }

    #[test]
    fn ecn_fields_flags_and_the_ace_counter() {
        let marked = packet("< [ce] EW. 1:1001(1000) ack 1 win 9");
        assert_eq!(marked.ecn, Some(EcnField::Is(Ecn::Ce)));
        assert_eq!(marked.flags, Flags::ECE | Flags::CWR);
        assert_eq!(packet("> [ect01] P.5 1:2(1) ack 1").flags, Flags::PSH | Flags::AE | Flags::ECE);
        assert_eq!(packet("> SEWA 0:0(0) <...>").options, None);
    }

    #[test]
    fn the_ace_counter_stands_on_either_side_of_ack() {
        assert_eq!(packet("> F5. 1:1(0) ack 1").flags, Flags::FIN | Flags::AE | Flags::ECE);
        assert_eq!(packet("> P0. 1:2(1) ack 1").flags, Flags::PSH);
        assert!(parse("t.pkt", "+0 > P8. 1:2(1) ack 1\n").is_err());
    }

    #[test]
    fn accecn_counters_in_both_orders() {
        let option = |text: &str| packet(&format!("> . 1:1(0) ack 1 {text}")).options.unwrap();
        let bytes = EcnBytes { ect0: 1001, ect1: 1, ce: 2000 };
        let whole = AccEcnOption::new(AccEcnOrder::Ect0First, &bytes, 3);
        assert_eq!(option("<ECN e0b 1001 ceb 2000 e1b 1,nop>")[0], TcpOption::AccEcn(whole));
        let short = AccEcnOption::new(AccEcnOrder::Ect1First, &bytes, 2);
        assert_eq!(option("<ECN e1b 1 ceb 2000>")[0], TcpOption::AccEcn(short));
        for wrong in ["<ECN ceb 1,nop,nop,nop>", "<ECN e0b 16777216,nop,nop,nop>", "<ECN,nop,nop>"]
        {
            assert!(parse("t.pkt", &format!("+0 > . 1:1(0) ack 1 {wrong}\n")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_segment_without_any_flag() {
        let bare = packet("< - 1:1001(1000) win 20000");
        assert_eq!((bare.flags, bare.ack, bare.len), (Flags::empty(), None, 1000));
    }

    #[test]
    fn other_packets_are_named() {
        let script = parse("t.pkt", "0 < icmp unreachable [1:1(0)]\n+0 close(3) = 0").unwrap();
        assert_eq!(script.events[0].action, Action::Foreign("ICMP"));
        assert_eq!(script.events.len(), 2);
    }

    #[test]
    fn what_no_segment_can_hold_is_refused() {
        for text in
            ["< X 0:0(0)", "< . 1:2(3) ack 1", "< . 1:1(0) ack 1 win 65536", "< . 1:1(0) <...>"]
        {
            assert!(parse("t.pkt", &format!("0 {text}\n")).is_err(), "{text}");
        }
    }
}
