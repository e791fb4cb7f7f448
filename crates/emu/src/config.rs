//! The link file of `airtcp link --config`: the settings of a link, and the differences between
//! directions.

use crate::filter::{self, Filter};
use airtcp_config::{ConfigError, Override, ReadFile, Section, document, read_with_files};
use airtcp_net::config::{DelayConfig, LinkConfig, LinkRate};
use airtcp_net::wifi::config::MEASURES;
use airtcp_net::wifi::{ChannelConfig, preset};
use airtcp_settings::schema::Fallback::{Absent, Is};
use airtcp_settings::schema::{Field, Key, Kind, PROBABILITY, Table, field};
use airtcp_settings::{Reader, Settings, Value};

/// The emulated link.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedLink {
    /// From the command (or the first namespace) to the network outside.
    pub up: EmulatedDirection,
    /// From the network outside to the command.
    pub down: EmulatedDirection,
    /// The packets that go through the link; `None`: all.
    pub only: Option<Filter>,
    /// The air between the command and both directions of the link.
    pub wlan: Option<ChannelConfig>,
}

/// A direction of [`EmulatedLink`].
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedDirection {
    /// The link model of this direction.
    pub config: LinkConfig,
    /// Probability that a packet that leaves the link has one bit flipped.
    pub corrupt: f64,
}

/// Defaults of the keys that a link file may omit.
const DEFAULTS: &[Field] = &[
    field(
        "rate",
        LinkRate::KIND,
        Is("100 Gbit/s"),
        "Serialisation rate: constant, or a table with steps, a file or fading. The default takes 120 ns for a packet of 1500 B.",
    ),
    field(
        "delay",
        DelayConfig::KIND,
        Is("0 s"),
        "One-way propagation delay: constant, or a table with a distribution, steps or a file.",
    ),
];

const DIRECTION: &[Key] = &[
    Key::Instead { fields: DEFAULTS, keys: LinkConfig::KEYS },
    Key::Fields(&[
        field(
            "corrupt",
            PROBABILITY,
            Is("0"),
            "Probability that a packet that leaves the link has one bit flipped, anywhere from its IP header on. \
             Checksums decide what follows. Scenarios have `loss` instead.",
        )
        .source("Linux (netem)"),
    ]),
];

static EMULATED_DIRECTION: Table = Table::new(
    "up, down",
    "Replaces keys of the link in one direction.",
    &[Key::Otherwise("as the link", DIRECTION)],
);

static WLAN: Table = Table::new(
    "wlan",
    "The command is a station of 802.11 in front of the link, and an access point 1 m away is where the link \
     begins. Both share one channel: data and acknowledgements contend for it, each frame with its preamble, \
     headers, back-off and 802.11 ACK. The model and its keys are those of `[[wlan]]` in scenarios; \
     [scenario.md](scenario.md#wlan) lists the values of the presets.",
    &[Key::All(preset::KEYS)],
);

static EMULATED_LINK: Table = Table::new(
    "link file",
    "The top level of the file: a link in each direction, which differ only in what `up` and `down` override. \
     Times count from the start of the emulator.",
    &[
        Key::All(DIRECTION),
        Key::Fields(&[
            field(
                "up",
                Kind::Table(&EMULATED_DIRECTION),
                Absent("as the link"),
                "Keys that differ from the command to the network outside.",
            ),
            field(
                "down",
                Kind::Table(&EMULATED_DIRECTION),
                Absent("as the link"),
                "Keys that differ from the network outside to the command.",
            ),
            field(
                "only",
                Kind::Table(&filter::ONLY),
                Absent("all packets"),
                "The packets that go through the link; all others pass beside it.",
            ),
            field(
                "wlan",
                Kind::Table(&WLAN),
                Absent("no air"),
                "A half-duplex wireless hop between the command and the link.",
            ),
        ]),
    ],
);

impl EmulatedLink {
    /// Reads the link of the emulator from the text of a TOML file (docs/link-config.md);
    /// `source_name` is what diagnostics call it. Overrides replace keys of the file, later ones
    /// those of earlier ones; `files` reads the files that the rates and delays name.
    ///
    /// # Errors
    /// All mistakes in the text and the overrides, except those that other mistakes hide.
    pub fn parse(
        source_name: &str,
        text: &str,
        overrides: &[Override],
        files: &ReadFile<'_>,
    ) -> Result<Self, ConfigError> {
        read_with_files(&EMULATED_LINK, source_name, text, overrides, files, |top| {
            let up = direction(&top.overridden_by(top, "up"));
            let down = direction(&top.overridden_by(top, "down"));
            let only = match top.has("only") {
                true => top.table("only").and_then(|table| filter::read(&table)).map(Some),
                false => Some(None),
            };
            let wlan = match top.has("wlan") {
                true => top.table("wlan").and_then(|table| air(&table)).map(Some),
                false => Some(None),
            };
            Some(Self { up: up?, down: down?, only: only?, wlan: wlan? })
        })
    }
}

