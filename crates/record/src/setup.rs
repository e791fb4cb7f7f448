//! Which mechanism a group runs, in the words of a recording.

use crate::fields::{FieldError, Fields};
use airtcp_core::{Bytes, Duration};
use airtcp_edge::{
    FlowTableConfig, HoldoverConfig, MTcpConfig, MTcpPlusConfig, MechanismConfig, Resume,
    Retransmit, SnoopConfig,
};

/// What a group runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of the group.
    pub name: String,
    /// Its mechanism.
    pub mechanism: MechanismConfig,
    /// Connections known at a time.
    pub flows: usize,
    /// A connection without a segment for this long may be forgotten.
    pub idle: Duration,
    /// Payload bytes held in all.
    pub memory: Bytes,
}

/// Timers of the mechanisms are no shorter.
const SHORTEST_TIMER: Duration = Duration::from_millis(1);

impl Setup {
    /// The flow table of the mechanism. Its hash key has no influence on what a mechanism does.
    pub(crate) fn table(&self) -> FlowTableConfig {
        FlowTableConfig { limit: self.flows, idle: self.idle, hash_key: (0, 0) }
    }

    /// Adds the setup to the fields.
    pub(crate) fn put(&self, fields: &mut Fields) {
        let Self { name, mechanism, flows, idle, memory } = self;
        fields.put("name", name);
        fields.put("flows", flows);
        put_duration(fields, "idle", *idle);
        put_bytes(fields, "memory", *memory);
        fields.put("mechanism", mechanism.name());
        match *mechanism {
            MechanismConfig::PacketControl { threshold } => fields.put("threshold", threshold),
            MechanismConfig::MTcp(config) => {
                let MTcpConfig { timer, retransmit, release, fifo, max_down } = config;
                put_duration(fields, "timer", timer);
                fields.put("retransmit", retransmit_name(retransmit));
                put_duration(fields, "release", release);
                put_bytes(fields, "fifo", fifo);
                put_some(fields, "max-down", max_down);
            }
            MechanismConfig::MTcpPlus(MTcpPlusConfig { fifo, resume, max_down, nudge }) => {
                put_bytes(fields, "fifo", fifo);
                fields.put("resume", resume_name(resume));
                put_some(fields, "max-down", max_down);
                put_some(fields, "nudge", nudge);
            }
            MechanismConfig::Holdover(HoldoverConfig { fifo, max_down, nudge }) => {
                put_bytes(fields, "fifo", fifo);
                put_some(fields, "max-down", max_down);
                put_some(fields, "nudge", nudge);
            }
            MechanismConfig::Snoop(SnoopConfig { fifo, min_timeout, attempts }) => {
                put_bytes(fields, "fifo", fifo);
                put_duration(fields, "min-timeout", min_timeout);
                fields.put("attempts", attempts);
            }
        }
    }

    /// The setup in the fields.
    pub(crate) fn read(fields: &Fields) -> Result<Self, FieldError> {
        let fifo = || bytes(fields, "fifo");
        let mechanism = match fields.get("mechanism")? {
            "packet-control" => {
                MechanismConfig::PacketControl { threshold: fields.number("threshold")? }
            }
            "m-tcp" => MechanismConfig::MTcp(MTcpConfig {
                timer: timer(fields, "timer")?,
                retransmit: fields.read("retransmit", "head or all", |value| {
                    [Retransmit::Head, Retransmit::All]
                        .into_iter()
                        .find(|&retransmit| retransmit_name(retransmit) == value)
                })?,
                release: duration(fields, "release")?,
                fifo: fifo()?,
                max_down: max_down(fields)?,
            }),
            "m-tcp-plus" => MechanismConfig::MTcpPlus(MTcpPlusConfig {
                fifo: fifo()?,
                resume: fields.read("resume", "flush or probe", |value| {
                    [Resume::Flush, Resume::Probe]
                        .into_iter()
                        .find(|&resume| resume_name(resume) == value)
                })?,
                max_down: max_down(fields)?,
                nudge: nudge(fields)?,
            }),
            "holdover" => MechanismConfig::Holdover(HoldoverConfig {
                fifo: fifo()?,
                max_down: max_down(fields)?,
                nudge: nudge(fields)?,
            }),
            "snoop" => MechanismConfig::Snoop(SnoopConfig {
                fifo: fifo()?,
                min_timeout: timer(fields, "min-timeout")?,
                attempts: fields.number("attempts")?,
            }),
            other => {
                return Err(FieldError::Invalid {
                    key: "mechanism",
                    value: other.to_owned(),
                    expected: "packet-control, m-tcp, m-tcp-plus, holdover or snoop",
                });
            }
        };
        Ok(Self {
            name: fields.get("name")?.to_owned(),
            mechanism,
            flows: fields.number("flows")?,
            idle: duration(fields, "idle")?,
            memory: bytes(fields, "memory")?,
        })
    }
}

const fn retransmit_name(retransmit: Retransmit) -> &'static str {
    match retransmit {
        Retransmit::Head => "head",
        Retransmit::All => "all",
    }
}

const fn resume_name(resume: Resume) -> &'static str {
    match resume {
        Resume::Flush => "flush",
        Resume::Probe => "probe",
    }
}

fn put_duration(fields: &mut Fields, key: &str, duration: Duration) {
    fields.put(key, format_args!("{} ns", duration.as_nanos()));
}

fn put_bytes(fields: &mut Fields, key: &str, bytes: Bytes) {
    fields.put(key, format_args!("{} B", bytes.get()));
}

fn put_some(fields: &mut Fields, key: &str, duration: Option<Duration>) {
    if let Some(duration) = duration {
        put_duration(fields, key, duration);
    }
}

fn duration(fields: &Fields, key: &'static str) -> Result<Duration, FieldError> {
    fields.read(key, "whole nanoseconds (\"5 ns\")", |value| {
        value.strip_suffix(" ns")?.parse().ok().map(Duration::from_nanos)
    })
}

/// A duration that the mechanisms rely on.
fn timer(fields: &Fields, key: &'static str) -> Result<Duration, FieldError> {
    let timer = duration(fields, key)?;
    fields.read(key, "at least 1 ms", |_| (timer >= SHORTEST_TIMER).then_some(timer))
}

fn bytes(fields: &Fields, key: &'static str) -> Result<Bytes, FieldError> {
    fields.read(key, "whole bytes (\"5 B\")", |value| {
        value.strip_suffix(" B")?.parse().ok().map(Bytes)
    })
}

fn max_down(fields: &Fields) -> Result<Option<Duration>, FieldError> {
    fields.find("max-down").map(|_| duration(fields, "max-down")).transpose()
}

fn nudge(fields: &Fields) -> Result<Option<Duration>, FieldError> {
    fields.find("nudge").map(|_| timer(fields, "nudge")).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_reads_back() {
        let max_down = Some(Duration::from_nanos(1_500_000_001));
        let nudge = Some(Duration::from_millis(500));
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
                nudge,
                ..MTcpPlusConfig::default()
            }),
            MechanismConfig::Holdover(HoldoverConfig {
                max_down,
                nudge,
                ..HoldoverConfig::default()
            }),
            MechanismConfig::Snoop(SnoopConfig::default()),
        ] {
            let setup = Setup {
                name: "phones in the train".into(),
                mechanism,
                flows: 1000,
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
    fn a_timer_that_would_never_move_on_is_refused() {
        let fields = Fields::default().with("timer", "999999 ns");
        let error = timer(&fields, "timer").unwrap_err();
        assert_eq!(error.to_string(), "timer=999999 ns: expected at least 1 ms");
    }
}
