//! The server with a loop that is a thread of the test.

use super::*;
use crate::command::{Inbox, channel};
use airtcp_core::LinkSignal;
use airtcp_edge::MobileId;
use airtcp_gateway::config::GatewayConfig;
use airtcp_gateway::control::Whose;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::Instant;
use tempfile::TempDir;

/// A gateway whose loop is a thread that answers, and passes on the signals.
struct Fixture {
    folder: TempDir,
    server: Option<Server>,
    metrics: SocketAddr,
    signals: Receiver<MobileSignal>,
}

impl Fixture {
    fn new() -> Self {
        let (handle, inbox) = channel().unwrap();
        let (told, signals) = mpsc::channel();
        let config = "[[mobile]]\nname = \"phones\"\naddresses = [\"10.0.0.0/29\"]\n\
                      [[uplink]]\ninterface = \"wwan0\"";
        let config = GatewayConfig::parse("gateway.toml", config).unwrap();
        std::thread::spawn(move || {
            while let Ok(command) = inbox.commands.recv() {
                match command {
                    Command::Status(answer) => {
                        let _ = answer.send(Status {
                            flow_count: 7,
                            committed: 3,
                            ..Status::default()
                        });
                    }
                    Command::Members(whose, answer) => {
                        let groups: Vec<_> = config.groups.iter().collect();
                        let _ = answer.send(whose.members(&groups));
                    }
                    Command::Signal(signal) => told.send(signal).unwrap(),
                    Command::Ping(answer) => drop(answer.send(())),
                    Command::Interface(..)
                    | Command::Withdrawn(..)
                    | Command::Reload(..)
                    | Command::Replaced(..)
                    | Command::Reloaded { .. }
                    | Command::Stop => {}
                }
            }
        });
        Self::with(handle, signals)
    }

    /// Nothing comes from its loop, which lives as long as the inbox.
    fn hung() -> (Self, Inbox) {
        let (handle, inbox) = channel().unwrap();
        (Self::with(handle, mpsc::channel().1), inbox)
    }

    fn with(handle: Handle, signals: Receiver<MobileSignal>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = Listeners::open(&socket_in(&folder), Some(loopback)).unwrap();
        let metrics = listeners.metrics_address().unwrap();
        let reload = || Err("gateway.toml:3:1: unknown key".to_owned());
        let server = Server::start(listeners, handle, reload).unwrap();
        Self { folder, server: Some(server), metrics, signals }
    }

    fn path(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        // Longer than the server's patience, so that a test fails instead of hanging.
        stream.set_read_timeout(Some(IDLE + PATIENCE)).unwrap();
        stream
    }

    fn says(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        line(&mut stream)
    }

