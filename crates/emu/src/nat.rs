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
use std::thread;
use std::time::{Duration, Instant};

/// How long `nft` may take to put the table in force.
const PATIENCE: Duration = Duration::from_secs(10);

/// The rule is in force as long as this.
#[derive(Debug)]
pub(crate) struct Nat {
    nft: Child,
}

impl Nat {
    /// Masquerades what comes out of the link in the calling thread's namespace, from now on.
    pub(crate) fn new(slot: Slot) -> io::Result<Self> {
        let name = format!("{}_{}", slot.device(), std::process::id());
        let table = table(slot, &name);
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
        let nat = Self { nft };
        // Until then packets would leave with the inner address, and nobody could answer them.
        let until = Instant::now() + PATIENCE;
        while !is_there(&name)? {
            if Instant::now() > until {
                return Err(io::Error::other("nft does not set the table"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(nat)
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

fn table(slot: Slot, name: &str) -> String {
    let (device, inside) = (slot.device(), slot.ipv4(End::Inside));
    format!(
        "table ip {name} {{ flags owner; chain postrouting {{ type nat hook \
         postrouting priority srcnat; ip saddr {inside} oifname != \"{device}\" masquerade; }}; }}\n"
    )
}

/// Whether the calling thread's namespace has the table.
fn is_there(name: &str) -> io::Result<bool> {
    let mut nft = Command::new("nft");
    nft.args(["list", "table", "ip", name]).stdin(Stdio::null());
    Ok(nft.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
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
