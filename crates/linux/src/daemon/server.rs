//! Serves the control socket and the metrics, in one thread beside the loop.
//!
//! Read first: [`control`](airtcp_gateway::control) (the protocol). [`Listeners::open`] binds the
//! socket and the port, so that a mistake shows before anything else is touched; [`Server::start`]
//! serves them until it is dropped.
//!
//! A client can be slow, or hostile if the socket's permissions admit it: the length of lines, the
//! number of clients and their time are bounded, and one client at a time may ask the loop.

use crate::command::{Command, Handle};
use crate::daemon::client::{AskError, ask};
use crate::kernel::predecessor::when_free;
use airtcp_gateway::control::{Answer, LINE_LIMIT, Request};
use airtcp_gateway::metrics;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use airtcp_gateway::status::Status;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::fcntl::{Flock, FlockArg};
pub use socket2::Type;
use socket2::{Domain, SockAddr, Socket};
use std::convert::Infallible;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Semaphore, oneshot};

/// Permissions of the control socket: its owner and group may connect.
const SOCKET_MODE: u32 = 0o660;

/// Most clients at a time, of the control socket and of the metrics each.
const CLIENTS: usize = 256;

/// Idle time after which a client is disconnected.
const IDLE: Duration = Duration::from_secs(10);

/// Longest time to wait for the loop's answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Pause after `accept` failed, for example because of too many open files.
const BREATHER: Duration = Duration::from_millis(100);

/// Time between attempts to listen for clients of the metrics.
const AGAIN: Duration = Duration::from_secs(1);

/// Attempts after which the log says that the metrics are not served.
const TELL_AFTER: u32 = 3;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Reason why the control socket or the metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket is in use.
    #[error(
        "another gateway runs: its control socket is {path}; stop it, or give this one its own `control`"
    )]
    AlreadyRuns {
        /// Path of the control socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{path}: exists and is not a socket; give `control` another path")]
    NotASocket {
        /// Path of the control socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("control socket: {path}: {source}")]
    Socket {
        /// Path of the socket, of its lock or of its folder.
        path: PathBuf,
        /// The error on creating it.
        source: io::Error,
    },
    /// The metrics' address is not available.
    #[error(
        "metrics: cannot listen on {address}: {source}; give `metrics` a free address of this host"
    )]
    Metrics {
        /// The configured address.
        address: SocketAddr,
        /// The error on binding it.
        source: io::Error,
    },
}

/// The bound control socket; its file is removed on drop.
#[derive(Debug)]
struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Released by the kernel when this process ends. The empty file stays: if it were removed, two
    /// gateways could each hold a lock.
    _lock: Flock<File>,
}

impl ControlSocket {
    fn bind(path: &Path) -> Result<Self, ServerError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ServerError::Socket { path, source }
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            match DirBuilder::new().mode(0o755).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(folder)(error));
                }
                _ => {}
            }
        }
        let name = lock_of(path);
        let lock = || {
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&name);
            let taken = Flock::lock(file.map_err(failed(&name))?, FlockArg::LockExclusiveNonblock);
            taken.map_err(|(_, error)| match error {
                nix::Error::EWOULDBLOCK => ServerError::AlreadyRuns { path: path.to_owned() },
                error => failed(&name)(error.into()),
            })
        };
        let _lock = when_free(
            lock,
            |error| matches!(error, ServerError::AlreadyRuns { path } if !answers(path)),
        )?;
        match fs::symlink_metadata(path) {
            // Its gateway is dead, because it does not hold the lock.
            Ok(found) if found.file_type().is_socket() => {
                fs::remove_file(path).map_err(failed(path))?;
            }
            Ok(_) => return Err(ServerError::NotASocket { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path)(error)),
        }
        let listener = listen(path).map_err(failed(path))?;
        Ok(Self { listener, path: path.to_owned(), _lock })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Reason why a gateway could not listen on this address now: it is taken, or of another host. `None`:
/// there is none that this user can see. Does not listen.
pub fn cannot_listen(address: SocketAddr, kind: Type) -> Option<io::Error> {
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), kind, None)?;
        // As the listener of the metrics: connections of an earlier one do not count.
        socket.set_reuse_address(kind == Type::STREAM)?;
        socket.bind(&address.into())
    };
    bind().err().filter(may_come)
}

