//! Files beside a scenario: traces of movement and of links.

use airtcp_config::nearest;
use flate2::read::MultiGzDecoder;
use std::cell::RefCell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The text of a file, decompressed if it is gzip's, or the message that says why not.
///
/// # Errors
/// It cannot be read, or is no UTF-8 text.
pub fn text(path: &Path) -> Result<String, String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).map_err(told)?;
        bytes = unpacked;
    }
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text", path.display()))
}

/// Why a file cannot be read, with the nearest name beside it if there is none of this name.
fn unreadable(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let near = near(path).map(|near| format!(" (did you mean {}?)", near.display()));
            format!("{shown}: there is no such file{}", near.unwrap_or_default())
        }
        io::ErrorKind::IsADirectory => format!("{shown}: this is a folder (expected a file)"),
        _ => format!("{shown}: {error}"),
    }
}

/// The file that this path most likely means.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let mut names: Vec<String> =
        beside.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = nearest(path.file_name()?.to_str()?, &names)?;
    Some(path.with_file_name(name))
}

/// Reads files by their paths relative to the folder of the file that names them.
pub fn beside(source_name: &str) -> impl Fn(&str) -> Result<String, String> + use<> {
    let folder = folder_of(source_name);
    move |path| text(&folder.join(path))
}

/// The files that a command reads, so that no output of it takes the place of one.
#[derive(Debug, Default)]
pub struct Inputs(RefCell<Vec<PathBuf>>);

impl Inputs {
    /// [`text`] of a file, which is then one of them.
    ///
    /// # Errors
    /// It cannot be read, or is no UTF-8 text.
    pub fn text(&self, path: &Path) -> Result<String, String> {
        // What has no name of its own, such as a pipe, is not replaced either.
        self.0.borrow_mut().extend(path.canonicalize());
        text(path)
    }

    /// The same for the files that one in this place names.
    pub fn beside<'a>(
        &'a self,
        source_name: &str,
    ) -> impl Fn(&str) -> Result<String, String> + use<'a> {
        let folder = folder_of(source_name);
        move |path| self.text(&folder.join(path))
    }

    /// Checks a file that is to be written.
    ///
    /// # Errors
    /// It is one of them, perhaps under another name; the message says which.
    pub fn spare(&self, output: &Path) -> Result<(), String> {
        let replaced = output.canonicalize().is_ok_and(|output| self.0.borrow().contains(&output));
        if replaced { Err(format!("{}: is read, too", output.display())) } else { Ok(()) }
    }
}

fn folder_of(source_name: &str) -> PathBuf {
    Path::new(source_name).parent().map(PathBuf::from).unwrap_or_default()
}