impl EmulatedDirection {
    /// True if the direction is as in an empty file: packets wait for nothing, and none is lost.
    pub fn changes_nothing(&self) -> bool {
        let empty = EmulatedLink::parse("link", "", &[], &|_| Err(String::new()));
        empty.is_ok_and(|empty| empty.up == *self)
    }
}

fn direction(section: &Section<'_>) -> Option<EmulatedDirection> {
    let config = LinkConfig::read(section, None);
    let corrupt = section.get("corrupt");
    Some(EmulatedDirection { config: config?, corrupt: corrupt? })
}

fn air(section: &Section<'_>) -> Option<ChannelConfig> {
    preset::read(section, |key, why| section.push(section.problem(key, why)))
}

const INTRODUCTION: &str = r#"# The link file

<!-- Generated from the schema. Do not edit: `cargo run -p airtcp-cli -- schema --link --markdown > docs/link-config.md` -->

The TOML file of `airtcp link --config` ([guide](link.md)). Every key may be left out, and set by
`--set KEY=VALUE` over the file. Quantities are strings with a unit.

"#;

/// The text of `docs/link-config.md`, generated from the schema.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push_str(&document::markdown_link_units());
    for (what, measure) in MEASURES {
        out.push_str(&document::markdown_units(what, measure.names()));
    }
    for table in document::tables(&EMULATED_LINK) {
        out.push_str(&document::markdown_table(table));
    }
    out
}

