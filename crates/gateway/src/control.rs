//! What is spoken on the control socket: one JSON object a line in, one a line out.
//!
//! ```text
//! → {"status":{}}                                        ← {"status":{"groups":[…],"flows":[…],…}}
//! → {"signal":{"mobile":"10.0.0.7","signal":"down"}}     ← {"done":{}}
//! → {"signal":{"uplink":"wwan0","signal":"down"}}        ← {"done":{}}
//! → {"signal":{"group":"phones","signal":"down"}}        ← {"done":{}}
//! → {"reload":{}}                                        ← {"done":{}}
//! → {"reloda":{}}                                        ← {"error":{"message":"…"}}
//! ```
//!
//! [`Request`] and [`Answer`] are the two ends of it. Who may speak is decided by the permissions
//! of the socket.

use crate::config::Group;
use crate::listing::listed;
use crate::status::Status;
use airtcp_core::LinkSignal;
use airtcp_edge::{InterfaceName, MobileId};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// The default path of the socket.
pub const DEFAULT_PATH: &str = "/run/airtcp/gateway.sock";

/// Longest line of a request, in bytes without its end.
pub const LINE_LIMIT: usize = 4096;

/// Most mobiles that one signal can be for.
pub const MOBILES_LIMIT: usize = 256;

/// A request to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Report the status.
    Status,
    /// To take note of something about the links to some mobiles, or about an uplink.
    Signal {
        /// The mobiles concerned.
        whose: Whose,
        /// The state of their link.
        signal: LinkSignal,
    },
    /// To read its configuration again.
    Reload,
}

/// Whose links a signal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The mobiles of an address, or of a prefix with at most [`MOBILES_LIMIT`] of them.
    Mobiles(IpNet),
    /// The uplink by this interface.
    Uplink(InterfaceName),
    /// All mobiles of the group of this name, if they are at most [`MOBILES_LIMIT`]; or an uplink
    /// by the name of its group.
    Group(String),
}

impl Whose {
    /// Reads an address, a prefix, or the interface of an uplink.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_number = |c: char| c.is_ascii_digit() || ".:/".contains(c);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        match text.parse() {
            Ok(uplink) if !text.chars().all(is_number) => Ok(Self::Uplink(uplink)),
            // Too long for an interface.
            _ if text.chars().all(is_of_name) && text.parse::<IpAddr>().is_err() => Err(format!(
                "mobile {text:?}: expected an address, a prefix or an interface; of a group, --group {text}"
            )),
            _ => mobiles(text).map(Self::Mobiles),
        }
    }

    /// All of them that are in one of these groups.
    ///
    /// # Errors
    /// There are none, or too many. Says which groups there are.
    pub fn members(&self, groups: &[&Group]) -> Result<Vec<MobileId>, String> {
        match self {
            Self::Mobiles(net) => {
                let is_in_one = |mobile: &MobileId| groups.iter().any(|group| group.has(*mobile));
                let members: Vec<_> = net.hosts().map(MobileId::Host).filter(is_in_one).collect();
                if members.is_empty() { Err(in_no_group(net, groups)) } else { Ok(members) }
            }
            Self::Uplink(interface) => {
                let id = MobileId::Uplink(*interface);
                match groups.iter().any(|group| group.has(id)) {
                    true => Ok(vec![id]),
                    false => Err(unknown_uplink(interface.as_str(), groups)),
                }
            }
            Self::Group(name) => {
                let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
                let n = groups.iter().position(|group| group.name == *name);
                let n = n.ok_or_else(|| unknown("group", name, &names))?;
                all_of(groups[n], &groups[..n])
            }
        }
    }
}

/// All mobiles of a group but those of earlier groups: a mobile belongs to the first that has its
/// address. A group with interfaces has an address only behind them.
fn all_of(group: &Group, earlier: &[&Group]) -> Result<Vec<MobileId>, String> {
    if let Some(interface) = group.uplink() {
        return Ok(vec![MobileId::Uplink(interface)]);
    }
    let hosts = group.addresses().iter().flat_map(IpNet::hosts);
    // One more tells that there are too many.
    let hosts: Vec<IpAddr> = hosts.take(MOBILES_LIMIT + 1).collect();
    if hosts.len() > MOBILES_LIMIT {
        return Err(format!(
            "group {:?} has more than {MOBILES_LIMIT} addresses, which are too many at once; \
             expected addresses or prefixes",
            group.name
        ));
    }
    let is_own = |mobile: &MobileId| {
        !earlier.iter().any(|group| group.interfaces().is_empty() && group.has(*mobile))
    };
    let own: Vec<_> = hosts.into_iter().map(MobileId::Host).filter(is_own).collect();
    match own.is_empty() {
        true => Err(format!("all addresses of group {:?} belong to earlier groups", group.name)),
        false => Ok(own),
    }
}

