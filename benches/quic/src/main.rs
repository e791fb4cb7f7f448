//! The two ends of a download by QUIC.
//!
//! ```text
//! quic-peer serve ADDRESS:PORT CERTIFICATE BYTES cubic|newreno|bbr
//! quic-peer fetch ADDRESS:PORT CERTIFICATE
//! ```
//!
//! The server leaves its certificate in the file, says `ready`, and sends that many bytes on the
//! first connection. The client prints a line for each read: the monotonic clock in nanoseconds, and
//! how many bytes there are in all.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
        _ => Err("quic-peer serve ADDRESS:PORT CERTIFICATE BYTES CONGESTION | fetch ADDRESS:PORT CERTIFICATE".into()),
    }
}

/// Neither flow control nor idleness ends or bounds a transfer over a long, fat or broken path.
fn transport() -> TransportConfig {
    let window = 64 << 20;
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(window))
        .send_window(window.into())
        .max_idle_timeout(Some(VarInt::from_u32(900_000).into()));
    transport
}

async fn serve(address: SocketAddr, file: &str, bytes: u64, congestion: &str) -> Outcome {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match congestion {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return Err(format!("no congestion control {congestion:?}").into()),
    };
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let certificate = certified.cert.der().clone();
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let mut transport = transport();
    transport.congestion_controller_factory(factory);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, address)?;
    std::fs::write(file, &certificate)?;
    println!("ready");

    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
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

async fn fetch(address: SocketAddr, file: &str) -> Outcome {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(file)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport()));
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = Endpoint::client(any.parse()?)?;
    let connection = endpoint.connect_with(config, address, NAME)?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut out = std::io::stdout().lock();
    let mut total = 0;
    while let Some(chunk) = stream.read_chunk(1 << 16, true).await? {
        total += chunk.bytes.len();
        writeln!(out, "{} {total}", monotonic().as_nanos())?;
        out.flush()?;
    }
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
