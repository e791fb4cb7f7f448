//! The two ends of a download by QUIC, or of requests and answers.
//!
//! ```text
//! quic-peer serve ADDRESS:PORT CERTIFICATE BYTES cubic|newreno|bbr
//! quic-peer fetch ADDRESS:PORT CERTIFICATE
//! quic-peer answer ADDRESS:PORT CERTIFICATE REQUEST-BYTES ANSWER-BYTES cubic|newreno|bbr
//! quic-peer ask ADDRESS:PORT CERTIFICATE REQUEST-BYTES REQUESTS EVERY-MS cubic|newreno|bbr
//! ```
//!
//! The server leaves its certificate in the file, says `ready`, and sends on the first connection:
//! that many bytes, or so many for each request on the first stream. The client prints a line for
//! each read: the monotonic clock in nanoseconds, and how many bytes there are in all. One that asks
//! does so at regular times, and prints such a line before its first request.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, ServerConfig, TransportConfig, VarInt,
    WriteError,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error>>;

/// The server's name in its certificate.
const NAME: &str = "fixed";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address, file, bytes, congestion] => {
            serve(address.parse()?, file, bytes.parse()?, congestion).await
        }
        ["fetch", address, file] => fetch(address.parse()?, file).await,
        ["answer", address, file, request, answer, congestion] => {
            let sizes = [request.parse()?, answer.parse()?];
            self::answer(address.parse()?, file, sizes, congestion).await
        }
        ["ask", address, file, request, requests, every, congestion] => {
            let every = Duration::from_millis(every.parse()?);
            let requests = (request.parse()?, requests.parse()?, every);
            ask(address.parse()?, file, requests, congestion).await
        }
        _ => Err("quic-peer serve|fetch|answer|ask ADDRESS:PORT CERTIFICATE …".into()),
    }
}

/// Neither flow control nor idleness ends or bounds a transfer over a long, fat or broken path.
fn transport(congestion: &str) -> Result<Arc<TransportConfig>, Box<dyn Error>> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match congestion {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return Err(format!("no congestion control {congestion:?}").into()),
    };
    let window = 64 << 20;
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(factory)
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(window))
        .send_window(window.into())
        .max_idle_timeout(Some(VarInt::from_u32(900_000).into()));
    Ok(Arc::new(transport))
}

/// The first connection to an address.
async fn accept(
    address: SocketAddr,
    file: &str,
    congestion: &str,
) -> Result<Connection, Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let certificate = certified.cert.der().clone();
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    config.transport_config(transport(congestion)?);
    let endpoint = Endpoint::server(config, address)?;
    std::fs::write(file, &certificate)?;
    println!("ready");
    Ok(endpoint.accept().await.ok_or("no connection")?.await?)
}

async fn serve(address: SocketAddr, file: &str, bytes: u64, congestion: &str) -> Outcome {
    let connection = accept(address, file, congestion).await?;
    let mut stream = connection.open_uni().await?;
    let chunk = vec![7; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let size = left.min(chunk.len() as u64);
        stream.write_all(&chunk[..size as usize]).await?;
        left -= size;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

async fn answer(
    address: SocketAddr,
    file: &str,
    [request, answer]: [usize; 2],
    congestion: &str,
) -> Outcome {
    let connection = accept(address, file, congestion).await?;
    let (mut answers, mut requests) = connection.accept_bi().await?;
    let mut request = vec![0; request];
    let answer = vec![7; answer];
    while requests.read_exact(&mut request).await.is_ok() {
        answers.write_all(&answer).await?;
    }
    answers.finish()?;
    connection.closed().await;
    Ok(())
}

/// Connects to a server that has left its certificate there.
async fn connect(
    address: SocketAddr,
    file: &str,
    congestion: &str,
) -> Result<(Endpoint, Connection), Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(file)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(congestion)?);
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = Endpoint::client(any.parse()?)?;
    let connection = endpoint.connect_with(config, address, NAME)?.await?;
    Ok((endpoint, connection))
}

async fn fetch(address: SocketAddr, file: &str) -> Outcome {
    let (endpoint, connection) = connect(address, file, "cubic").await?;
    let stream = connection.accept_uni().await?;
    receive(stream).await?;
    close(endpoint, connection).await
}

/// So many requests of so many bytes, so long apart.
async fn ask(
    address: SocketAddr,
    file: &str,
    (request, requests, every): (usize, u32, Duration),
    congestion: &str,
) -> Outcome {
    let (endpoint, connection) = connect(address, file, congestion).await?;
    let (mut asking, stream) = connection.open_bi().await?;
    let begin = Instant::now();
    print(0)?;
    let asked = tokio::spawn(async move {
        for number in 0..requests {
            tokio::time::sleep_until((begin + number * every).into()).await;
            asking.write_all(&vec![1; request]).await?;
        }
        asking.finish().map_err(|_| WriteError::ClosedStream)
    });
    receive(stream).await?;
    asked.await??;
    close(endpoint, connection).await
}

/// Prints what has come, until all has.
async fn receive(mut stream: RecvStream) -> Outcome {
    let mut total = 0;
    while let Some(chunk) = stream.read_chunk(1 << 16, true).await? {
        total += chunk.bytes.len();
        print(total)?;
    }
    Ok(())
}

/// A line: now, and how many bytes there are.
fn print(total: usize) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} {total}", monotonic().as_nanos())?;
    out.flush()
}

async fn close(endpoint: Endpoint, connection: Connection) -> Outcome {
    connection.close(VarInt::from_u32(0), b"");
    // The server must not wait for its idle timer.
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    Ok(())
}

/// The clock that all processes of the machine share.
fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
