//! Network namespaces: new ones, named ones, and work done inside.
//!
//! A namespace is a property of a thread, so work inside one is done by a separate thread, and the
//! rest of the process stays where it is.

use crate::EmuError;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::path::Path;

/// Folder with the namespaces that `ip netns` has named.
const NAMED: &str = "/run/netns";

/// An open network namespace, kept alive by this handle.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// The namespace that `ip netns` knows as `name`.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be opened.
    pub fn named(name: &str) -> Result<Self, EmuError> {
        let path = Path::new(NAMED).join(name);
        match File::open(path) {
            Ok(file) => Ok(Self { file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let entries = std::fs::read_dir(NAMED).into_iter().flatten().flatten();
                let mut known: Vec<String> =
                    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
                known.sort();
                Err(EmuError::NoSuchNamespace { name: name.to_owned(), known })
            }
            Err(source) => Err(EmuError::Namespace { what: format!("open {name:?}"), source }),
        }
    }

    /// Does `work` inside, on a separate thread.
    ///
    /// # Errors
    /// The namespace cannot be entered, or what `work` returns.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, EmuError> + Send,
    ) -> Result<T, EmuError> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|e| EmuError::Namespace {
                    what: "enter a network namespace".to_owned(),
                    source: e.into(),
                })?;
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Moves the calling thread, and all that it starts afterwards, to a new network namespace.
///
/// # Errors
/// The kernel or a missing privilege forbids it.
pub(crate) fn enter_new() -> Result<(), EmuError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| EmuError::Namespace {
        what: "make a network namespace".to_owned(),
        source: e.into(),
    })
}
