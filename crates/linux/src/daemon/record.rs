//! Recording of the gateway's inputs and actions in a file (docs/record.md).
//!
//! The loop only encodes; a separate thread writes. If the disk is too slow, steps are left out,
//! and the file says how many: recording never delays traffic.

use airtcp_core::Instant;
use airtcp_edge::Action;
use airtcp_gateway::dispatch::Recorder;
use airtcp_gateway::packets::SharedBytes;
use airtcp_record::{Contents, Input, Setup, Writer};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// Bytes that may wait for the disk; one step may exceed it.
const QUEUE: usize = 16 << 20;
/// Bytes that are handed to the thread before the loop sleeps.
const BATCH: usize = 64 << 10;

/// A recording in progress.
pub struct Recording {
    writer: Writer,
    queue: Sender<Vec<u8>>,
    /// Bytes in the queue.
    queued: Arc<AtomicUsize>,
    thread: JoinHandle<io::Result<()>>,
    /// Time of the last entry.
    last: Instant,
    /// Steps left out.
    lost: u64,
    /// Steps left out that the file does not mention yet.
    unreported: u64,
}

impl Recording {
    /// Begins a recording at `path`, readable by its owner only. An existing file is renamed to
    /// `path` with the suffix `.old`.
    ///
    /// # Errors
    /// `path` is not a regular file, or cannot be created; the error names it.
    pub fn create(path: &Path, contents: Contents, now: Instant) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("recording {}: {error}", path.display()))
        };
        Self::start(create(path).map_err(named)?, contents, now)
    }

    /// Begins a recording that goes to `file`.
    fn start(
        mut file: impl Write + Send + 'static,
        contents: Contents,
        now: Instant,
    ) -> io::Result<Self> {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let (queue, batches): (_, Receiver<Vec<u8>>) = mpsc::channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let written = queued.clone();
        let thread = thread::Builder::new().name("record".into()).spawn(move || {
            for batch in batches {
                if let Err(error) = file.write_all(&batch) {
                    tracing::error!(%error, "cannot write the recording; it ends here");
                    return Err(error);
                }
                written.fetch_sub(batch.len(), Ordering::Relaxed);
            }
            file.flush()
        })?;
        let writer = Writer::new(now, since_1970, contents);
        Ok(Self { writer, queue, queued, thread, last: now, lost: 0, unreported: 0 })
    }

    /// Steps that are not in the file because the disk was too slow, or full.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn write_lost(&mut self, now: Instant) {
        self.last = now;
        let steps = std::mem::take(&mut self.unreported);
        if steps > 0 {
            self.writer.lost(now, steps);
        }
    }
}

impl Recorder for Recording {
    fn begin(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.write_lost(now);
        self.writer.begin(now, group, setup);
    }

    fn reconfigure(&mut self, now: Instant, group: u32, setup: &Setup) {
        self.write_lost(now);
        self.writer.reconfigure(now, group, setup);
    }

    fn restore(&mut self, now: Instant, group: u32, connections: u64) {
        self.write_lost(now);
        self.writer.restore(now, group, connections);
    }

