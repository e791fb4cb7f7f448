//! A node of a movement trace that another tool made ([`import`](super::import)).

use super::Path;
use super::import::{self, Format, Movement};
use airtcp_settings::schema::{Fallback, Key, Kind, TextKind, field};
use airtcp_settings::{Name, Reader, Settings, Value};
use std::sync::Arc;

/// A node of a trace, and the nodes beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceNode {
    movement: Arc<Movement>,
    /// A number in `movement`.
    node: u32,
    is_chosen: bool,
}

static TRACE_FILE: TextKind = TextKind {
    name: "path",
    plural: "paths",
    expected: "the path of a movement trace",
    expected_plural: "paths of movement traces",
};

impl TraceNode {
    /// The node's movement.
    pub fn path(&self) -> &Path {
        &self.movement[&self.node]
    }

    /// True if it is the one that the file chose, or the only one of the trace.
    pub fn is_certain(&self) -> bool {
        self.is_chosen || self.movement.len() == 1
    }

    /// The node that is so many places further in the trace, whose numbers may have gaps. `None`: the
    /// trace has no more.
    pub fn further(&self, by: u32) -> Option<Self> {
        let mut from_here = self.movement.range(self.node..);
        let (&node, _) = from_here.nth(by as usize)?;
        Some(Self { node, ..self.clone() })
    }

    /// What the trace has, for messages: `one of the nodes 0, 3 to 5`.
    pub fn choice(&self) -> String {
        choice(&self.movement)
    }
}

fn choice(movement: &Movement) -> String {
    format!("one of the nodes {}", import::list(&import::numbers(movement)))
}

impl Settings for TraceNode {
    const KEYS: &'static [Key] = &[Key::Fields(&[
        field(
            "file",
            Kind::Text(&TRACE_FILE),
            Fallback::Required,
            "File with a movement trace, perhaps compressed with gzip; relative to the scenario file.",
        ),
        field(
            "format",
            Format::KIND,
            Fallback::Absent(
                "as the file's name says: `.movements`, or `.tcl`, `.ns_movements`, `.setdest`",
            ),
            "Format of the trace.",
        ),
        field(
            "node",
            <u32 as Value>::KIND,
            Fallback::Absent(
                "for a group, the trace's lowest; required if the trace has several nodes",
            ),
            "Number of the node in the trace; of a group, the first node's, and the others' follow.",
        ),
    ])];

    fn read<R: Reader>(from: &R, _base: Option<&Self>) -> Option<Self> {
        let file = from.get::<Name>("file");
        let format = from.get::<Option<Format>>("format");
        let number = from.get::<Option<u32>>("node");
        let (file, format, number) = (file?, format?, number?);
        let Some(format) = format.or_else(|| Format::of_name(&file.text)) else {
            let message = "missing: the file's name does not say it".to_owned();
            from.refuse(Some("format"), message, &Format::KIND.describe());
            return None;
        };
        let movement = from.file("file", &file, |text| import::parse(format, text))?;
        let lowest = *movement.keys().next()?;
        let node = number.unwrap_or(lowest);
        if !movement.contains_key(&node) {
            let message = format!("the trace has no node {node}");
            from.refuse(Some("node"), message, &choice(&movement));
            return None;
        }
        Some(Self { movement: Arc::new(movement), node, is_chosen: number.is_some() })
    }

    /// The file is not kept: there is nothing to write.
    fn write(&self, _to: &mut Vec<(&'static str, String)>) {}
}