/// Whether a gateway could make its control socket here, or replace a dead one's, as far as this
/// user can see; whether another gateway uses it is not looked at. Changes nothing.
///
/// # Errors
/// [`Listeners::open`]'s.
pub fn check_control(path: &Path) -> Result<(), ServerError> {
    let failed = |path: &Path, kind: io::ErrorKind| {
        Err(ServerError::Socket { path: path.to_owned(), source: kind.into() })
    };
    let kind_of = |folder: &Path| folder.metadata().map(|found| found.is_dir());
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        match kind_of(folder) {
            Ok(false) => return failed(folder, io::ErrorKind::NotADirectory),
            // It is made, but none above it.
            Err(error) if is_missing(&error) => match folder.parent().map(kind_of) {
                Some(Ok(false)) => return failed(folder, io::ErrorKind::NotADirectory),
                Some(Err(error)) if is_missing(&error) => {
                    return failed(folder, io::ErrorKind::NotFound);
                }
                _ => return Ok(()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return failed(folder, error.kind());
            }
            Ok(true) | Err(_) => {}
        }
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err(ServerError::NotASocket { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

/// True if a gateway may be serving this control socket, as far as this user can say: one that does
/// not answer in time may do so later.
pub fn may_run(control: &Path) -> bool {
    !matches!(ask(control, &Request::Status), Err(AskError::Absent { .. }))
}

/// A gateway serves this socket: it answers, or says that its loop does not.
fn answers(socket: &Path) -> bool {
    matches!(ask(socket, &Request::Status), Ok(_) | Err(AskError::Refused(_)))
}

fn lock_of(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Binds the socket; clients can connect only after its permissions are set.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Where the metrics are served.
#[derive(Debug)]
enum Metrics {
    /// Nowhere.
    Off,
    Bound(TcpListener),
    /// An address that another program has, or that this host does not have yet.
    Awaited(SocketAddr),
}

impl Metrics {
    fn open(address: SocketAddr) -> io::Result<Self> {
        match TcpListener::bind(address) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                Ok(Self::Bound(listener))
            }
            Err(error) if may_come(&error) => Ok(Self::Awaited(address)),
            Err(error) => Err(error),
        }
    }

    /// The listener, as soon as there can be one; `None`: there are no metrics.
    async fn listener(self) -> Option<tokio::net::TcpListener> {
        let address = match self {
            Self::Off => return None,
            Self::Bound(listener) => {
                let registered = tokio::net::TcpListener::from_std(listener);
                return registered.inspect_err(|error| tracing::error!("metrics: {error}")).ok();
            }
            Self::Awaited(address) => address,
        };
        // A gateway that was just killed holds its address for a moment: that is not worth a line.
        let mut attempts = 0;
        loop {
            tokio::time::sleep(AGAIN).await;
            attempts += 1;
            match tokio::net::TcpListener::bind(address).await {
                Ok(listener) => {
                    tracing::info!(%address, "metrics are served");
                    return Some(listener);
                }
                Err(error) if attempts == TELL_AFTER => tracing::error!(
                    "metrics: cannot listen on {address}: {error}; give `metrics` a free address of this host. \
                     The gateway protects without them, and goes on trying"
                ),
                Err(_) => {}
            }
        }
    }
}

/// True if an address may be bound later: it is in use, or not yet one of this host.
fn may_come(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}

/// The bound control socket, and where the metrics are served.
#[derive(Debug)]
pub struct Listeners {
    control: ControlSocket,
    metrics: Metrics,
}

impl Listeners {
    /// Binds the control socket's path and the metrics' address. The socket of a dead gateway is
    /// replaced. An address that is not free is no error: the server goes on trying.
    ///
    /// # Errors
    /// The socket is in use, or one of the two cannot be bound; then neither is.
    pub fn open(control: &Path, metrics: Option<SocketAddr>) -> Result<Self, ServerError> {
        let control = ControlSocket::bind(control)?;
        let metrics = match metrics {
            None => Metrics::Off,
            Some(address) => {
                Metrics::open(address).map_err(|source| ServerError::Metrics { address, source })?
            }
        };
        Ok(Self { control, metrics })
    }

    /// Address of the metrics if it is bound, with the actual port if port 0 was configured.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        match &self.metrics {
            Metrics::Bound(listener) => listener.local_addr().ok(),
            Metrics::Off | Metrics::Awaited(_) => None,
        }
    }
}

/// Handles requests of clients.
struct Gateway {
    handle: Handle,
    reload: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Held by the client whose request the loop is answering.
    turn: Mutex<()>,
}

impl Gateway {
    /// The loop's answer to `command`; commands are sent one at a time.
    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Option<T> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, answer) = mpsc::channel();
        self.handle.send(command(sender)).then(|| answer.recv_timeout(PATIENCE).ok()).flatten()
    }

    fn status(&self) -> Option<Status> {
        self.ask(Command::Status)
    }

    fn answer(&self, request: Request) -> Answer {
        let unresponsive = || Answer::Error { message: UNRESPONSIVE.to_owned() };
        match request {
            Request::Status => match self.status() {
                Some(status) => Answer::Status(Box::new(status)),
                None => unresponsive(),
            },
            Request::Signal { whose, signal } => {
                let members = match self.ask(|answer| Command::Members(whose, answer)) {
                    Some(Ok(members)) => members,
                    Some(Err(message)) => return Answer::Error { message },
                    None => return unresponsive(),
                };
                let source = SignalSource::Control;
                let sent = members.into_iter().all(|mobile| {
                    self.handle.send(Command::Signal(MobileSignal { mobile, signal, source }))
                });
                // Waits until the loop has handled the signals, so that a client cannot send faster
                // than the loop.
                match sent.then(|| self.ask(Command::Ping)).flatten() {
                    Some(()) => Answer::Done {},
                    None => unresponsive(),
                }
            }
            Request::Reload => {
                let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                match (self.reload)() {
                    Ok(()) => Answer::Done {},
                    Err(message) => Answer::Error { message },
                }
            }
        }
    }
}

