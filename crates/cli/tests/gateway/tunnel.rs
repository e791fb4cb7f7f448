//! A tunnel between the ends of a testbed, in which many flows are one: WireGuard in user space
//! (`make tunnel-peer`).

use crate::host::Host;
use crate::testbed::Testbed;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time the program may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// The fixed host's and the mobile's addresses inside.
const INSIDE: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
/// Their keys, private and public, made for this test.
const KEYS: [[&str; 2]; 2] = [
    [
        "77076d0a7318a57d3c16c17251b26645df4c2f92ebc0992ac177fba51db92c2a",
        "f8a9535a2d2ff605e8e144d54f4ef5c62313a2055dbb21fddd3fd9c299eb015d",
    ],
    [
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    ],
];

/// The programs at both ends; they end when this is dropped, before the testbed.
#[derive(Debug)]
pub(crate) struct Tunnel([Child; 2]);

impl Tunnel {
    /// From the fixed host to the mobile.
    pub(crate) fn new(bed: &Testbed) -> Self {
        let outside = bed.addresses();
        let end = |host: &Host, own: usize| {
            let peer = 1 - own;
            // Sockets of that name are in one folder for all hosts.
            let name = format!("wg{}-{own}", std::process::id());
            let program =
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tunnel/usr/bin/wireguard-go");
            assert!(Path::new(program).exists(), "{program}: `make tunnel-peer` gets it");
            let mut command = host.command(&[program, "--foreground", &name]);
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let ([private, _], [_, public]) = (KEYS[own], KEYS[peer]);
            let (inside, outside) = (INSIDE[peer], outside[peer]);
            configure(
                &name,
                &format!(
                    "set=1\nprivate_key={private}\nlisten_port=51820\npublic_key={public}\n\
                     allowed_ip={inside}/32\nendpoint={outside}:51820\n\n"
                ),
            );
            host.ip(&["addr", "add", &format!("{}/24", INSIDE[own]), "dev", &name]);
            host.ip(&["link", "set", &name, "up"]);
            child
        };
        Self([end(&bed.fixed, 0), end(&bed.mobile, 1)])
    }

    /// The fixed host's and the mobile's.
    pub(crate) fn addresses(&self) -> [IpAddr; 2] {
        INSIDE.map(|address| address.parse().unwrap())
    }
}

/// Sends a configuration to the program of this interface, once it listens
/// (wireguard.com/xplatform).
fn configure(interface: &str, text: &str) {
    let until = Instant::now() + PATIENCE;
    let mut socket = loop {
        match UnixStream::connect(format!("/var/run/wireguard/{interface}.sock")) {
            Ok(socket) => break socket,
            Err(error) => assert!(Instant::now() < until, "wireguard-go {interface}: {error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    socket.write_all(text.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "errno=0\n\n");
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // On SIGTERM the program removes its socket.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}
