//! Mechanism of a group, as recorded.

use crate::fields::{FieldError, Fields};
use airtcp_core::{Bytes, Duration};
use airtcp_edge::{FlowTableConfig, InterfaceName, MechanismConfig};
use airtcp_settings::schema::{Field, Kind, Table};
use airtcp_settings::{Decoded, Reader, Settings, Value};
use std::cell::RefCell;

/// Mechanism and limits of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of the group.
    pub name: String,
    /// Mechanism with its settings.
    pub mechanism: MechanismConfig,
    /// Most connections tracked at a time.
    pub flows: usize,
    /// Most connections tracked per mobile.
    pub flows_per_mobile: usize,
    /// Uplink that is the link of all connections; `None`: each mobile has its own link.
    pub uplink: Option<InterfaceName>,
    /// Time without a segment after which a connection may be forgotten.
    pub idle: Duration,
    /// Most payload bytes held for all connections.
    pub memory: Bytes,
}

static MECHANISM: Table = Table::new("mechanism", "What a group runs.", MechanismConfig::KEYS);

impl Setup {
    /// Flow table settings of the mechanism. The hash key does not influence the actions.
    pub(crate) fn table(&self) -> FlowTableConfig {
        let &Self { flows: limit, flows_per_mobile: per_mobile, uplink, idle, .. } = self;
        FlowTableConfig { limit, per_mobile, uplink, idle, hash_key: (0, 0) }
    }

    /// Adds the setup to the fields.
    pub(crate) fn put(&self, fields: &mut Fields) {
        let Self { name, mechanism, flows, flows_per_mobile, uplink, idle, memory } = self;
        fields.put("name", name);
        fields.put("flows", flows);
        fields.put("flows-per-mobile", flows_per_mobile);
        if let Some(uplink) = uplink {
            fields.put("uplink", uplink);
        }
        fields.put("idle", nanoseconds(*idle));
        fields.put("memory", memory);
        let mut settings = Vec::new();
        mechanism.write(&mut settings);
        for (key, text) in settings {
            if let Some(text) = in_base_units(key, text) {
                fields.put(key, text);
            }
        }
    }

    /// Reads the setup from the fields.
    pub(crate) fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            name: fields.get("name")?.to_owned(),
            mechanism: mechanism(fields)?,
            flows: fields.number("flows")?,
            flows_per_mobile: fields.number("flows-per-mobile")?,
            uplink: match fields.find("uplink") {
                Some(_) => Some(fields.read("uplink", "an interface", |name| name.parse().ok())?),
                None => None,
            },
            idle: decode(&Duration::KIND, "idle", fields.get("idle")?)?,
            memory: decode(&Bytes::KIND, "memory", fields.get("memory")?)?,
        })
    }
}

/// Formats a setting in base units, as in recordings: nanoseconds, bytes. `None`: not set.
fn in_base_units(key: &str, text: String) -> Option<String> {
    let field = MECHANISM.fields().into_iter().find(|field| field.key == key)?;
    match field.kind.parse_bare(&text) {
        Some(Ok(Decoded::Duration(duration))) => Some(nanoseconds(duration)),
        Some(Ok(Decoded::Size(bytes))) => Some(bytes.to_string()),
        Some(Ok(Decoded::Absent)) => None,
        _ => Some(text),
    }
}

fn nanoseconds(duration: Duration) -> String {
    format!("{} ns", duration.as_nanos())
}

/// Parses a text as a value of its kind.
fn decode<T: Value>(kind: &Kind, key: &'static str, text: &str) -> Result<T, FieldError> {
    let decoded = kind.parse_bare(text).and_then(Result::ok);
    decoded.and_then(T::from_decoded).ok_or_else(|| FieldError::Invalid {
        key,
        value: text.to_owned(),
        expected: kind.describe(),
    })
}

/// Reads the mechanism from the fields, by the declarations of its settings.
fn mechanism(fields: &Fields) -> Result<MechanismConfig, FieldError> {
    let settings = Written {
        fields,
        declared: MECHANISM.fields(),
        words: RefCell::default(),
        error: RefCell::default(),
    };
    let mechanism = MechanismConfig::read(&settings, None);
    match (mechanism, settings.error.into_inner()) {
        (Some(mechanism), None) => Ok(mechanism),
        (_, error) => Err(error.unwrap_or(FieldError::Missing { key: "mechanism" })),
    }
}

