//! What all loaders of BPF programs need.

use libbpf_rs::{MapCore, MapImpl, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::sync::{Mutex, Once, PoisonError};

static LAST_WARNING: Mutex<String> = Mutex::new(String::new());

/// What libbpf said last, which is often why it failed; empty if it said nothing.
pub(crate) fn last_warning() -> String {
    LAST_WARNING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Reads a compiled program. What libbpf has to say goes to the log.
pub(crate) fn open(object: &[u8]) -> libbpf_rs::Result<OpenObject> {
    static QUIET: Once = Once::new();
    // By default libbpf writes to standard error.
    QUIET.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            let text = text.trim_end();
            tracing::debug!("libbpf: {text}");
            text.clone_into(&mut LAST_WARNING.lock().unwrap_or_else(PoisonError::into_inner));
        })));
    });
    ObjectBuilder::default().name("airtcp")?.open_memory(object)
}

/// A map by its name in the program.
pub(crate) fn map<'a>(object: &'a Object, name: &str) -> MapImpl<'a> {
    object.maps().find(|map| map.name() == name).expect("the object has this map")
}
