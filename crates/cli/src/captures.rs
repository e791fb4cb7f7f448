//! The captures of a run in a folder, a file for each network interface (docs/captures.md).

use crate::files::{self, DraftFolder, FolderOf};
use airtcp_sim::scenario::{NodeId, Scenario};
use airtcp_sim::trace::{Interface, PacketTap, PcapWriter};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

/// The largest snap length, which is tcpdump's.
const MAX_SNAPLEN: u32 = 262_144;

/// Reads a snap length (of `--snaplen`).
///
/// # Errors
/// It is not from 1 to 262144; the message says what is expected.
pub fn snaplen(text: &str) -> Result<NonZeroU32, String> {
    text.parse::<NonZeroU32>()
        .ok()
        .filter(|bytes| bytes.get() <= MAX_SNAPLEN)
        .ok_or_else(|| format!("expected a number of bytes from 1 to {MAX_SNAPLEN}"))
}

/// What is captured.
#[derive(Clone, Debug)]
pub struct Captures {
    interfaces: Vec<Interface>,
    snaplen: Option<NonZeroU32>,
}

impl Captures {
    /// All packets at these nodes of the scenario, or at all of its nodes if there are none; of each
    /// packet the first `snaplen` bytes.
    ///
    /// # Errors
    /// The scenario has no such node; the message names the nearest.
    pub fn new(
        scenario: &Scenario,
        nodes: &[String],
        snaplen: Option<NonZeroU32>,
    ) -> Result<Self, String> {
        let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        let known = |name: &String| match names.iter().position(|known| known == name) {
            Some(index) => Ok(NodeId(index as u32)),
            None => {
                let near = airtcp_config::nearest(name, &names)
                    .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
                Err(format!("the scenario has no node {name:?}{near}"))
            }
        };
        let wanted = nodes.iter().map(known).collect::<Result<BTreeSet<NodeId>, String>>()?;
        let mut interfaces = Interface::all(scenario);
        let chosen = |node| wanted.is_empty() || wanted.contains(&node);
        interfaces.retain(|interface| interface.node().is_some_and(chosen));
        Ok(Self { interfaces, snaplen })
    }

    /// Also the frames of each cell, as a sniffer in monitor mode hears them.
    ///
    /// # Errors
    /// The scenario has no cell.
    pub fn with_sniffers(mut self, scenario: &Scenario) -> Result<Self, String> {
        if scenario.wlans.is_empty() {
            return Err("the scenario has no [[wlan]], whose frames it would capture".to_owned());
        }
        self.interfaces.extend(Interface::sniffers(scenario));
        Ok(self)
    }

    fn file_name(interface: &Interface) -> String {
        format!("{}.pcapng", interface.name)
    }

    /// Checks that `folder` can be that of the captures.
    ///
    /// # Errors
    /// It is or looks like a file, cannot be read, or has captures that these would not replace.
    pub fn check(&self, folder: &Path) -> io::Result<()> {
        let ours = self.interfaces.iter().map(Self::file_name).collect();
        let kind = FolderOf { endings: &["pcapng", "pcap"], one_for: "interface", all: "captures" };
        kind.check(folder, &ours)
    }

    /// Begins the captures of the run with `seed`, to be in `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn begin(&self, scenario: &Scenario, seed: u64, folder: &Path) -> io::Result<Capturing> {
        let draft = DraftFolder::new(folder)?;
        let open = |interface: &Interface| draft.file(&Self::file_name(interface));
        let writer = PcapWriter::new(scenario, seed, &self.interfaces, self.snaplen, open)?;
        Ok(Capturing { writer, draft })
    }
}

/// Captures of a run that goes on. Dropped before [`Capturing::publish`], they vanish.
pub struct Capturing {
    writer: PcapWriter<File>,
    draft: DraftFolder,
}

impl Capturing {
    /// What has to see the packets.
    pub fn tap(&mut self) -> &mut dyn PacketTap {
        &mut self.writer
    }

    /// Gives the complete files their names, replacing older ones.
    ///
    /// # Errors
    /// The first error of the run, or of the last writes.
    pub fn publish(self) -> io::Result<()> {
        let Self { writer, draft } = self;
        writer.finish().map_err(|error| files::named(error, draft.target()))?;
        draft.publish()
    }
}
