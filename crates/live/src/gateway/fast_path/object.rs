//! Compiled BPF programs and their maps.

use libbpf_rs::{MapCore, MapImpl, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut};
use std::sync::Once;

/// The only key of maps with one element.
pub(super) const ONLY: [u8; 4] = [0; 4];

/// Reads what `build.rs` has compiled.
pub(super) fn open(compiled: &[u8]) -> libbpf_rs::Result<OpenObject> {
    static QUIET: Once = Once::new();
    // By default libbpf writes to standard error.
    QUIET.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            tracing::debug!("libbpf: {}", text.trim_end())
        })));
    });
    ObjectBuilder::default().name("airtcp")?.open_memory(compiled)
}

pub(super) fn map<'a>(object: &'a Object, name: &str) -> MapImpl<'a> {
    object.maps().find(|map| map.name() == name).expect("the object has this map")
}

pub(super) fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|program| program.name() == name).expect("the object has it")
}

/// The number at place `n` in a map's only element, summed up over all processors.
pub(super) fn sum(of_processors: &[Vec<u8>], n: usize) -> u64 {
    let of_one = |value: &Vec<u8>| {
        let bytes = value.get(8 * n..8 * n + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    of_processors.iter().filter_map(of_one).fold(0, u64::wrapping_add)
}
