//! `airtcp agent` as a program, with a gateway's listener in this process.

#![cfg(target_os = "linux")]

use airtcp_core::LinkSignal::{self, Down, Up};
use airtcp_gateway::config::{AgentConfig, Signals};
use airtcp_linux::command::{Command as ToLoop, Inbox, channel};
use airtcp_linux::signals::{self, Running};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;

fn airtcp(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.arg("agent").args(args);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A gateway that listens, and a folder with the key that `airtcp agent keygen` made.
struct Gateway {
    folder: TempDir,
    running: Running,
    inbox: Inbox,
}

impl Gateway {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("phone.key");
        let made = airtcp(&["keygen", "phone", "10.0.0.7", "--out", keys.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        let agent = Some(AgentConfig { listen: "127.0.0.1:0".parse().unwrap(), keys });
        let (handle, inbox) = channel().unwrap();
        let signals = Signals { agent, ..Signals::default() };
        let running = signals::start(&signals, &[], folder.path(), handle).unwrap();
        Self { folder, running, inbox }
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("phone.key")
    }

    /// An agent that knows this gateway and the key.
    fn agent(&self, args: &[&str]) -> Command {
        let address = self.running.agent_address().unwrap().to_string();
        let mut command = airtcp(&["--gateway", &address, "--key"]);
        command.arg(self.key()).args(args);
        command
    }

    /// Waits for the next signal, which must be this one.
    fn expect(&self, signal: LinkSignal) {
        let command = self.inbox.commands.recv_timeout(Duration::from_secs(5));
        let Ok(ToLoop::Signal(said)) = command else { panic!("{command:?} instead of {signal:?}") };
        assert_eq!(said.signal, signal);
    }

    fn is_silent(&self) -> bool {
        self.inbox.commands.try_recv().is_err()
    }
}

#[test]
fn a_signal_is_sent_by_hand() {
    let gateway = Gateway::start();
    let output = gateway.agent(&["send", "down"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("acknowledged: down (after "), "{}", stderr(&output));
    gateway.expect(Down);
}

#[test]
fn a_program_is_a_source() {
    let gateway = Gateway::start();
    let heard = gateway.folder.path().join("heard");
    let script =
        format!("echo down; until [ -e {} ]; do sleep 0.02; done; echo up", heard.display());
    std::thread::scope(|scope| {
        let mut agent = gateway.agent(&["--source", "command", "--source-command", &script]);
        let agent = scope.spawn(move || agent.output().unwrap());
        gateway.expect(Down);
        std::fs::write(&heard, "").unwrap();
        gateway.expect(Up);
        let output = agent.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    });
}

#[test]
fn a_program_that_fails_or_prints_something_else_ends_the_agent() {
    let gateway = Gateway::start();
    for (script, told) in [
        ("exit 3", "the program failed: exit status: 3"),
        ("echo gone", "the program printed \"gone\"; expected fading, down or up"),
        ("yes | tr -d '\\n'", "the program printed a line of more than 4096 bytes"),
    ] {
        let output =
            gateway.agent(&["--source", "command", "--source-command", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    assert!(gateway.is_silent());
}

#[test]
fn a_gateway_that_does_not_answer_is_an_error_after_a_while() {
    let gateway = Gateway::start();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let key = gateway.key();
    let args = [
        "--gateway",
        &address,
        "--key",
        key.to_str().unwrap(),
        "--patience",
        "250 ms",
        "send",
        "up",
    ];
    let output = airtcp(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("did not answer within 250 ms"), "{}", stderr(&output));
    silent.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let sent = std::iter::from_fn(|| silent.recv(&mut [0; 500]).ok()).count();
    assert!((2..=3).contains(&sent), "repeated: {sent}");
}

#[test]
fn bad_input_is_refused_with_what_was_expected() {
    let gateway = Gateway::start();
    let key = gateway.key();
    let key = key.to_str().unwrap();
    let refused = |args: &[&str], told: &str| {
        let output = airtcp(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    };
    refused(&["--gateway", "127.0.0.1:9", "--key", key], "--source is missing");
    refused(&["--key", key, "send", "up"], "--gateway HOST:PORT is missing");
    refused(&["--gateway", "127.0.0.1:9", "send", "up"], "--key FILE is missing");
    refused(&["--gateway", "127.0.0.1", "--key", key, "send", "up"], "expected HOST:PORT");
    refused(&["--gateway", "127.0.0.1:9", "--key", "/nonexistent", "send", "up"], "keygen");
    let not_mine = ["--gateway", "127.0.0.1:9", "--key", key, "--mobile", "10.0.0.8", "send", "up"];
    refused(&not_mine, "the key speaks for 10.0.0.7/32, not for 10.0.0.8");
    let no_command = ["--gateway", "127.0.0.1:9", "--key", key, "--source", "command"];
    refused(&no_command, "--source command needs --source-command COMMAND");
    // As the unit has it without WATCH.
    let empty = [&no_command[..], &["--source-command", ""]].concat();
    refused(&empty, "--source command needs --source-command COMMAND");
    refused(&["keygen", "my phone", "10.0.0.7"], "expected 1 to 16 of a-z");
    refused(&["keygen", "phone", "10.0.0.7/8"], "the prefix is 10.0.0.0/8");
    std::fs::set_permissions(gateway.key(), std::fs::Permissions::from_mode(0o644)).unwrap();
    refused(&["--gateway", "127.0.0.1:9", "--key", key, "send", "up"], "fix it with: chmod 600");
}