/// Settings as written in a recording.
struct Written<'a> {
    fields: &'a Fields,
    declared: Vec<Field>,
    /// Choices made so far, by key.
    words: RefCell<Vec<(&'static str, &'static str)>>,
    /// First error found.
    error: RefCell<Option<FieldError>>,
}

impl Written<'_> {
    fn field(&self, key: &str) -> &Field {
        let mut declarations = self.declared.iter().filter(|field| field.key == key);
        let counting = declarations.clone().find(|field| field.only.hold(&self.words.borrow()));
        counting.or_else(|| declarations.next()).expect("a key is declared before it is read")
    }

    /// Reads a field without its default, which may differ today: only settings that are not set
    /// are left out.
    fn read<T: Value>(&self, field: &Field) -> Result<T, FieldError> {
        let unset = match field.kind {
            Kind::WordOr(..) => T::from_decoded(Decoded::Absent),
            _ => None,
        };
        match self.fields.find(field.key) {
            Some(text) => decode(&field.kind, field.key, text),
            None => unset.ok_or(FieldError::Missing { key: field.key }),
        }
    }
}

impl Reader for Written<'_> {
    fn written(&self, key: &str) -> bool {
        self.fields.find(key).is_some()
    }

    /// Always true: [`Self::get`] handles defaults and reports what is missing.
    fn has_default(&self, _key: &str) -> bool {
        true
    }

    fn get<T: Value>(&self, key: &str) -> Option<T> {
        let read = self.read(self.field(key));
        read.map_err(|error| self.error.borrow_mut().get_or_insert(error).clone()).ok()
    }

    fn chosen(&self, choice: &'static str, word: &'static str) {
        self.words.borrow_mut().push((choice, word));
    }

    fn refuse(&self, key: Option<&'static str>, message: String, expected: &str) {
        let key = key.unwrap_or("mechanism");
        let error = FieldError::Invalid { key, value: message, expected: expected.to_owned() };
        self.error.borrow_mut().get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_edge::{
        Acknowledge, HoldoverConfig, MTcpConfig, MTcpPlusConfig, Open, Resume, Retransmit,
        SnoopConfig,
    };

    #[test]
    fn every_mechanism_reads_back() {
        let max_down = Some(Duration::from_nanos(1_500_000_001));
        let probe_interval = Some(Duration::from_millis(500));
        for mechanism in [
            MechanismConfig::PacketControl { threshold: 5 },
            MechanismConfig::MTcp(MTcpConfig::default()),
            MechanismConfig::MTcp(MTcpConfig {
                retransmit: Retransmit::All,
                max_down,
                ..MTcpConfig::default()
            }),
            MechanismConfig::MTcpPlus(MTcpPlusConfig::default()),
            MechanismConfig::MTcpPlus(MTcpPlusConfig {
                resume: Resume::Probe,
                max_down,
                probe_interval,
                acknowledge: Acknowledge::InTime(Duration::from_secs(7)),
                open: Open::InSteps,
                ..MTcpPlusConfig::default()
            }),
            MechanismConfig::Holdover(HoldoverConfig {
                max_down,
                probe_interval,
                ..HoldoverConfig::default()
            }),
            MechanismConfig::Snoop(SnoopConfig::default()),
        ] {
            let uplink = probe_interval.map(|_| "wwan0".parse().unwrap());
            let setup = Setup {
                name: "phones in the train".into(),
                mechanism,
                flows: 1000,
                flows_per_mobile: 100,
                uplink,
                idle: Duration::from_secs(300),
                memory: Bytes(1 << 26),
            };
            let mut fields = Fields::default();
            setup.put(&mut fields);
            let entry = fields.to_journal();
            assert_eq!(Setup::read(&Fields::from_journal(&entry)), Ok(setup), "{entry}");
        }
    }

    #[test]
    fn a_timer_too_short_to_make_progress_is_refused() {
        let fields = Fields::default().with("mechanism", "m-tcp").with("detect", "timer");
        let fields = fields.with("timer", "999999 ns");
        let error = mechanism(&fields).unwrap_err();
        assert_eq!(
            error.to_string(),
            "timer=999999 ns: expected a duration of at least 1 ms with its unit, such as \"170 ms\""
        );
    }

    #[test]
    fn a_setting_without_a_default_must_be_there() {
        let fields = Fields::default().with("mechanism", "packet-control");
        assert_eq!(mechanism(&fields).unwrap_err().to_string(), "threshold is missing");
    }
}
