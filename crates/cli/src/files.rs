//! Files that are read, and files that appear under their name only once they are complete.

use crate::check;
use airtcp_config::Override;
use airtcp_sim::scenario::files::Inputs;
use airtcp_sim::scenario::{self, Scenario};
use airtcp_tcp::congestion::Controls;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};

/// The text of a file, or the message that says why not.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    scenario::files::text(path).map_err(|message| format!("airtcp: {message}"))
}

/// The scenario in a file, with overrides, or its diagnostics. What it reads is added to `inputs`.
pub(crate) fn scenario(
    path: &Path,
    set: &[(String, String)],
    controls: Option<&Controls>,
    inputs: &Inputs,
) -> Result<Scenario, String> {
    let text = inputs.text(path).map_err(|message| format!("airtcp: {message}"))?;
    let name = path.display().to_string();
    let set: Vec<Override> = set.iter().map(Override::set).collect();
    let files = inputs.beside(&name);
    Scenario::parse_with_files(&name, &text, &set, controls, &files).map_err(|error| {
        let mistakes = error.render();
        match check::is_other_than_a_scenario(&text) {
            true => format!(
                "{mistakes}\nairtcp: {name}: it has no key of a scenario (`airtcp check` tells what it is)"
            ),
            false => mistakes,
        }
    })
}

/// A file being written. It has a temporary name in the folder of its target until
/// [`Draft::publish`]; dropped before that, it vanishes.
pub(crate) struct Draft {
    file: BufWriter<NamedTempFile>,
    target: PathBuf,
}

impl Draft {
    /// Begins the file that will be `target`.
    pub(crate) fn new(target: &Path) -> io::Result<Self> {
        // A device or a pipe would be replaced, not written to.
        if target.file_name().is_none() || (target.exists() && !target.is_file()) {
            let message = format!("{}: not a regular file", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        check_folder(target)?;
        let file = as_permitted(&mut temporary(), 0o666)
            .tempfile_in(folder(target))
            .map_err(|e| named(e, target))?;
        Ok(Self { file: BufWriter::new(file), target: target.to_owned() })
    }

    /// Gives the complete file its name, replacing an older file.
    pub(crate) fn publish(self) -> io::Result<()> {
        let Self { file, target } = self;
        let file = file.into_inner().map_err(|e| named(e.into_error(), &target))?;
        file.persist(&target).map(|_: File| ()).map_err(|e| named(e.error, &target))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| named(e, &self.target))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|e| named(e, &self.target))
    }
}

/// A folder of files being written, as a [`Draft`] is a file.
pub(crate) struct DraftFolder {
    folder: TempDir,
    target: PathBuf,
}

impl DraftFolder {
    /// Begins the folder that will be `target`, or files that will be in it if it is there.
    pub(crate) fn new(target: &Path) -> io::Result<Self> {
        let parent = if target.is_dir() { target } else { folder(target) };
        create_folder(parent)?;
        let begun = as_permitted(&mut temporary(), 0o777).tempdir_in(parent);
        let folder = begun.map_err(|e| named(e, target))?;
        Ok(Self { folder, target: target.to_owned() })
    }

    /// Where the files will be.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Where files can be written until they are published.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Begins a file.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let named = |e: io::Error| {
            io::Error::new(e.kind(), format!("{}: {e}", self.target.join(name).display()))
        };
        let path = self.folder.path().join(name);
        let file = match File::create_new(&path) {
            Err(error) if lacks_handles(&error) => {
                more_handles();
                File::create_new(&path)
            }
            result => result,
        };
        file.map_err(named)
    }

    /// Gives the complete files their names, replacing older files.
    pub(crate) fn publish(self) -> io::Result<()> {
        let Self { folder, target } = self;
        let publish = || {
            if !target.is_dir() {
                return std::fs::rename(folder.path(), &target);
            }
            for file in std::fs::read_dir(folder.path())? {
                let file = file?;
                std::fs::rename(file.path(), target.join(file.file_name()))?;
            }
            Ok(())
        };
        publish().map_err(|e| named(e, &target))
    }
}

/// The process has as many files open as its soft limit allows, often 1024. A run has one for each
/// link or interface.
#[cfg(unix)]
fn lacks_handles(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
}

/// Doubles that limit, as far as the hard one allows. Another thread may do so at the same time.
#[cfg(unix)]
fn more_handles() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.map(|now| now.saturating_mul(2).min(maximum.unwrap_or(u64::MAX)));
    // If it cannot be, the file will say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

#[cfg(not(unix))]
fn lacks_handles(_: &io::Error) -> bool {
    false
}

#[cfg(not(unix))]
fn more_handles() {}

