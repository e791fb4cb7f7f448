//! One-way latency of small TCP messages at a constant rate: `make bench-gateway` measures the
//! latency of a gateway with it.
//!
//! `latency receive ADDRESS:PORT` waits for one sender and prints quantiles, `latency send
//! ADDRESS:PORT RATE SECONDS` sends RATE messages a second of 64 B, each with the time at which it
//! was sent. Both must be on one machine, whose clock they share. A message has arrived when the
//! receiving kernel has it, not when this program gets a processor to read it.

use nix::sys::prctl::set_timerslack;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Bytes of a message.
const MESSAGE: usize = 64;
/// Messages at the beginning that are not counted: the connection's first windows, cold caches.
const WARM_UP: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["receive", address] => receive(address),
        ["send", address, rate, seconds] => send(address, rate.parse()?, seconds.parse()?),
        _ => Err("usage: latency receive ADDRESS:PORT | send ADDRESS:PORT RATE SECONDS".into()),
    }
}

fn send(address: &str, rate: u32, seconds: u32) -> Result<(), Box<dyn Error>> {
    set_timerslack(1)?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let begin = now()?;
    for number in 0..u64::from(rate) * u64::from(seconds) {
        let due = begin + number * 1_000_000_000 / u64::from(rate);
        let early = due.saturating_sub(now()?);
        if early > 0 {
            std::thread::sleep(Duration::from_nanos(early));
        }
        let mut message = [0; MESSAGE];
        message[..8].copy_from_slice(&now()?.to_ne_bytes());
        stream.write_all(&message)?;
    }
    Ok(())
}

fn receive(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address)?;
    // Connections inherit it.
    setsockopt(&listener, ReceiveTimestampns, &true)?;
    let (mut stream, _) = listener.accept()?;
    let (mut latencies, mut message) = (Vec::new(), [0; MESSAGE]);
    while let Some(arrived) = read(&mut stream, &mut message)? {
        let sent = u64::from_ne_bytes(message[..8].try_into()?);
        latencies.push(arrived.saturating_sub(sent));
    }
    let mut counted = latencies.split_off(WARM_UP.min(latencies.len()));
    counted.sort_unstable();
    let quantile = |q: f64| counted.get((q * counted.len() as f64) as usize).copied();
    let [Some(p50), Some(p99)] = [0.5, 0.99].map(quantile) else {
        return Err("too few messages came".into());
    };
    println!(r#"{{"messages": {}, "p50_ns": {p50}, "p99_ns": {p99}}}"#, counted.len());
    Ok(())
}

/// Reads a message and returns its time of arrival; `None` at the end.
fn read(
    stream: &mut TcpStream,
    message: &mut [u8; MESSAGE],
) -> Result<Option<u64>, Box<dyn Error>> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut vectors = [IoSliceMut::new(message)];
    let flags = MsgFlags::empty();
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut vectors, Some(&mut control), flags)?;
    let arrived = received.cmsgs()?.find_map(|one| match one {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
        _ => None,
    });
    let length = received.bytes;
    if length == 0 {
        return Ok(None);
    }
    // The rest of the message arrived no earlier.
    stream.read_exact(&mut message[length..])?;
    Ok(Some(arrived.ok_or("the kernel gives no times of arrival")?))
}

/// On the clock of the kernel's times of arrival.
fn now() -> nix::Result<u64> {
    clock_gettime(ClockId::CLOCK_REALTIME).map(nanos)
}

fn nanos(time: TimeSpec) -> u64 {
    Duration::from(time).as_nanos() as u64
}
