//! Answers on the control socket and serves the metrics, in one thread beside the loop.
//!
//! Read first: [`control`](airtcp_gateway::control) (what is spoken). [`Listeners::open`] takes the
//! socket and the port, so that a mistake shows before anything else is touched; [`Server::start`]
//! answers on them until it is dropped.
//!
//! A client can be slow, or hostile as far as the socket's permissions let it in: lines, clients
//! and their time are bounded, and the loop is asked by one client at a time.

use crate::command::{Command, Handle};
use airtcp_gateway::control::{Answer, LINE_LIMIT, Request, Whose, unknown_uplink};
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
use socket2::{Domain, SockAddr, Socket, Type};
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

/// The socket's owner and group may speak.
const SOCKET_MODE: u32 = 0o660;

/// Clients at the same time, of the control socket and of the metrics each.
const CLIENTS: usize = 256;

/// A client that says nothing, or takes nothing, for this long is left.
const IDLE: Duration = Duration::from_secs(10);

/// How long the loop may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Pause after a failure to accept, such as too many open files.
const BREATHER: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Why the gateway cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket is in use.
    #[error(
        "another gateway runs: it answers on {path}; stop it, or give this one its own `control`"
    )]
    AlreadyRuns {
        /// The socket.
        path: PathBuf,
    },
    /// There is something else in the socket's place.
    #[error("{path}: exists and is no socket; give `control` another path")]
    NotASocket {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("control socket: {path}: {source}")]
    Socket {
        /// What could not be made.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The metrics' address is not available.
    #[error(
        "metrics: cannot listen on {address}: {source}; give `metrics` a free address of this host"
    )]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// The Unix socket in its place; removed when dropped.
#[derive(Debug)]
struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The kernel releases it when this process ends. The empty file stays: if it were removed, two
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
        let lock = lock_of(path);
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let taken = Flock::lock(file.map_err(failed(&lock))?, FlockArg::LockExclusiveNonblock);
        let _lock = taken.map_err(|(_, error)| match error {
            nix::Error::EWOULDBLOCK => ServerError::AlreadyRuns { path: path.to_owned() },
            error => failed(&lock)(error.into()),
        })?;
        match fs::symlink_metadata(path) {
            // Its gateway is dead, or it would hold the lock.
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

fn lock_of(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Nobody can connect before the permissions are right.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Where the gateway can be reached.
#[derive(Debug)]
pub struct Listeners {
    control: ControlSocket,
    metrics: Option<TcpListener>,
}

impl Listeners {
    /// Takes the control socket's path and the metrics' address. The socket of a gateway that died
    /// is replaced.
    ///
    /// # Errors
    /// Either is in use or not available; neither is then taken.
    pub fn open(control: &Path, metrics: Option<SocketAddr>) -> Result<Self, ServerError> {
        let control = ControlSocket::bind(control)?;
        let listen = |address| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let metrics = metrics
            .map(|address| {
                listen(address).map_err(|source| ServerError::Metrics { address, source })
            })
            .transpose()?;
        Ok(Self { control, metrics })
    }

    /// Where the metrics are served: for port 0, the port that was found.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }
}

/// What requests come down to.
struct Gateway {
    handle: Handle,
    reload: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Held by the one who asks.
    turn: Mutex<()>,
}

impl Gateway {
    /// The loop's answer to `command`, one at a time.
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
                if let Whose::Uplink(interface) = whose {
                    let Some(status) = self.status() else { return unresponsive() };
                    let known: Vec<&str> = status.uplinks().collect();
                    if !known.contains(&interface.as_str()) {
                        return Answer::Error { message: unknown_uplink(interface, &known) };
                    }
                }
                let source = SignalSource::Control;
                let sent = whose.ids().all(|mobile| {
                    self.handle.send(Command::Signal(MobileSignal { mobile, signal, source }))
                });
                // The command is carried out in any case, and a client cannot send more than the
                // loop takes.
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

const UNRESPONSIVE: &str = "the gateway's loop does not answer; its log says more";

/// Runs until dropped.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers from now on, with what the loop behind `handle` says. `reload` reads the
    /// configuration and gives it to the loop; its error is the client's answer.
    ///
    /// # Errors
    /// No more threads or file descriptors.
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
        let (listener, metrics) = {
            let _context = runtime.enter();
            let listener = tokio::net::UnixListener::from_std(control.listener.try_clone()?)?;
            (listener, metrics.map(tokio::net::TcpListener::from_std).transpose()?)
        };
        let serve = move || {
            runtime.block_on(async {
                let served = gateway.clone();
                tokio::spawn(accept(
                    async move || Ok(listener.accept().await?.0),
                    move |stream| converse(stream, served.clone()),
                ));
                if let Some(metrics) = metrics {
                    tokio::spawn(accept(
                        async move || Ok(metrics.accept().await?.0),
                        move |stream| serve_http(stream, gateway.clone()),
                    ));
                }
                // Also when the other end is dropped.
                let _ = stopped.await;
            });
            // Clients that wait for the loop do not delay the end.
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

/// Asks the gateway without holding up the other clients.
async fn off_thread<T: Send + 'static>(
    gateway: Arc<Gateway>,
    ask: impl FnOnce(&Gateway) -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(move || ask(&gateway)).await.ok()
}

/// Attends to clients, each in a task of its own; beyond the bound a client is left at once.
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

/// Answers line after line.
async fn converse(stream: tokio::net::UnixStream, gateway: Arc<Gateway>) {
    // A client may go in the middle of a line.
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
            // There is no telling where the next line begins.
            return Ok(());
        }
    }
}

/// Answers one request; keeping the connection would not pay.
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