/// Refuses mobiles that are in no group: names the nearest group, or all that there are.
fn in_no_group(net: &IpNet, groups: &[&Group]) -> String {
    let common_bits = |other: &IpNet| match (net.network(), other.network()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        (IpAddr::V6(a), IpAddr::V6(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        _ => None,
    };
    let prefixes =
        groups.iter().flat_map(|group| group.addresses().iter().map(|net| (*group, net)));
    let nearest = prefixes
        .filter_map(|(group, net)| Some((common_bits(net)?, group, net)))
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    let who = match net.prefix_len() == net.max_prefix_len() {
        true => format!("{} is in no group", net.addr()),
        false => format!("no address of {net} is in a group"),
    };
    match nearest {
        Some((_, group, net)) => {
            format!("{who}; the nearest is {:?} (addresses {net})", group.name)
        }
        None => {
            let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            format!("{who}; the groups are {}", listed(&names))
        }
    }
}

/// A reply of the gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The status asked for.
    Status(Box<Status>),
    /// It was done.
    Done {},
    /// It was not done.
    Error {
        /// The reason, and what was expected.
        message: String,
    },
}

/// Names of the requests.
const REQUESTS: [&str; 3] = ["status", "signal", "reload"];

/// The signal of that name.
///
/// # Errors
/// Says which names there are and which one is nearest.
pub fn signal(name: &str) -> Result<LinkSignal, String> {
    LinkSignal::named(name)
        .ok_or_else(|| unknown("signal", name, &LinkSignal::ALL.map(LinkSignal::name)))
}

fn uplink(text: &str) -> Result<InterfaceName, String> {
    text.parse().map_err(|_| {
        format!("uplink {text:?}: expected the name of an interface, such as \"wwan0\"")
    })
}

/// Refuses an uplink whose interface none of these groups has. It may be meant as the name of a
/// group of mobiles.
fn unknown_uplink(interface: &str, groups: &[&Group]) -> String {
    let uplinks: Vec<_> = groups.iter().filter_map(|group| group.uplink()).collect();
    let uplinks: Vec<&str> = uplinks.iter().map(InterfaceName::as_str).collect();
    let of_mobiles = groups.iter().filter(|group| group.uplink().is_none());
    let names: Vec<&str> = of_mobiles.map(|group| group.name.as_str()).collect();
    if let Some(group) = airtcp_config::nearest(interface, &names)
        && airtcp_config::nearest(interface, &uplinks).is_none()
    {
        return format!(
            "no uplink {interface:?}; did you mean all mobiles of the group {group:?} (--group {group})?"
        );
    }
    match uplinks[..] {
        [] => format!(
            "no uplink {interface:?}: there is no [[uplink]]; expected the address of a mobile, or --group with one of {}",
            listed(&names)
        ),
        _ => unknown("uplink", interface, &uplinks),
    }
}

/// The mobiles of an address or a prefix.
///
/// # Errors
/// Says what was expected.
pub fn mobiles(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.into());
    }
    let Ok(net) = text.parse::<IpNet>() else {
        return Err(format!(
            "mobile {text:?}: expected an address such as \"10.0.0.7\" or a prefix such as \"10.0.0.0/28\""
        ));
    };
    let right = net.trunc();
    if right != net {
        return Err(format!("mobile {text:?}: bits are set beyond the prefix; {right} is meant?"));
    }
    let bits = net.max_prefix_len() - net.prefix_len();
    if bits > MOBILES_LIMIT.ilog2() as u8 {
        let longest = net.max_prefix_len() - MOBILES_LIMIT.ilog2() as u8;
        return Err(format!(
            "mobile {text:?}: too many at once; expected a prefix of /{longest} or longer \
             ({MOBILES_LIMIT} addresses)"
        ));
    }
    Ok(net)
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// Says what was expected and which name is nearest.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| format!("not JSON: {error}; expected {EXPECTED}"))?;
        let Value::Object(object) = value else {
            return Err(format!("expected {EXPECTED}, found {}", kind(&value)));
        };
        let mut entries = object.iter();
        let (Some((name, arguments)), None) = (entries.next(), entries.next()) else {
            return Err(format!("expected {EXPECTED}, found {} keys", object.len()));
        };
        if !REQUESTS.contains(&name.as_str()) {
            return Err(unknown("request", name, &REQUESTS));
        }
        let Value::Object(arguments) = arguments else {
            return Err(format!("{name}: expected an object, found {}", kind(arguments)));
        };
        Self::with(name, arguments).map_err(|message| format!("{name}: {message}"))
    }

    fn with(name: &str, arguments: &Map<String, Value>) -> Result<Self, String> {
        let known: &[&str] =
            if name == "signal" { &["mobile", "uplink", "group", "signal"] } else { &[] };
        if let Some(key) = arguments.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(unknown("key", key, known));
        }
        let text = |key: &str| match arguments.get(key) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(format!("{key}: expected a string, found {}", kind(other))),
            None => Err(format!("the key {key:?} is missing")),
        };
        Ok(match name {
            "status" => Self::Status,
            "reload" => Self::Reload,
            _ => {
                let given = ["mobile", "uplink", "group"].map(|key| arguments.contains_key(key));
                let whose = match given {
                    [false, true, false] => Whose::Uplink(uplink(text("uplink")?)?),
                    [false, false, true] => Whose::Group(text("group")?.to_owned()),
                    [_, false, false] => Whose::Mobiles(mobiles(text("mobile")?)?),
                    _ => return Err("expected one of mobile, uplink and group".to_owned()),
                };
                Self::Signal { whose, signal: signal(text("signal")?)? }
            }
        })
    }

    /// The line that [`Request::parse`] reads, with its end.
    pub fn line(&self) -> String {
        let value = match self {
            Self::Status => json!({"status": {}}),
            Self::Reload => json!({"reload": {}}),
            Self::Signal { whose: Whose::Mobiles(mobiles), signal } => {
                let mobile = match mobiles.prefix_len() == mobiles.max_prefix_len() {
                    true => mobiles.addr().to_string(),
                    false => mobiles.to_string(),
                };
                json!({"signal": {"mobile": mobile, "signal": signal.name()}})
            }
            Self::Signal { whose: Whose::Uplink(uplink), signal } => {
                json!({"signal": {"uplink": uplink.as_str(), "signal": signal.name()}})
            }
            Self::Signal { whose: Whose::Group(group), signal } => {
                json!({"signal": {"group": group, "signal": signal.name()}})
            }
        };
        format!("{value}\n")
    }
}

