//! The inputs of a fuzz target, for tests that replay them.

use std::path::{Path, PathBuf};

/// The files of the target's corpus, sorted by name.
pub(crate) fn files(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// Checks each file.
pub(crate) fn replay(target: &str, mut check: impl FnMut(&[u8])) {
    for path in files(target) {
        println!("{}", path.display()); // shown when the check fails
        check(&std::fs::read(&path).unwrap());
    }
}