/// A folder of files of a run.
pub(crate) struct FolderOf {
    /// Endings that their names may have; what runs write has the first.
    pub(crate) endings: &'static [&'static str],
    /// What each file is for: "interface".
    pub(crate) one_for: &'static str,
    /// All together: "captures".
    pub(crate) all: &'static str,
}

impl FolderOf {
    /// Checks that `folder` can get files of these names, and no others would be among them.
    ///
    /// # Errors
    /// It is or looks like a file, cannot be read, or has files that these would not replace.
    pub(crate) fn check(&self, folder: &Path, ours: &BTreeSet<String>) -> io::Result<()> {
        let refuse = |why: &str| {
            let message = format!("{}: {why}", folder.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        };
        let Self { endings, one_for, all } = self;
        let is_named_so = folder.extension().is_some_and(|it| endings.iter().any(|end| it == *end));
        if !folder.is_dir() && (is_named_so || folder.exists()) {
            return refuse(&format!("expected a folder, which gets a file for each {one_for}"));
        }
        if folder.is_dir() {
            for entry in std::fs::read_dir(folder)? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                if name.ends_with(&format!(".{}", endings[0])) && !ours.contains(&*name) {
                    return refuse(&format!(
                        "has {name}, which this run would not replace: expected a folder without \
                         {all} of other runs"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A temporary name.
fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".airtcp-").suffix(".tmp");
    builder
}

/// A result is no secret: it is as readable as any file the user makes.
#[cfg_attr(not(unix), allow(unused_variables))]
fn as_permitted<'b>(
    builder: &'b mut tempfile::Builder<'static, 'static>,
    mode: u32,
) -> &'b mut tempfile::Builder<'static, 'static> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    builder
}

/// Checks that there is a folder to put `target` in.
///
/// # Errors
/// There is none; the message has both.
pub fn check_folder(target: &Path) -> io::Result<()> {
    let folder = folder(target);
    if folder.is_dir() {
        return Ok(());
    }
    let message = format!("{}: there is no folder {}", target.display(), folder.display());
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

/// Makes a folder, and those above it, unless it is there.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    let explained = |e: io::Error| {
        io::Error::new(e.kind(), format!("cannot create the folder {}: {e}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(explained)
}

/// Checks that `target` can be written; leaves nothing behind.
pub(crate) fn probe(target: &Path) -> io::Result<()> {
    Draft::new(target).map(drop)
}

/// `file.ext` with `-seedN` before the ending.
pub(crate) fn with_seed(file: &Path, seed: u64) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-seed{seed}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The error, with the name of its file.
pub(crate) fn named(error: io::Error, target: &Path) -> io::Error {
    // The kind leaves out the temporary name, which would only confuse.
    let kind = error.kind();
    io::Error::new(kind, format!("{}: {kind}", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_has_no_name_until_it_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.jsonl");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut draft = Draft::new(&target).unwrap();
        draft.write_all(b"half").unwrap();
        assert!(!target.exists());
        drop(draft);
        assert_eq!(names(), 0);
        let mut draft = Draft::new(&target).unwrap();
        draft.write_all(b"whole").unwrap();
        draft.publish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(), 1);
    }

    #[test]
    fn a_draft_folder_has_no_name_until_it_is_published_and_replaces_only_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b");
        let names = |path: &Path| std::fs::read_dir(path).unwrap().count();
        let draft = DraftFolder::new(&target).unwrap();
        draft.file("x").unwrap().write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(names(&folder.path().join("a")), 0);
        for text in ["first", "second"] {
            let draft = DraftFolder::new(&target).unwrap();
            draft.file("x").unwrap().write_all(text.as_bytes()).unwrap();
            draft.publish().unwrap();
            assert_eq!(std::fs::read_to_string(target.join("x")).unwrap(), text);
            std::fs::write(target.join("other"), "stays").unwrap();
        }
        assert_eq!((names(&target), names(&folder.path().join("a"))), (2, 1));
    }

    #[test]
    fn what_is_not_a_regular_file_is_no_target() {
        let folder = tempfile::tempdir().unwrap();
        assert!(probe(folder.path()).is_err());
        assert!(probe(Path::new("/dev/null")).is_err());
        let error = probe(&folder.path().join("no/such/file")).unwrap_err();
        assert!(!error.to_string().contains(".airtcp-"), "{error}");
        assert!(error.to_string().contains("file: there is no folder "), "{error}");
    }

    #[test]
    fn the_seed_stands_before_the_ending() {
        assert_eq!(with_seed(Path::new("a/b.pcapng"), 7), Path::new("a/b-seed7.pcapng"));
        assert_eq!(with_seed(Path::new("b"), 7), Path::new("b-seed7"));
    }
}