/// Named in error messages.
const EXPECTED: &str = r#"an object with one request, such as {"status":{}}"#;

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Complains about a name.
fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let hint = match (airtcp_config::nearest(name, known), known) {
        (Some(near), _) => format!("did you mean {near:?}?"),
        (None, []) => "none is expected".to_owned(),
        (None, _) => format!("expected one of {}", listed(known)),
    };
    // Of a long name the beginning will do.
    let shown: String = name.chars().take(40).collect();
    format!("unknown {what} {shown:?}; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GatewayConfig;

    fn refusal(line: &str) -> String {
        Request::parse(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn a_request_survives_being_written_and_read() {
        for request in [
            Request::Status,
            Request::Reload,
            about("10.0.0.7", LinkSignal::Down),
            about("fd00::/120", LinkSignal::Fading),
            about("wwan0", LinkSignal::Up),
            Request::Signal { whose: Whose::Group("phones".to_owned()), signal: LinkSignal::Down },
        ] {
            assert_eq!(Request::parse(request.line().trim_end().as_bytes()), Ok(request));
        }
        let down = about("10.0.0.7", LinkSignal::Down);
        assert_eq!(down.line(), "{\"signal\":{\"mobile\":\"10.0.0.7\",\"signal\":\"down\"}}\n");
    }

    fn about(whose: &str, signal: LinkSignal) -> Request {
        Request::Signal { whose: Whose::parse(whose).unwrap(), signal }
    }

    #[test]
    fn what_is_no_address_may_be_an_uplink() {
        let uplink = |name: &str| Whose::Uplink(name.parse().unwrap());
        for name in ["wwan0", "ppp0", "eth0.7", "fe"] {
            assert_eq!(Whose::parse(name), Ok(uplink(name)));
        }
        for wrong in ["10.0.7", "10.0.0.7/33", "fd00::/64", "fd00:::1", "a b"] {
            let error = Whose::parse(wrong).unwrap_err();
            assert!(error.starts_with(&format!("mobile {wrong:?}: ")), "{error}");
        }
    }

    fn members(config: &str, whose: &Whose) -> Result<Vec<String>, String> {
        let config = GatewayConfig::parse("gateway.toml", config).unwrap();
        let groups: Vec<&Group> = config.groups.iter().collect();
        whose.members(&groups).map(|ids| ids.iter().map(MobileId::to_string).collect())
    }

    const MOBILES: &str = "[[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.0/30\", \"10.0.9.7\"]\n\
                           [[mobile]]\nname = \"cars\"\naddresses = [\"10.7.0.0/16\", \"fd00::/64\"]\n";
    const UPLINKS: &str = "[[uplink]]\ninterface = \"wwan0\"\n[[uplink]]\ninterface = \"eth7\"\n";

    #[test]
    fn an_uplink_that_is_not_there_is_refused_with_those_that_are() {
        let whose = Whose::parse("wan0").unwrap();
        assert_eq!(
            members(UPLINKS, &whose).unwrap_err(),
            r#"unknown uplink "wan0"; did you mean "wwan0"?"#
        );
        assert_eq!(
            members(MOBILES, &whose).unwrap_err(),
            r#"no uplink "wan0": there is no [[uplink]]; expected the address of a mobile, or --group with one of phones, cars"#
        );
    }

    #[test]
    fn the_name_of_a_group_in_the_place_of_an_address_is_told_its_option() {
        let hint = r#"did you mean all mobiles of the group "phones" (--group phones)?"#;
        for (config, name) in
            [(MOBILES, "phones"), (MOBILES, "Phone"), (&format!("{MOBILES}{UPLINKS}"), "phones")]
        {
            let error = members(config, &Whose::parse(name).unwrap()).unwrap_err();
            assert_eq!(error, format!("no uplink {name:?}; {hint}"));
        }
        let long = "phones-of-the-north";
        assert_eq!(
            Whose::parse(long).unwrap_err(),
            "mobile \"phones-of-the-north\": expected an address, a prefix or an interface; of a group, \
             --group phones-of-the-north"
        );
    }

    #[test]
    fn mobiles_in_no_group_are_refused_with_the_nearest_group_or_all() {
        let refused =
            |config, text: &str| members(config, &Whose::parse(text).unwrap()).unwrap_err();
        assert_eq!(
            refused(MOBILES, "10.0.0.7"),
            r#"10.0.0.7 is in no group; the nearest is "phones" (addresses 10.0.0.0/30)"#
        );
        assert_eq!(
            refused(MOBILES, "10.5.0.0/28"),
            r#"no address of 10.5.0.0/28 is in a group; the nearest is "cars" (addresses 10.7.0.0/16)"#
        );
        assert_eq!(
            refused(MOBILES, "fd01::7"),
            r#"fd01::7 is in no group; the nearest is "cars" (addresses fd00::/64)"#
        );
        assert_eq!(
            refused(UPLINKS, "10.0.0.7"),
            "10.0.0.7 is in no group; the groups are uplink.wwan0, uplink.eth7"
        );
    }

    #[test]
    fn of_many_groups_ten_are_named() {
        let uplink = |n| format!("[[uplink]]\ninterface = \"wwan{n}\"\n");
        let config: String = (0..40).map(uplink).collect();
        let named = |n| format!("uplink.wwan{n}, ");
        let ten: String = (0..10).map(named).collect();
        assert_eq!(
            members(&config, &Whose::parse("10.0.0.7").unwrap()).unwrap_err(),
            format!("10.0.0.7 is in no group; the groups are {ten}and 30 more")
        );
        assert_eq!(
            members(&config, &Whose::Group("phones".to_owned())).unwrap_err(),
            format!("unknown group \"phones\"; expected one of {ten}and 30 more")
        );
    }

    #[test]
    fn of_a_prefix_those_are_meant_that_are_in_a_group() {
        let prefix = Whose::parse("10.0.0.0/29").unwrap();
        assert_eq!(members(MOBILES, &prefix).unwrap(), ["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    }

    #[test]
    fn a_group_stands_for_all_its_mobiles_if_they_are_not_too_many() {
        let group = |config, name: &str| members(config, &Whose::Group(name.to_owned()));
        assert_eq!(group(MOBILES, "phones").unwrap(), ["10.0.0.1", "10.0.0.2", "10.0.9.7"]);
        assert_eq!(group(UPLINKS, "uplink.wwan0").unwrap(), ["wwan0"]);
        assert_eq!(
            group(MOBILES, "cars").unwrap_err(),
            r#"group "cars" has more than 256 addresses, which are too many at once; expected addresses or prefixes"#
        );
        assert_eq!(
            group(MOBILES, "phone").unwrap_err(),
            r#"unknown group "phone"; did you mean "phones"?"#
        );
    }

    #[test]
    fn a_group_stands_for_none_of_the_mobiles_that_an_earlier_group_has() {
        let group = |name: &str, addresses: &str| {
            format!("[[mobile]]\nname = {name:?}\naddresses = [{addresses}]\n")
        };
        let phones = Whose::Group("phones".to_owned());
        let config = group("vip", r#""10.0.0.1""#) + &group("phones", r#""10.0.0.0/30""#);
        assert_eq!(members(&config, &phones).unwrap(), ["10.0.0.2"]);
        let config =
            group("vip", r#""10.0.0.1", "10.0.0.2""#) + &group("phones", r#""10.0.0.0/30""#);
        assert_eq!(
            members(&config, &phones).unwrap_err(),
            r#"all addresses of group "phones" belong to earlier groups"#
        );
    }

    #[test]
    fn each_mistake_is_told_with_what_was_expected() {
        let expected = r#"expected an object with one request, such as {"status":{}}"#;
        assert_eq!(
            refusal("status"),
            format!("not JSON: expected value at line 1 column 1; {expected}")
        );
        assert_eq!(refusal("[]"), format!("{expected}, found an array"));
        assert_eq!(refusal("{}"), format!("{expected}, found 0 keys"));
        assert_eq!(refusal(r#"{"status":{},"reload":{}}"#), format!("{expected}, found 2 keys"));
        assert_eq!(
            refusal(r#"{"reloda":{}}"#),
            r#"unknown request "reloda"; did you mean "reload"?"#
        );
        assert_eq!(
            refusal(r#"{"quit":{}}"#),
            r#"unknown request "quit"; expected one of status, signal, reload"#
        );
        assert_eq!(refusal(r#"{"status":1}"#), "status: expected an object, found a number");
        assert_eq!(
            refusal(r#"{"status":{"all":true}}"#),
            r#"status: unknown key "all"; none is expected"#
        );
        let signal = |arguments: &str| refusal(&format!(r#"{{"signal":{{{arguments}}}}}"#));
        assert_eq!(signal(r#""signal":"up""#), r#"signal: the key "mobile" is missing"#);
        assert_eq!(signal(r#""mobile":"10.0.0.7""#), r#"signal: the key "signal" is missing"#);
        assert_eq!(
            signal(r#""mobil":"10.0.0.7""#),
            r#"signal: unknown key "mobil"; did you mean "mobile"?"#
        );
        assert_eq!(
            signal(r#""mobile":7,"signal":"up""#),
            "signal: mobile: expected a string, found a number"
        );
        assert_eq!(
            signal(r#""mobile":"10.0.0.7","signal":"dwon""#),
            r#"signal: unknown signal "dwon"; did you mean "down"?"#
        );
        assert_eq!(
            signal(r#""mobile":"10.0.0.7","uplink":"wwan0","signal":"up""#),
            "signal: expected one of mobile, uplink and group"
        );
        assert_eq!(
            signal(r#""uplink":"a b","signal":"up""#),
            r#"signal: uplink "a b": expected the name of an interface, such as "wwan0""#
        );
        assert_eq!(
            signal(r#""mobile":"10.0.7","signal":"up""#),
            r#"signal: mobile "10.0.7": expected an address such as "10.0.0.7" or a prefix such as "10.0.0.0/28""#
        );
        assert_eq!(
            signal(r#""mobile":"10.0.0.7/24","signal":"up""#),
            r#"signal: mobile "10.0.0.7/24": bits are set beyond the prefix; 10.0.0.0/24 is meant?"#
        );
        assert_eq!(
            signal(r#""mobile":"fd00::/64","signal":"up""#),
            r#"signal: mobile "fd00::/64": too many at once; expected a prefix of /120 or longer (256 addresses)"#
        );
    }

    #[test]
    fn an_answer_has_one_key_that_says_what_it_is() {
        let text = |answer: &Answer| serde_json::to_string(answer).unwrap();
        assert_eq!(text(&Answer::Done {}), r#"{"done":{}}"#);
        let error = Answer::Error { message: "no".to_owned() };
        assert_eq!(text(&error), r#"{"error":{"message":"no"}}"#);
        assert!(text(&Answer::Status(Box::default())).starts_with(r#"{"status":{"version":""#));
    }
}