const UNRESPONSIVE: &str = "the gateway's loop does not answer; see its log";

/// The thread that serves clients until this is dropped.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts serving with the answers of the loop behind `handle`. `reload` reads the
    /// configuration and passes it to the loop; its error is the client's answer.
    ///
    /// # Errors
    /// There are no more threads or file descriptors.
    pub fn start(
        listeners: Listeners,
        handle: Handle,
        reload: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let Listeners { control, metrics } = listeners;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .thread_name("gateway-ask")
            .build()?;
        let gateway = Arc::new(Gateway { handle, reload: Box::new(reload), turn: Mutex::new(()) });
        let (stop, stopped) = oneshot::channel();
        let listener = {
            let _context = runtime.enter();
            tokio::net::UnixListener::from_std(control.listener.try_clone()?)?
        };
        let serve = move || {
            runtime.block_on(async {
                let served = gateway.clone();
                tokio::spawn(accept(
                    async move || Ok(listener.accept().await?.0),
                    move |stream| converse(stream, served.clone()),
                ));
                tokio::spawn(async move {
                    let Some(metrics) = metrics.listener().await else { return };
                    let next = async move || Ok(metrics.accept().await?.0);
                    accept(next, move |stream| serve_http(stream, gateway.clone())).await;
                });
                // Returns when the other end is dropped, too.
                let _ = stopped.await;
            });
            // Does not wait for clients that wait for the loop.
            runtime.shutdown_background();
            drop(control);
        };
        let thread = std::thread::Builder::new().name("gateway-control".to_owned()).spawn(serve)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks the gateway without blocking other clients.
async fn off_thread<T: Send + 'static>(
    gateway: Arc<Gateway>,
    ask: impl FnOnce(&Gateway) -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(move || ask(&gateway)).await.ok()
}

/// Serves clients, each in a separate task; beyond the bound a client is disconnected at once.
async fn accept<S, A: Future<Output = ()> + Send + 'static>(
    next: impl AsyncFn() -> io::Result<S>,
    attend: impl Fn(S) -> A,
) {
    let clients = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok(stream) = next().await else {
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        if let Ok(place) = clients.clone().try_acquire_owned() {
            let attention = attend(stream);
            tokio::spawn(async move {
                attention.await;
                drop(place);
            });
        }
    }
}

/// Answers the lines of a client.
async fn converse(stream: tokio::net::UnixStream, gateway: Arc<Gateway>) {
    // The client may disconnect at any time.
    let _ = answer_lines(stream, gateway).await;
}

async fn answer_lines(stream: tokio::net::UnixStream, gateway: Arc<Gateway>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut read).take(LINE_LIMIT as u64 + 1);
        if tokio::time::timeout(IDLE, bounded.read_until(b'\n', &mut line)).await?? == 0 {
            return Ok(());
        }
        let whole = line.pop_if(|last| *last == b'\n').is_some();
        let too_long = !whole && line.len() > LINE_LIMIT;
        let answer = if too_long {
            Answer::Error { message: format!("the line is longer than {LINE_LIMIT} bytes") }
        } else {
            match Request::parse(&line) {
                Ok(request) => off_thread(gateway.clone(), move |g| g.answer(request))
                    .await
                    .unwrap_or_else(|| Answer::Error { message: UNRESPONSIVE.to_owned() }),
                Err(message) => Answer::Error { message },
            }
        };
        let mut answer = serde_json::to_vec(&answer)?;
        answer.push(b'\n');
        tokio::time::timeout(IDLE, write.write_all(&answer)).await??;
        if too_long {
            // The beginning of the next line is unknown.
            return Ok(());
        }
    }
}

/// Answers one HTTP request and closes the connection: scrapes are rare.
async fn serve_http(stream: tokio::net::TcpStream, gateway: Arc<Gateway>) {
    let service = service_fn(|request| scrape(request, gateway.clone()));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let _ = tokio::time::timeout(IDLE, connection).await;
}

async fn scrape(
    request: hyper::Request<Incoming>,
    gateway: Arc<Gateway>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |code: StatusCode, text: &str| {
        let mut response = Response::new(Full::from(text.to_owned()));
        *response.status_mut() = code;
        response
    };
    Ok(if request.uri().path() != "/metrics" {
        plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n")
    } else if request.method() != Method::GET {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "");
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET"));
        response
    } else {
        match off_thread(gateway, Gateway::status).await.flatten() {
            Some(status) => {
                let mut response = plain(StatusCode::OK, &metrics::text(&status));
                let kind = hyper::header::HeaderValue::from_static(metrics::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            None => plain(StatusCode::SERVICE_UNAVAILABLE, UNRESPONSIVE),
        }
    })
}

#[cfg(test)]
mod tests;