    fn http(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("gateway.sock")
}

fn line(stream: &mut UnixStream) -> String {
    let mut answer = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn the_status_is_what_the_loop_says() {
    let fixture = Fixture::new();
    let Answer::Status(status) = ask(&fixture.path(), &Request::Status).unwrap() else { panic!() };
    assert_eq!(status.flow_count, 7);
}

#[test]
fn a_signal_is_with_the_loop_before_it_is_answered() {
    let fixture = Fixture::new();
    let signal = LinkSignal::Down;
    let request = Request::Signal { whose: Whose::parse("10.0.0.7").unwrap(), signal };
    assert_eq!(ask(&fixture.path(), &request).unwrap(), Answer::Done {});
    let mobile = MobileId::Host([10, 0, 0, 7].into());
    let expected = MobileSignal { mobile, signal, source: SignalSource::Control };
    assert_eq!(fixture.signals.try_recv(), Ok(expected));
}

#[test]
fn a_prefix_stands_for_the_hosts_in_it() {
    let fixture = Fixture::new();
    let request =
        Request::Signal { whose: Whose::parse("10.0.0.0/29").unwrap(), signal: LinkSignal::Up };
    ask(&fixture.path(), &request).unwrap();
    let hosts: Vec<_> = fixture.signals.try_iter().map(|signal| signal.mobile).collect();
    let expected = (1..=6).map(|host| MobileId::Host([10, 0, 0, host].into()));
    assert_eq!(hosts, expected.collect::<Vec<_>>());
}

#[test]
fn a_signal_about_an_uplink_that_is_not_there_is_refused() {
    let fixture = Fixture::new();
    let about = |uplink: &str| {
        let signal = LinkSignal::Down;
        ask(&fixture.path(), &Request::Signal { whose: Whose::parse(uplink).unwrap(), signal })
    };
    assert_eq!(about("wwan0").unwrap(), Answer::Done {});
    let uplink = MobileId::Uplink("wwan0".parse().unwrap());
    assert_eq!(fixture.signals.try_recv().unwrap().mobile, uplink);
    let error = about("wan0").unwrap_err().to_string();
    assert!(error.ends_with("unknown uplink \"wan0\"; did you mean \"wwan0\"?"), "{error}");
    assert!(fixture.signals.try_recv().is_err());
}

#[test]
fn a_group_stands_for_its_mobiles() {
    let fixture = Fixture::new();
    let about = |group: &str| {
        let whose = Whose::Group(group.to_owned());
        ask(&fixture.path(), &Request::Signal { whose, signal: LinkSignal::Down })
    };
    about("phones").unwrap();
    assert_eq!(fixture.signals.try_iter().count(), 6);
    let error = about("phone").unwrap_err().to_string();
    assert!(error.ends_with("unknown group \"phone\"; did you mean \"phones\"?"), "{error}");
}

#[test]
fn a_signal_about_a_mobile_in_no_group_is_refused_and_goes_nowhere() {
    let fixture = Fixture::new();
    let whose = Whose::parse("10.0.0.9").unwrap();
    let request = Request::Signal { whose, signal: LinkSignal::Down };
    let error = ask(&fixture.path(), &request).unwrap_err().to_string();
    assert!(error.contains("10.0.0.9 is in no group; the nearest is \"phones\""), "{error}");
    assert!(fixture.signals.try_recv().is_err());
}

#[test]
fn why_a_reload_was_refused_is_the_answer() {
    let fixture = Fixture::new();
    let error = ask(&fixture.path(), &Request::Reload).unwrap_err();
    assert!(
        matches!(error, AskError::Refused(ref message) if message.contains("toml:3:1")),
        "{error}"
    );
}

#[test]
fn lines_are_answered_one_by_one_and_a_mistake_ends_nothing() {
    let fixture = Fixture::new();
    let mut stream = fixture.connect();
    stream
        .write_all(b"{\"stats\":{}}\n{\"signal\":{\"mobile\":\"10.0.0.7\",\"signal\":\"up\"}}\n")
        .unwrap();
    assert_eq!(
        line(&mut stream),
        r#"{"error":{"message":"unknown request \"stats\"; did you mean \"status\"?"}}"#
    );
    assert_eq!(line(&mut stream), r#"{"done":{}}"#);
}

#[test]
fn a_line_without_an_end_is_answered_when_the_client_is_done() {
    let fixture = Fixture::new();
    let mut stream = fixture.connect();
    stream.write_all(br#"{"status":{}}"#).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(line(&mut stream).starts_with(r#"{"status":"#));
}

#[test]
fn the_length_of_a_line_is_bounded() {
    let fixture = Fixture::new();
    let longest =
        [vec![b' '; LINE_LIMIT - 13], br#"{"status":{}}"#.to_vec(), b"\n".to_vec()].concat();
    assert!(fixture.says(&longest).starts_with(r#"{"status":"#));
    let mut stream = fixture.connect();
    stream.write_all(&vec![b' '; LINE_LIMIT + 1]).unwrap();
    assert_eq!(line(&mut stream), r#"{"error":{"message":"the line is longer than 4096 bytes"}}"#);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "and that was all");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert!(Fixture::new().says(b"\xff\xfe\0\n").starts_with(r#"{"error":{"message":"not JSON: "#));
}

#[test]
fn idle_clients_hold_up_nobody() {
    let fixture = Fixture::new();
    let idle: Vec<_> = (0..100).map(|_| fixture.connect()).collect();
    let half: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = fixture.connect();
            stream.write_all(b"{\"sta").unwrap();
            stream
        })
        .collect();
    ask(&fixture.path(), &Request::Status).unwrap();
    drop((idle, half));
}

#[test]
fn beyond_the_bound_a_client_is_left_and_a_place_that_is_free_is_taken_again() {
    let fixture = Fixture::new();
    let idle: Vec<_> = (0..CLIENTS).map(|_| fixture.connect()).collect();
    assert_eq!(fixture.connect().read(&mut [0]).unwrap(), 0);
    drop(idle);
    let free = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        ask(&fixture.path(), &Request::Status).is_ok()
    });
    assert!(free);
}

#[test]
fn a_loop_that_hangs_is_told() {
    let (fixture, _inbox) = Fixture::hung();
    let error = ask(&fixture.path(), &Request::Status).unwrap_err();
    assert!(matches!(error, AskError::Refused(ref why) if why == UNRESPONSIVE), "{error}");
}

#[test]
fn only_the_owner_and_its_group_may_speak() {
    let fixture = Fixture::new();
    let mode = fs::metadata(fixture.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}

#[test]
fn the_socket_goes_with_the_server() {
    let mut fixture = Fixture::new();
    fixture.server = None;
    assert!(!fixture.path().exists());
    assert!(matches!(ask(&fixture.path(), &Request::Status), Err(AskError::Absent { .. })));
    assert!(TcpStream::connect(fixture.metrics).is_err());
}

#[test]
fn a_second_gateway_is_refused_and_the_first_stays() {
    let fixture = Fixture::new();
    let error = Listeners::open(&fixture.path(), None).unwrap_err();
    assert!(
        error.to_string().starts_with("another gateway runs: its control socket is "),
        "{error}"
    );
    ask(&fixture.path(), &Request::Status).unwrap();
}

#[test]
fn the_socket_of_a_dead_gateway_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket_in(&folder);
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    Listeners::open(&path, None).unwrap();
}

#[test]
fn what_is_no_socket_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket_in(&folder);
    fs::write(&path, "precious").unwrap();
    let error = Listeners::open(&path, None).unwrap_err();
    assert!(matches!(error, ServerError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn without_an_address_for_metrics_the_gateway_runs_and_serves_them_once_it_is_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let address = taken.local_addr().unwrap();
    let listeners = Listeners::open(&socket_in(&folder), Some(address)).unwrap();
    let (handle, _inbox) = channel().unwrap();
    let _server = Server::start(listeners, handle, || Ok(())).unwrap();
    UnixStream::connect(socket_in(&folder)).unwrap();
    drop(taken);
    let end = Instant::now() + 20 * AGAIN;
    while let Err(error) = TcpStream::connect(address) {
        assert!(Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_address_that_never_comes_is_named_and_the_socket_is_not_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket_in(&folder);
    // A link-local address without its interface.
    let address: SocketAddr = "[fe80::1]:4711".parse().unwrap();
    let error = Listeners::open(&path, Some(address)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("metrics: cannot listen on {address}: ")), "{error}");
    assert!(!path.exists());
}

#[test]
fn prometheus_gets_the_metrics_and_nothing_else() {
    let fixture = Fixture::new();
    let answer = fixture.http("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4\r\n"), "{answer}");
    assert!(answer.contains("\nairtcp_gateway_committed_flows 3\n"), "{answer}");
    let answer = fixture.http("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let answer = fixture.http("POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = fixture.http("nonsense\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[test]
fn a_slow_scraper_holds_up_nobody() {
    let fixture = Fixture::new();
    let slow: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(fixture.metrics).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    assert!(fixture.http("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").starts_with("HTTP/1.1 200 "));
    drop(slow);
}
