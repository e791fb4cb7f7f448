//! The programs of one group in the kernel, and their maps.

use super::layout::{self, Counters};
use super::object::{self, ONLY};
use super::prefixes::Prefixes;
use super::tcx;
use airtcp_core::{Duration, Flow, Instant};
use airtcp_edge::MobileEnd;
use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, MapImpl, Object, ProgramMut, RingBuffer, RingBufferBuilder,
};

/// `bpf/packet_control.bpf.c`, compiled.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/packet_control.bpf.o"));

/// A closed connection is kept for so long: its hosts may still send something (RFC 9293 §3.4.2, 2 MSL in practice).
const LINGER: Duration = Duration::from_secs(60);

/// Connections read by one system call.
const BATCH: u32 = 1024;

/// Loaded programs; they do nothing before they are [attached](Self::attach).
#[derive(Debug)]
pub(super) struct Program {
    object: Object,
    /// What the map of prefixes has, and how often it was set.
    prefixes: Prefixes,
    generation: u32,
    /// Connections that [`Program::sweep`] removed.
    swept: u64,
}

impl Program {
    /// Loads them, with room for so many connections.
    pub(super) fn load(flows: usize) -> libbpf_rs::Result<Self> {
        let mut object = object::open(OBJECT)?;
        for mut map in object.maps_mut() {
            if map.name() == "flows" {
                map.set_max_entries(u32::try_from(flows).unwrap_or(u32::MAX))?;
            }
        }
        let object = object.load()?;
        Ok(Self { object, prefixes: Prefixes::new(), generation: 0, swept: 0 })
    }

    /// R, how long a connection may be idle, and whose packets they are to look at.
    pub(super) fn configure(
        &mut self,
        threshold: u32,
        idle: Duration,
        prefixes: Prefixes,
    ) -> libbpf_rs::Result<()> {
        let map = self.map("mobiles");
        for (&(index, net), &is_own) in &prefixes {
            let value = u32::from(is_own).to_ne_bytes();
            map.update(&layout::prefix(index, net), &value, MapFlags::ANY)?;
        }
        for (index, net) in self.prefixes.keys().filter(|key| !prefixes.contains_key(key)) {
            map.delete(&layout::prefix(*index, *net))?;
        }
        self.prefixes = prefixes;
        // What is remembered of connections counts no more.
        self.generation = self.generation.wrapping_add(1);
        let settings = layout::settings(idle, threshold, self.generation);
        self.map("settings").update(&ONLY, &settings, MapFlags::ANY)
    }

    /// Attaches both to the interface with this index, until the links are dropped or the process ends.
    pub(super) fn attach(&self, interface: u32) -> libbpf_rs::Result<[Link; 2]> {
        Ok([
            tcx::attach(&self.program("from_mobile"), interface)?,
            tcx::attach(&self.program("to_mobile"), interface)?,
        ])
    }

    /// What they counted.
    pub(super) fn counters(&self) -> libbpf_rs::Result<Counters> {
        let of_processors = self.map("counters").lookup_percpu(&ONLY, MapFlags::ANY)?;
        Ok(layout::counters(&of_processors.unwrap_or_default()))
    }

    /// Connections known, by what was counted.
    pub(super) fn flow_count(&self, counters: &Counters) -> u64 {
        counters.flows_added.saturating_sub(counters.flows_removed + self.swept)
    }

    /// Some of the connections known, at most so many.
    pub(super) fn flows(&self, limit: usize) -> Vec<Flow> {
        self.map("flows").keys().filter_map(|key| layout::flow(&key)).take(limit).collect()
    }

    /// Forgets connections that were idle for too long, or closed a while ago.
    pub(super) fn sweep(&mut self, now: Instant, idle: Duration) -> libbpf_rs::Result<()> {
        let map = self.map("flows");
        let is_over = |value: &[u8]| {
            layout::entry(value).is_some_and(|entry| {
                let unused = now.since(entry.last_segment);
                unused >= idle || (entry.is_closed && unused >= LINGER)
            })
        };
        let over: Vec<Vec<u8>> = map
            .lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY)?
            .filter(|(_, value)| is_over(value))
            .map(|(key, _)| key)
            .collect();
        // One that a SYN has just removed is gone.
        let removed = over.iter().filter(|key| map.delete(key).is_ok()).count();
        self.swept += removed as u64;
        Ok(())
    }

    /// Hands what is to be answered in a mobile's name to `answer`, when the ring buffer is read.
    pub(super) fn answers<'a>(
        &self,
        mut answer: impl FnMut(Flow, MobileEnd) + 'a,
    ) -> libbpf_rs::Result<RingBuffer<'a>> {
        let map = MapHandle::try_from(&self.map("answers"))?;
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, move |event| {
            if let Some((flow, mobile)) = layout::answer(event) {
                answer(flow, mobile);
            }
            0
        })?;
        builder.build()
    }

    pub(super) fn map(&self, name: &str) -> MapImpl<'_> {
        object::map(&self.object, name)
    }

    pub(super) fn program(&self, name: &str) -> ProgramMut<'_> {
        object::program(&self.object, name)
    }
}
