//! A private message bus, and a fake ModemManager on it that the test controls.
//!
//! It has the properties that `airtcp gateway` reads, with the names and types of ModemManager's
//! D-Bus reference (org.freedesktop.ModemManager1.Modem).

use airtcp_testing::skip;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use zbus::object_server::InterfaceRef;
use zbus::zvariant::{OwnedObjectPath, Value};
use zbus::{Connection, connection};

/// Values of `MMModemState`.
pub(crate) const SEARCHING: i32 = 7;
pub(crate) const REGISTERED: i32 = 8;
pub(crate) const CONNECTED: i32 = 11;

/// `dbus-daemon` with a socket of its own, which anybody may do anything on.
#[derive(Debug)]
pub(crate) struct Bus {
    daemon: Option<Child>,
    folder: TempDir,
}

impl Bus {
    /// One whose daemon does not run yet; says why there cannot be one.
    pub(crate) fn prepare() -> Option<Self> {
        let version = Command::new("dbus-daemon").arg("--version").stdout(Stdio::null()).status();
        if version.is_err() {
            skip("dbus-daemon (package dbus-daemon)");
            return None;
        }
        Some(Self { daemon: None, folder: tempfile::tempdir().unwrap() })
    }

    /// One whose daemon runs; says why there cannot be one.
    pub(crate) fn start() -> Option<Self> {
        let mut bus = Self::prepare()?;
        bus.run();
        Some(bus)
    }

    /// Starts the daemon and waits until it listens.
    pub(crate) fn run(&mut self) {
        let config = self.folder.path().join("config");
        let text = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
             <busconfig><listen>{}</listen><auth>EXTERNAL</auth><policy context=\"default\">\
             <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>\
             <allow own=\"*\"/>\
             </policy></busconfig>",
            self.address()
        );
        std::fs::write(&config, text).unwrap();
        let mut daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let told = daemon.stdout.take().unwrap();
        BufReader::new(told).read_line(&mut line).unwrap();
        self.daemon = Some(daemon);
        assert!(line.starts_with("unix:path="), "dbus-daemon ended: {line:?}");
    }

    /// Ends the daemon, and with it all connections.
    pub(crate) fn end(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
            let _ = std::fs::remove_file(self.socket());
        }
    }

    /// Another program signals to each name on the bus that a modem's `State` has changed.
    pub(crate) fn forge(&self, number: u32, state: i32) {
        let changed: HashMap<_, _> = [("State", Value::from(state))].into();
        let body = (MODEM, changed, Vec::<&str>::new());
        let forge = async {
            let bus = connection::Builder::address(self.address().as_str())?.build().await?;
            let names = zbus::fdo::DBusProxy::new(&bus).await?.list_names().await?;
            for name in names.iter().filter(|name| name.starts_with(':')) {
                let signal = ["org.freedesktop.DBus.Properties", "PropertiesChanged"];
                bus.emit_signal(Some(name), path(number), signal[0], signal[1], &body).await?;
            }
            bus.close().await
        };
        Runtime::new().unwrap().block_on(forge).unwrap();
    }

    /// The variable by which programs take it for the system's.
    pub(crate) fn environment(&self) -> (&'static str, String) {
        ("DBUS_SYSTEM_BUS_ADDRESS", self.address())
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("bus")
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.end();
    }
}

/// A ModemManager; it leaves the bus when dropped.
#[derive(Debug)]
pub(crate) struct ModemManager {
    runtime: Runtime,
    bus: Connection,
}

const MODEM: &str = "org.freedesktop.ModemManager1.Modem";
const ROOT: &str = "/org/freedesktop/ModemManager1";

impl ModemManager {
    /// Comes to the bus without any modem.
    pub(crate) fn start(bus: &Bus) -> Self {
        let runtime = Runtime::new().unwrap();
        let start = async {
            connection::Builder::address(bus.address().as_str())?
                .serve_at(ROOT, zbus::fdo::ObjectManager)?
                .name("org.freedesktop.ModemManager1")?
                .method_timeout(Duration::from_secs(20))
                .build()
                .await
        };
        let bus = runtime.block_on(start).unwrap();
        Self { runtime, bus }
    }

    /// Adds a modem with this network interface and a unique `number`. A program has requested a
    /// connection.
    pub(crate) fn add(&self, number: u32, interface: &str, state: i32) {
        let modem = Modem {
            state,
            quality: (80, true),
            ports: vec![("cdc-wdm0".to_owned(), 6), (interface.to_owned(), 2)],
            bearers: vec![
                OwnedObjectPath::try_from("/org/freedesktop/ModemManager1/Bearer/0").unwrap(),
            ],
        };
        let added = self.bus.object_server().at(path(number), modem);
        assert!(self.runtime.block_on(added).unwrap(), "there is a modem {number}");
    }

    /// A modem vanishes.
    pub(crate) fn remove(&self, number: u32) {
        let removed = self.bus.object_server().remove::<Modem, _>(path(number));
        assert!(self.runtime.block_on(removed).unwrap(), "there is no modem {number}");
    }

    /// A modem's `State` changes.
    pub(crate) fn set_state(&self, number: u32, state: i32) {
        self.runtime.block_on(async {
            let modem = self.modem(number).await;
            let mut shown = modem.get_mut().await;
            shown.state = state;
            shown.state_changed(modem.signal_emitter()).await.unwrap();
        });
    }

    /// A modem's `SignalQuality` changes: percent, just taken.
    pub(crate) fn set_quality(&self, number: u32, percent: u32) {
        self.runtime.block_on(async {
            let modem = self.modem(number).await;
            let mut shown = modem.get_mut().await;
            shown.quality = (percent, true);
            shown.signal_quality_changed(modem.signal_emitter()).await.unwrap();
        });
    }

    async fn modem(&self, number: u32) -> InterfaceRef<Modem> {
        self.bus.object_server().interface(path(number)).await.unwrap()
    }
}

impl Drop for ModemManager {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.bus.clone().close());
    }
}

fn path(number: u32) -> String {
    format!("{ROOT}/Modem/{number}")
}

struct Modem {
    state: i32,
    quality: (u32, bool),
    ports: Vec<(String, u32)>,
    bearers: Vec<OwnedObjectPath>,
}

#[zbus::interface(name = "org.freedesktop.ModemManager1.Modem")]
impl Modem {
    #[zbus(property)]
    fn state(&self) -> i32 {
        self.state
    }

    #[zbus(property)]
    fn signal_quality(&self) -> (u32, bool) {
        self.quality
    }

    #[zbus(property)]
    fn ports(&self) -> Vec<(String, u32)> {
        self.ports.clone()
    }

    #[zbus(property)]
    fn bearers(&self) -> Vec<OwnedObjectPath> {
        self.bearers.clone()
    }
}
