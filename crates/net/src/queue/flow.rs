//! Which flow a packet belongs to, as a number.

use airtcp_core::Flow;
use std::net::IpAddr;

/// A number for the flow of a packet: a fixed mixture of addresses, ports and protocol (RFC 8290
/// §4.1.1). Different flows rarely have the same; a queue adds its own salt.
pub fn flow_number(flow: &Flow, protocol: u8) -> u32 {
    let mut state = u64::from(protocol);
    for end in [flow.src, flow.dst] {
        match end.ip {
            IpAddr::V4(ip) => state = mix(state ^ u64::from(ip.to_bits())),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                state = mix(state ^ bits as u64);
                state = mix(state ^ (bits >> 64) as u64);
            }
        }
        state = mix(state ^ u64::from(end.port));
    }
    (state >> 32) as u32
}

/// A bijection in which each bit of the input changes half of the output's bits (the finaliser of
/// SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
pub(crate) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::Addr;
    use std::collections::BTreeSet;

    fn flow(port: u16) -> Flow {
        let addr = |last, port| Addr::new(format!("10.0.0.{last}").parse().unwrap(), port);
        Flow { src: addr(1, port), dst: addr(2, 80) }
    }

    #[test]
    fn flows_differ_by_address_port_and_protocol() {
        let numbers: BTreeSet<u32> = (0..10_000).map(|port| flow_number(&flow(port), 6)).collect();
        assert_eq!(numbers.len(), 10_000);
        assert_ne!(flow_number(&flow(1), 6), flow_number(&flow(1), 17));
        assert_ne!(flow_number(&flow(1), 6), flow_number(&flow(1).reversed(), 6));
    }
}
