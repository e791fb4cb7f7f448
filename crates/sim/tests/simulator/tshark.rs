//! tshark, for tests of captures.

use std::process::Command;

/// Output of tshark for the file with checksums verified; `None` (and a note) if tshark is missing.
pub(crate) fn tshark(test: &str, file: &[u8], arguments: &[&str]) -> Option<String> {
    let path = std::env::temp_dir().join(format!("airtcp-{}-{test}.pcapng", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(["-o", "udp.check_checksum:TRUE"])
        .args(arguments)
        .output();
    std::fs::remove_file(&path).unwrap();
    match output {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "tshark: {errors}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            airtcp_testing::skip("tshark");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}