/// The schema as JSON Schema (draft 2020-12).
///
/// It covers structure, types and single values; [`EmulatedLink::parse`] checks constraints that
/// involve several keys.
pub fn json_schema() -> serde_json::Value {
    document::json_schema("airtcp link", &EMULATED_LINK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Bytes, DataRate, Duration};
    use airtcp_net::config::{LossConfig, QueueConfig, QueueLimit};

    fn parse(text: &str, overrides: &[Override]) -> Result<EmulatedLink, ConfigError> {
        let files = |path: &str| match path {
            "up.csv" | "up.CSV" => Ok("time (s),rate (Mbit/s)\n0,8\n".to_owned()),
            "lte" => Ok("1\n".to_owned()),
            _ => Err(format!("{path}: no such file")),
        };
        EmulatedLink::parse("link.toml", text, overrides, &files)
    }

    #[test]
    fn a_rate_may_follow_a_file_in_one_direction() {
        let link =
            parse("rate = \"1 Mbit/s\"\nup = { rate = { file = \"up.csv\" } }", &[]).unwrap();
        assert!(matches!(link.up.config.rate, LinkRate::Table(_)));
        let capitals = parse("rate = { file = \"up.CSV\" }", &[]).unwrap();
        assert!(matches!(capitals.up.config.rate, LinkRate::Table(_)));
        assert_eq!(link.down.config.rate, DataRate::mbps(1).into());
        let error = parse("rate = { file = \"none\" }", &[]).unwrap_err().to_string();
        assert!(error.contains("link.toml:1:17: rate.file: none: no such file"), "{error}");
    }

    #[test]
    fn a_share_of_packets_may_be_corrupted_in_one_direction() {
        let link = parse("corrupt = 0.25\ndown = { corrupt = 0 }", &[]).unwrap();
        assert_eq!((link.up.corrupt, link.down.corrupt), (0.25, 0.0));
        assert_eq!(parse("", &[]).unwrap().up.corrupt, 0.0);
        let refused = |text| parse(text, &[]).unwrap_err().to_string();
        let error = refused("corrupt = -1");
        assert!(error.contains("link.toml:1:11: corrupt: -1 is out of range"), "{error}");
        let error = refused("up = { corupt = 0.1 }");
        assert!(error.contains("(did you mean `corrupt`?)"), "{error}");
    }

    #[test]
    fn only_some_packets_may_go_through_the_link() {
        let text = "[only]\nnetworks = [\"192.0.2.0/24\", \"2001:db8::7\"]\nports = [443]";
        assert!(parse(text, &[]).unwrap().only.is_some());
        assert_eq!(parse("", &[]).unwrap().only, None);
    }

    #[test]
    fn a_choice_of_packets_without_effect_is_refused() {
        for (text, told) in [
            ("only = {}", "link.toml:1:8: only: leaves nothing out (expected networks or ports)"),
            ("only = { ports = [] }", "only.ports: no ports (expected ports from 1 to 65535)"),
            ("only = { ports = [443, 0] }", "only.ports: 0 is no port"),
            ("only = { ports = [65536] }", "only.ports: 65536 is no port"),
            ("only = { port = [443] }", "only.port: unknown key (did you mean `ports`?)"),
            ("only = { networks = [\"192.0.2.1/24\"] }", "(did you mean `192.0.2.0/24`?)"),
            (
                "only = { networks = [\"192.0.2.0/24\", \"192.0.2.7\"] }",
                "link.toml:1:38: only.networks: 192.0.2.7/32 and 192.0.2.0/24 overlap",
            ),
            ("only = { networks = [\"example.org\"] }", "is not a prefix or an address"),
            ("up = { only = { ports = [1] } }", "up.only: unknown key"),
        ] {
            let error = parse(text, &[]).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_link_of_defaults_changes_nothing() {
        assert!(parse("", &[]).unwrap().up.changes_nothing());
        for text in ["delay = \"1 ms\"", "corrupt = 0.1", "rate = { file = \"up.csv\" }"] {
            assert!(!parse(text, &[]).unwrap().up.changes_nothing(), "{text}");
        }
    }

    #[test]
    fn a_file_of_rates_is_refused_beside_rlc() {
        for file in ["lte", "up.csv"] {
            let text = format!("rate = {{ file = \"{file}\" }}\nrlc = {{ bler = 0.2 }}");
            let error = parse(&text, &[]).unwrap_err().to_string();
            assert!(
                error.contains(
                    "link.toml:2:7: rlc: has no blocks of one size where the rate changes (expected a \
                     constant rate beside it)"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn one_file_may_give_rate_delay_and_loss() {
        let files =
            |_: &str| Ok("time (s),rate (Mbit/s),delay (ms),loss (%)\n0,8,40,1\n".to_owned());
        let text = "rate = { file = \"leo.csv\" }\ndelay = { file = \"leo.csv\" }\n\
                    loss = { kind = \"schedule\", file = \"leo.csv\" }";
        let link = EmulatedLink::parse("link.toml", text, &[], &files).unwrap();
        assert_eq!(link.up.config.rate.mean(), DataRate::mbps(8));
        assert_eq!(link.up.config.delay.least(), Duration::from_millis(40));
        assert!(matches!(link.up.config.loss.model, LossConfig::Schedule(_)));
    }

    #[test]
    fn an_emulated_link_has_the_keys_of_a_link() {
        let text = "rate = \"8mbit\"\ndelay = \"20 ms\"\n[down]\nqueue = { limit = \"60 kB\" }\n";
        let rate = Override::new("--up-rate", "up.rate", "1 Mbit/s");
        let link = parse(text, &[rate]).unwrap();
        assert_eq!(link.up.config.rate, DataRate::mbps(1).into());
        assert_eq!(link.down.config.rate, DataRate::mbps(8).into());
        assert_eq!(link.up.config.delay.base, Duration::from_millis(20));
        let limit = |bytes| QueueConfig::DropTail { limit: QueueLimit::Bytes(Bytes(bytes)) };
        assert_eq!(link.down.config.queue, limit(60_000));
        assert_ne!(link.up.config.queue, limit(60_000));
    }

    #[test]
    fn an_option_of_the_emulator_is_named_in_its_diagnostic() {
        let rate = Override::new("--rate", "rate", "8 Mbits");
        let error = parse("delais = \"1 s\"", &[rate]).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("link.toml:1:1: delais: unknown key (did you mean `delay`?)"),
            "{message}"
        );
        assert!(message.contains("--rate:1:6: rate: "), "{message}");
    }

    #[test]
    fn the_documentation_is_the_schema() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/link-config.md");
        assert!(
            std::fs::read_to_string(docs).unwrap() == markdown(),
            "docs/link-config.md is stale; regenerate it: cargo run -p airtcp-cli -- schema --link --markdown > \
             docs/link-config.md"
        );
    }
}
