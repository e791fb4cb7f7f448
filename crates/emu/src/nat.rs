//! Access from inside the link to networks beyond the outer namespace: one table of nftables that
//! masquerades the inner address.
//!
//! The table has an owner (`flags owner`, Linux 5.12): the `nft -i` that made it, which reads from
//! a pipe of this process. When the process ends, however it ends, the pipe closes, `nft` ends, and
//! the kernel removes the table.

use crate::port::{End, Slot};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time for `nft` to put the table in force.
const PATIENCE: Duration = Duration::from_secs(10);

/// The masquerading rule, in force until this is dropped.
#[derive(Debug)]
pub(crate) struct Nat {
    nft: Child,
}

impl Nat {
    /// Masquerades packets that leave the link in the calling thread's namespace.
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
        // Until the table is there, packets would leave with the inner address, and no answer
        // could reach them.
        let until = Instant::now() + PATIENCE;
        while !is_there(&name)? {
            if Instant::now() > until {
                return Err(io::Error::other("nft did not create the table in time"));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(nat)
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        // The kernel removes the table when `nft` has ended; if waiting fails, it does so later.
        drop(self.nft.stdin.take());
        let _ = self.nft.wait();
    }
}

/// True if the outer namespace forwards IPv4 packets.
pub(crate) fn forwards() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    setting.is_ok_and(|text| text.trim() != "0")
}

/// Enables forwarding in the calling thread's namespace, which must be one of ours, for links
/// nested in it.
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

/// True if the calling thread's namespace has the table.
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(stderr.lines().next().unwrap_or("refused").to_owned()))
}
