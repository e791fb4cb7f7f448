//! Which packets go through the link: those of some hosts or ports at its far end, which is outside
//! (or in the second namespace). All others pass beside it.

use airtcp_config::Section;
use airtcp_core::Flow;
use airtcp_settings::Name;
use airtcp_settings::schema::Fallback::Absent;
use airtcp_settings::schema::{Count, Key, Kind, Table, TextKind, field};
use ipnet::IpNet;
use std::net::IpAddr;

/// The packets that go through the link: both the address and the port at its far end must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Addresses at the far end; `None`: any.
    networks: Option<Vec<IpNet>>,
    /// TCP and UDP ports at the far end; `None`: any, and other protocols.
    ports: Option<Vec<u16>>,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the far end.
    Up,
    /// From the far end.
    Down,
}

impl Filter {
    /// True if a packet goes through the link. What is no IP packet does not.
    pub(crate) fn takes(&self, packet: &[u8], way: Way) -> bool {
        let Ok((_, Flow { src, dst })) = airtcp_wire::outline(packet) else { return false };
        let far = if way == Way::Up { dst } else { src };
        let matches_network =
            |networks: &Vec<IpNet>| networks.iter().any(|network| network.contains(&far.ip));
        // A packet without ports has 0, which is in no filter.
        self.networks.as_ref().is_none_or(matches_network)
            && self.ports.as_ref().is_none_or(|ports| ports.contains(&far.port))
    }
}

static NETWORK: TextKind = TextKind {
    name: "IP prefix or address",
    plural: "IP prefixes or addresses",
    expected: "an IP prefix or address, such as \"192.0.2.0/24\" or \"2001:db8::7\"",
    expected_plural: "IP prefixes or addresses, such as [\"192.0.2.0/24\", \"2001:db8::7\"]",
};

pub(crate) static ONLY: Table = Table::new(
    "only",
    "The packets that go through the link, by the host and port at its far end: the network outside, or the \
     second namespace. A packet must match both keys. All others pass beside the link at once. The 802.11 hop \
     of `wlan` is for all.",
    &[Key::Fields(&[
        field(
            "networks",
            Kind::Texts { of: &NETWORK, count: Count::Some },
            Absent("any"),
            "Addresses of the hosts.",
        ),
        field(
            "ports",
            Kind::Ordinals,
            Absent("any, and other protocols"),
            "TCP and UDP ports of the hosts. Fragments of IP packets have none, and pass beside the link.",
        ),
    ])],
);

/// Reads the table.
pub(crate) fn read(section: &Section<'_>) -> Option<Filter> {
    if !section.has("networks") && !section.has("ports") {
        let problem = section.problem_here("leaves nothing out");
        section.push(problem.expected("networks or ports"));
        return None;
    }
    let (networks, ports) = (networks(section), ports(section));
    Some(Filter { networks: networks?, ports: ports? })
}

fn networks(section: &Section<'_>) -> Option<Option<Vec<IpNet>>> {
    let Some(texts) = section.get::<Option<Vec<Name>>>("networks")? else { return Some(None) };
    let mut networks: Vec<IpNet> = Vec::new();
    let mut all_right = true;
    for text in texts {
        let network = section.parse("networks", &text, |text| {
            let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
            let network = text.parse::<IpNet>().ok().or_else(address);
            network.ok_or_else(|| "is not a prefix or an address".to_owned())
        });
        let Some(network) = network else {
            all_right = false;
            continue;
        };
        let problem = |message| section.problem_at(text.spot, "networks", message);
        let contains = |other: &&IpNet| other.contains(&network) || network.contains(*other);
        if network.trunc() != network {
            let problem = problem(format!("{network} has bits set behind the prefix"));
            section.push(problem.suggest(network.trunc().to_string()));
            all_right = false;
        } else if let Some(other) = networks.iter().find(contains) {
            let problem = problem(format!("{network} and {other} overlap"));
            section.push(problem.expected("the larger of the two"));
            all_right = false;
        }
        networks.push(network);
    }
    all_right.then_some(Some(networks))
}

fn ports(section: &Section<'_>) -> Option<Option<Vec<u16>>> {
    let Some(numbers) = section.get::<Option<Vec<u64>>>("ports")? else { return Some(None) };
    let port = |&number: &u64| u16::try_from(number).ok().filter(|port| *port > 0);
    let ports: Vec<u16> = numbers.iter().filter_map(port).collect();
    if ports.is_empty() || ports.len() < numbers.len() {
        let wrong = numbers.iter().find(|number| port(number).is_none());
        let message = wrong.map_or("no ports".to_owned(), |wrong| format!("{wrong} is no port"));
        section.push(section.problem("ports", message).expected("ports from 1 to 65535"));
        return None;
    }
    Some(Some(ports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Addr, Segment};

    fn filter(networks: &[&str], ports: &[u16]) -> Filter {
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        Filter {
            networks: (!networks.is_empty()).then_some(networks),
            ports: (!ports.is_empty()).then(|| ports.to_vec()),
        }
    }

    fn packet(src: (&str, u16), dst: (&str, u16)) -> Vec<u8> {
        let [src, dst] = [src, dst].map(|(ip, port)| Addr::new(ip.parse().unwrap(), port));
        let mut packet = Vec::new();
        let segment =
            Segment { flow: Flow { src, dst }, payload: vec![1; 8], ..Segment::default() };
        airtcp_wire::encode(&segment, &mut packet).unwrap();
        packet
    }

    const INSIDE: (&str, u16) = ("100.64.0.2", 40_000);

    #[test]
    fn the_far_end_is_the_destination_up_and_the_source_down() {
        let filter = filter(&["192.0.2.0/24"], &[]);
        let (to, from) = (packet(INSIDE, ("192.0.2.7", 80)), packet(("192.0.2.7", 80), INSIDE));
        assert!(filter.takes(&to, Way::Up) && filter.takes(&from, Way::Down));
        assert!(!filter.takes(&to, Way::Down) && !filter.takes(&from, Way::Up));
    }

    #[test]
    fn both_network_and_port_must_match() {
        let filter = filter(&["192.0.2.0/24", "2001:db8::/32"], &[443, 8443]);
        let takes = |ip, port| filter.takes(&packet(INSIDE, (ip, port)), Way::Up);
        assert!(takes("192.0.2.7", 443) && takes("192.0.2.255", 8443));
        assert!(!takes("192.0.2.7", 80) && !takes("192.0.3.7", 443));
        let of_six = packet(("fd00::2", 9), ("2001:db8:7::1", 443));
        assert!(filter.takes(&of_six, Way::Up));
    }

    #[test]
    fn a_port_takes_no_packets_without_ports() {
        let filter = filter(&[], &[443]);
        let mut echo = packet(INSIDE, ("192.0.2.7", 443));
        assert!(filter.takes(&echo, Way::Up));
        echo[6] = 0x20; // more fragments
        assert!(!filter.takes(&echo, Way::Up));
        echo[6] = 0;
        echo[9] = 1; // ICMP
        assert!(!filter.takes(&echo, Way::Up));
        assert!(!filter.takes(&[], Way::Up) && !filter.takes(&[0x45], Way::Up));
    }
}
