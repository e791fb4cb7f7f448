//! The way from inside the link to networks beyond the outer namespace: one table of nftables that
//! masquerades the inner address.
//!
//! The table has an owner (`flags owner`, Linux 5.12): the `nft -i` that made it and that waits for
//! more on a pipe from this process. When the process ends, however that happens, the pipe closes,
//! `nft` ends, and the kernel removes the table.

use crate::port::{End, Slot};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The rule is in force as long as this.
#[derive(Debug)]
pub(crate) struct Nat {
    nft: Child,
}

impl Nat {
    /// Masquerades what comes out of the link in the calling thread's namespace.
    pub(crate) fn new(slot: Slot) -> io::Result<Self> {
        let table = table(slot, std::process::id());
        check(&table)?;
        let mut nft = Command::new("nft")
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C for the command must not end it.
            .process_group(0)
            .spawn()?;
        if let Some(stdin) = &mut nft.stdin {
            stdin.write_all(table.as_bytes())?;
        }
        Ok(Self { nft })
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        // The table goes when `nft` has ended; the kernel does later what cannot be done here.
        drop(self.nft.stdin.take());
        let _ = self.nft.wait();
    }
}

/// Whether the outer namespace forwards packets at all.
pub(crate) fn forwards() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    setting.is_ok_and(|text| text.trim() != "0")
}

/// Lets the calling thread's namespace, which must be one of ours, forward: for links nested in it.
pub(crate) fn forward() -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
}

fn table(slot: Slot, process: u32) -> String {
    let (device, inside) = (slot.device(), slot.ipv4(End::Inside));
    format!(
        "table ip {device}_{process} {{ flags owner; chain postrouting {{ type nat hook \
         postrouting priority srcnat; ip saddr {inside} oifname != \"{device}\" masquerade; }}; }}\n"
    )
}

fn check(table: &str) -> io::Result<()> {
    let mut nft = Command::new("nft")
        .args(["--check", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = nft.stdin.take() {
        stdin.write_all(table.as_bytes())?;
    }
    let output = nft.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(told.lines().next().unwrap_or("refused").to_owned()))
}