    fn step(
        &mut self,
        now: Instant,
        group: u32,
        input: &Input<&[u8]>,
        actions: &[Action<SharedBytes>],
    ) {
        if self.queued.load(Ordering::Relaxed) + self.writer.pending() >= QUEUE {
            self.last = now;
            self.lost += 1;
            self.unreported += 1;
            return;
        }
        self.write_lost(now);
        self.writer.step(now, group, input, actions);
        if self.writer.pending() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let batch = self.writer.take();
        if batch.is_empty() {
            return;
        }
        let len = batch.len();
        self.queued.fetch_add(len, Ordering::Relaxed);
        // If the thread has ended, the queue stays full, and later steps are lost.
        if self.queue.send(batch).is_err() {
            self.queued.fetch_add(QUEUE, Ordering::Relaxed);
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<u64> {
        self.write_lost(self.last);
        self.flush();
        let Self { queue, thread, lost, .. } = *self;
        drop(queue);
        thread.join().expect("the thread does not panic")?;
        Ok(lost)
    }
}

fn create(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => fs::rename(path, old(path))?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Path to which an older recording is renamed.
fn old(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airtcp_core::{Addr, Bytes, Flow, LinkSignal, Segment, SeqNum};
    use airtcp_edge::{
        Actions, FlowTableConfig, MTcpPlusConfig, Mechanism, MechanismConfig, Middlebox, MobileId,
        Side,
    };
    use airtcp_record::{ReplayError, replay};
    use airtcp_wire::{Checksums, decode_with, encode};
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    const MECHANISM: MechanismConfig = MechanismConfig::MTcpPlus(MTcpPlusConfig {
        fifo: Bytes(1 << 16),
        resume: airtcp_edge::Resume::Flush,
        max_down: None,
        probe_interval: None,
        acknowledge: airtcp_edge::Acknowledge::AtOnce,
        open: airtcp_edge::Open::AtOnce,
    });

    fn phones() -> Setup {
        Setup {
            name: "phones".into(),
            mechanism: MECHANISM,
            flows: 10,
            flows_per_mobile: 5,
            uplink: None,
            idle: airtcp_core::Duration::from_secs(300),
            memory: Bytes(1 << 20),
        }
    }

    /// From the fixed to the mobile host.
    fn flow() -> Flow {
        let addr = |last, port| Addr::new(Ipv4Addr::new(10, 0, 0, last).into(), port);
        Flow { src: addr(1, 5001), dst: addr(2, 40_000) }
    }

    /// A connection as it comes from a data path: `len` bytes of data, an outage, the ACK.
    fn outage(recorder: &mut Recording, len: usize) {
        recorder.begin(Instant::from_secs(5), 0, &phones());
        let mut mechanism =
            Mechanism::new(&MECHANISM, FlowTableConfig::default(), Bytes(1 << 20)).unwrap();
        let mut actions = Actions::new();
        let mut now = Instant::from_secs(5);
        let mut pass = |recorder: &mut Recording, from, segment: &Segment<Vec<u8>>| {
            let mut packet = Vec::new();
            encode(segment, &mut packet).unwrap();
            let packet = bytes::Bytes::from(packet);
            let payload = |part: &[u8]| SharedBytes(packet.slice_ref(part));
            let segment = decode_with(&packet, Checksums::Verify, payload).unwrap().segment;
            now += airtcp_core::Duration::from_millis(1);
            mechanism.on_segment(now, from, segment, &mut actions);
            let input = Input::Segment { from, segment: &packet[..] };
            recorder.step(now, 0, &input, actions.as_slice());
            let signals: &[LinkSignal] = match from {
                Side::Fixed => &[LinkSignal::Down, LinkSignal::Up],
                Side::Mobile => &[],
            };
            actions.drain().for_each(drop);
            for &signal in signals {
                let mobile = MobileId::Host(flow().dst.ip);
                mechanism.on_link(now, mobile, signal, &mut actions);
                recorder.step(now, 0, &Input::Signal { mobile, signal }, actions.as_slice());
                actions.drain().for_each(drop);
            }
        };
        let ack = |acknowledged| Segment {
            flow: flow().reversed(),
            seq: SeqNum(1),
            ack: Some(SeqNum(acknowledged)),
            window: 500,
            ..Segment::default()
        };
        let data = Segment {
            flow: flow(),
            seq: SeqNum(1),
            ack: Some(SeqNum(1)),
            window: 500,
            payload: vec![7; len],
            ..Segment::default()
        };
        pass(recorder, Side::Mobile, &ack(1));
        pass(recorder, Side::Fixed, &data);
        pass(recorder, Side::Mobile, &ack(1 + len as u32));
    }

    /// An empty folder that goes with the test.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_recording_of_shared_bytes_replays_on_lengths() {
        let folder = folder();
        let path = folder.path().join("gateway.pcapng");
        let mut recorder =
            Recording::create(&path, Contents::Headers, Instant::from_secs(5)).unwrap();
        outage(&mut recorder, 50_000);
        assert_eq!(Box::new(recorder).finish().unwrap(), 0);
        let groups = replay(File::open(&path).unwrap()).unwrap();
        assert_eq!((groups[&0].segments, groups[&0].signals), (3, 2));
        assert!(groups[&0].actions > 3, "{groups:?}");
    }

    #[test]
    fn a_recording_is_for_its_owner_only_and_keeps_the_one_before() {
        let folder = folder();
        let path = folder.path().join("gateway.pcapng");
        fs::write(&path, "before").unwrap();
        let recorder = Recording::create(&path, Contents::Headers, Instant::ZERO).unwrap();
        Box::new(recorder).finish().unwrap();
        assert_eq!(fs::read(folder.path().join("gateway.pcapng.old")).unwrap(), b"before");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_left_alone() {
        let folder = folder();
        let error =
            Recording::create(folder.path(), Contents::Headers, Instant::ZERO).err().unwrap();
        let message = format!("recording {}: not a regular file", folder.path().display());
        assert_eq!(error.to_string(), message);
        assert!(folder.path().is_dir());
    }

    /// A disk that takes nothing while the lock is held.
    struct Stuck(Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_disk_stops_nobody_and_costs_bounded_memory() {
        let disk = Arc::new(Mutex::new(Vec::new()));
        let held = disk.lock().unwrap();
        let mut recorder =
            Recording::start(Stuck(disk.clone()), Contents::Whole, Instant::ZERO).unwrap();
        recorder.begin(Instant::ZERO, 0, &phones());
        let mut packet = Vec::new();
        let data = Segment { flow: flow(), payload: vec![0; 60_000], ..Segment::default() };
        encode(&data, &mut packet).unwrap();
        // Its mechanism keeps each of the segments.
        let input = Input::Segment { from: Side::Fixed, segment: &packet[..] };
        let steps = 2 * (QUEUE / packet.len()) as u64;
        for _ in 0..steps {
            recorder.step(Instant::ZERO, 0, &input, &[]);
        }
        let waiting = recorder.queued.load(Ordering::Relaxed) + recorder.writer.pending();
        assert!(waiting < QUEUE + 2 * packet.len(), "{waiting} B");
        let lost = recorder.lost();
        assert!(lost >= steps / 2 - 1, "{lost}");
        drop(held);
        assert_eq!(Box::new(recorder).finish().unwrap(), lost);
        let file = disk.lock().unwrap();
        let expected = format!("AIRTCP_STEPS={lost}\n").into_bytes();
        assert!(file.windows(expected.len()).any(|w| w == expected), "the file says so");
    }

    #[test]
    fn after_a_gap_the_recording_goes_on() {
        let disk = Arc::new(Mutex::new(Vec::new()));
        let mut recorder =
            Recording::start(Stuck(disk.clone()), Contents::Headers, Instant::ZERO).unwrap();
        recorder.queued.fetch_add(QUEUE, Ordering::Relaxed);
        recorder.step(Instant::ZERO, 0, &Input::Timer, &[]);
        recorder.queued.fetch_sub(QUEUE, Ordering::Relaxed);
        recorder.step(Instant::ZERO, 0, &Input::Timer, &[]);
        assert_eq!(Box::new(recorder).finish().unwrap(), 1);
        let error = replay(&disk.lock().unwrap()[..]).unwrap_err();
        assert!(matches!(error, ReplayError::Gap { steps: 1, .. }), "{error}");
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_nothing_else() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut recorder = Recording::start(full, Contents::Headers, Instant::ZERO).unwrap();
        recorder.flush();
        while recorder.lost() == 0 {
            recorder.step(Instant::ZERO, 0, &Input::Timer, &[]);
            recorder.flush();
        }
        assert_eq!(Box::new(recorder).finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
