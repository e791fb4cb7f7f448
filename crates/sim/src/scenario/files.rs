//! Files beside a scenario: traces of movement and of links.

use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The text of a file, decompressed if it is gzip's, or the message that says why not.
///
/// # Errors
/// It cannot be read, or is no UTF-8 text.
pub fn text(path: &Path) -> Result<String, String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = std::fs::read(path).map_err(told)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut unpacked).map_err(told)?;
        bytes = unpacked;
    }
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text", path.display()))
}

/// Reads files by their paths relative to the folder of the file that names them.
pub fn beside(source_name: &str) -> impl Fn(&str) -> Result<String, String> + use<> {
    let folder = Path::new(source_name).parent().map(PathBuf::from).unwrap_or_default();
    move |path| text(&folder.join(path))
}
