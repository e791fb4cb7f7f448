//! Signals from ModemManager on the system bus: connection state and signal quality of the modems
//! of uplinks.
//!
//! Read first: ModemManager's D-Bus reference (properties `State`, `Bearers`, `Ports` and
//! `SignalQuality` of org.freedesktop.ModemManager1.Modem; `MMModemState`), and the interface
//! org.freedesktop.DBus.ObjectManager in the D-Bus specification. [`Modem`] has a modem's
//! properties, [`Watch`] turns them into signals without I/O, [`run`] is the thread.
//!
//! *State.* An uplink is down while its modem has no network ("not registered", "searching"). It is
//! also down while a connection was requested from ModemManager (`Bearers`: "as requested by the
//! user") and none is active: `connected` is "one or more packet data bearers is active",
//! `connecting` "the first". If none was requested, ModemManager does not control the connection.
//! In `registered`, data connections then "may be available for use", and the uplink counts as up.
//!
//! *Level.* Below the configured level a connected uplink fades, until the level is higher by
//! [`MARGIN`](super::level::MARGIN). A value that was not "recently taken" is ignored.
//!
//! *Without information* the uplink counts as up, and other sources decide: if the modem has
//! vanished, has an unknown state or was never there, or if ModemManager or the bus is gone. (The
//! `carrier` source reports a missing interface.)
//!
//! *Signals on the bus are not trusted*, because any process on the machine can send them. Each
//! only triggers a query of ModemManager's objects, whose answer counts.

use super::level::is_faint;
use super::stop::Stop;
use crate::command::{Command, Handle};
use airtcp_core::LinkSignal;
use airtcp_edge::{InterfaceName, MobileId};
use airtcp_gateway::config::Group;
use airtcp_gateway::signals::{MobileSignal, SignalSource};
use futures_lite::StreamExt;
use nix::poll::PollTimeout;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use zbus::fdo::ManagedObjects;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::zvariant::{OwnedObjectPath, OwnedValue};
use zbus::{Connection, MessageStream, Proxy, connection};

/// Pause before the next attempt to connect to the bus.
const RETRY: Duration = Duration::from_secs(2);

/// Longest time for bus and ModemManager to answer.
const PATIENCE: Duration = Duration::from_secs(5);

const SERVICE: &str = "org.freedesktop.ModemManager1";
const ROOT: &str = "/org/freedesktop/ModemManager1";
const MODEM: &str = "org.freedesktop.ModemManager1.Modem";

/// Match rules of D-Bus signals that trigger a query: ModemManager has come or gone, a modem has,
/// or a modem's properties have changed.
const CHANGE_RULES: [&str; 3] = [
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.ModemManager1'",
    "type='signal',sender='org.freedesktop.ModemManager1',\
     interface='org.freedesktop.DBus.ObjectManager'",
    "type='signal',sender='org.freedesktop.ModemManager1',\
     interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',\
     arg0='org.freedesktop.ModemManager1.Modem'",
];

/// Values of `MMModemState`. Apart from `UNKNOWN`, those below `REGISTERED` have no network.
const FAILED: i32 = -1;
const UNKNOWN: i32 = 0;
const REGISTERED: i32 = 8;
const DISCONNECTING: i32 = 9;
const CONNECTING: i32 = 10;

/// The value of `MMModemPortType` for a network interface.
const NET: u32 = 2;

/// Properties of a modem in ModemManager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Modem {
    /// Path of its object on the bus.
    path: String,
    /// Names of its network interfaces.
    interfaces: Vec<String>,
    /// State, a value of `MMModemState`.
    state: i32,
    /// A connection was requested from ModemManager, active or not.
    is_requested: bool,
    /// Signal quality in percent, if it was measured recently.
    quality: Option<u32>,
}

impl Modem {
    /// Reads the properties; missing ones, and ones of another type, are unknown.
    fn read(path: &str, properties: &HashMap<String, OwnedValue>) -> Self {
        let ports: Vec<(String, u32)> = property(properties, "Ports").unwrap_or_default();
        let interfaces = ports.into_iter().filter(|&(_, kind)| kind == NET).map(|(name, _)| name);
        let bearers: Vec<OwnedObjectPath> = property(properties, "Bearers").unwrap_or_default();
        let quality: Option<(u32, bool)> = property(properties, "SignalQuality");
        Self {
            path: path.to_owned(),
            interfaces: interfaces.collect(),
            state: property(properties, "State").unwrap_or(UNKNOWN),
            is_requested: !bearers.is_empty(),
            quality: quality.filter(|&(_, is_recent)| is_recent).map(|(percent, _)| percent),
        }
    }

    /// True if the modem has no connection to the network.
    fn is_down(&self) -> bool {
        match self.state {
            UNKNOWN => false,
            FAILED..REGISTERED => true,
            REGISTERED | DISCONNECTING | CONNECTING => self.is_requested,
            // Connected, or a state of later versions.
            _ => false,
        }
    }
}

fn property<T: TryFrom<OwnedValue>>(
    properties: &HashMap<String, OwnedValue>,
    name: &str,
) -> Option<T> {
    properties.get(name)?.try_clone().ok()?.try_into().ok()
}

/// The modems among ModemManager's objects.
fn modems(objects: &ManagedObjects) -> Vec<Modem> {
    let modem = |(path, interfaces): (&OwnedObjectPath, &HashMap<_, HashMap<_, _>>)| {
        let of_modem = |(name, _): &(&zbus::names::OwnedInterfaceName, _)| name.as_str() == MODEM;
        let (_, properties) = interfaces.iter().find(of_modem)?;
        Some(Modem::read(path.as_str(), properties))
    };
    objects.iter().filter_map(modem).collect()
}

/// Turns modems into signals.
#[derive(Debug)]
pub(super) struct Watch {
    /// Signal quality in percent below which an uplink fades.
    fading_below: Option<u8>,
    uplinks: BTreeMap<InterfaceName, Uplink>,
}

#[derive(Debug, Default)]
struct Uplink {
    /// Path of its modem's object.
    modem: Option<String>,
    /// The last signal, if there was one.
    reported: Option<LinkSignal>,
}

impl Watch {
    /// A watch that has seen no modem yet.
    pub(super) fn new(fading_below: Option<u8>, groups: &[Group]) -> Self {
        let uplinks = groups.iter().filter_map(Group::uplink);
        Self { fading_below, uplinks: uplinks.map(|uplink| (uplink, Uplink::default())).collect() }
    }

    /// Handles the list of all modems and returns the new signals.
    fn take(&mut self, modems: &[Modem]) -> Vec<MobileSignal> {
        let mut signals = Vec::new();
        for (&interface, uplink) in &mut self.uplinks {
            let is_its = |modem: &&Modem| modem.interfaces.iter().any(|i| i == interface.as_str());
            let modem = modems.iter().find(is_its);
            let path = modem.map(|modem| modem.path.clone());
            if path != uplink.modem {
                match &path {
                    Some(modem) => {
                        tracing::info!(uplink = %interface, modem, "found the modem of an uplink in ModemManager")
                    }
                    None => {
                        tracing::info!(uplink = %interface, "ModemManager no longer has the modem of this uplink")
                    }
                }
                uplink.modem = path;
            }
            let signal =
                modem.map_or(LinkSignal::Up, |modem| uplink.judge(modem, self.fading_below));
            if uplink.reported.replace(signal) != Some(signal) {
                if let Some(Modem { state, quality, .. }) = modem {
                    tracing::info!(uplink = %interface, ?signal, state, quality, "link signal from ModemManager");
                }
                let (mobile, source) = (MobileId::Uplink(interface), SignalSource::ModemManager);
                signals.push(MobileSignal { mobile, signal, source });
            }
        }
        signals
    }
}

impl Uplink {
    /// The signal that follows from the state of its modem.
    fn judge(&self, modem: &Modem, fading_below: Option<u8>) -> LinkSignal {
        if modem.is_down() {
            return LinkSignal::Down;
        }
        match (modem.quality, fading_below) {
            (Some(quality), Some(level)) if is_faint(quality, level, self.reported) => {
                LinkSignal::Fading
            }
            _ => LinkSignal::Up,
        }
    }
}

/// Availability of ModemManager.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Availability {
    /// ModemManager answers.
    Available,
    /// ModemManager does not run.
    Absent,
    /// ModemManager or the bus fails, for this reason.
    Broken(String),
}

impl Availability {
    fn of(error: &zbus::Error) -> Self {
        // `NoReply`: it ended before it answered.
        let is_absent = |name: &str| {
            ["ServiceUnknown", "NameHasNoOwner", "NoReply"]
                .iter()
                .any(|error| name.strip_prefix("org.freedesktop.DBus.Error.") == Some(error))
        };
        match error {
            zbus::Error::MethodError(name, ..) if is_absent(name.as_str()) => Self::Absent,
            error => Self::Broken(error.to_string()),
        }
    }

    fn log(&self) {
        match self {
            Self::Available => tracing::info!("subscribed to ModemManager"),
            Self::Absent => {
                tracing::info!("ModemManager is not running; waiting for it")
            }
            Self::Broken(why) => tracing::info!("cannot follow ModemManager: {why}"),
        }
    }
}

/// Sends the current signals, then changes, until stopped.
pub(super) fn run(watch: Watch, handle: &Handle, stop: &Stop) -> io::Result<()> {
    let runtime = runtime()?;
    let stop = stop.clone();
    let stopped = runtime.block_on(async {
        tokio::spawn(Subscriber { watch, handle: handle.clone(), availability: None }.follow());
        tokio::task::spawn_blocking(move || stop.wait(None, PollTimeout::NONE)).await
    });
    runtime.shutdown_background();
    stopped?.map(drop)
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The task that follows ModemManager.
struct Subscriber {
    watch: Watch,
    handle: Handle,
    /// The availability that was last logged.
    availability: Option<Availability>,
}

impl Subscriber {
    async fn follow(mut self) {
        loop {
            let Err(error) = self.follow_on_bus().await;
            self.take(Availability::of(&error), &[]);
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Follows ModemManager until the connection to the bus fails.
    async fn follow_on_bus(&mut self) -> zbus::Result<std::convert::Infallible> {
        let bus = patiently(connect()).await?;
        let mut changes = patiently(Changes::subscribe(&bus)).await?;
        loop {
            match patiently(objects(&bus)).await {
                Ok(objects) => self.take(Availability::Available, &modems(&objects)),
                // A later change may be that it is running or works again.
                Err(error @ zbus::Error::MethodError(..)) => {
                    self.take(Availability::of(&error), &[])
                }
                Err(error) => return Err(error),
            }
            if changes.receiver.changed().await.is_err() {
                return Err(zbus::Error::Failure(
                    "lost the connection to the system bus".to_owned(),
                ));
            }
        }
    }

    fn take(&mut self, availability: Availability, modems: &[Modem]) {
        if self.availability.as_ref() != Some(&availability) {
            availability.log();
            self.availability = Some(availability);
        }
        for signal in self.watch.take(modems) {
            self.handle.send(Command::Signal(signal));
        }
    }
}

/// Waits for `answer` for at most [`PATIENCE`].
async fn patiently<T>(answer: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    let late = |_| zbus::Error::Failure(format!("no answer for {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, answer).await.map_err(late)?
}

async fn connect() -> zbus::Result<Connection> {
    connection::Builder::system()?.build().await
}

/// Notifies of changes until the bus is gone; several changes at once notify once. Its tasks end
/// with it.
struct Changes {
    receiver: watch::Receiver<()>,
    _tasks: JoinSet<()>,
}

impl Changes {
    /// Subscribes to changes; none is missed from now on.
    async fn subscribe(bus: &Connection) -> zbus::Result<Self> {
        let (change, receiver) = watch::channel(());
        let (change, mut tasks) = (Arc::new(change), JoinSet::new());
        for rule in CHANGE_RULES {
            let mut changes = MessageStream::for_match_rule(rule, bus, None).await?;
            let change = change.clone();
            tasks.spawn(async move {
                while let Some(Ok(_)) = changes.next().await {
                    change.send_replace(());
                }
            });
        }
        Ok(Self { receiver, _tasks: tasks })
    }
}

/// All objects of ModemManager, without starting it.
async fn objects(bus: &Connection) -> zbus::Result<ManagedObjects> {
    let manager: Proxy<'_> = zbus::proxy::Builder::new(bus)
        .destination(SERVICE)?
        .path(ROOT)?
        .interface("org.freedesktop.DBus.ObjectManager")?
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let flags = MethodFlags::NoAutoStart.into();
    let objects = manager.call_with_flags("GetManagedObjects", flags, &()).await?;
    objects.ok_or(zbus::Error::InvalidReply)
}

/// Number of modems in ModemManager; the error says why it cannot be queried.
pub(crate) fn count() -> Result<usize, String> {
    let objects = runtime().map_err(|error| error.to_string())?.block_on(async {
        let bus = patiently(connect()).await?;
        patiently(objects(&bus)).await
    });
    match objects {
        Ok(objects) => Ok(modems(&objects).len()),
        Err(error) if Availability::of(&error) == Availability::Absent => {
            Err("it is not running".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::tests::groups_of;
    use LinkSignal::{Down, Fading, Up};
    use zbus::zvariant::Value;

    const INITIALIZING: i32 = 1;
    const SEARCHING: i32 = 7;
    const CONNECTED: i32 = 11;

    fn watch(uplinks: &[&str], fading_below: Option<u8>) -> Watch {
        Watch::new(fading_below, &groups_of(uplinks))
    }

    /// A modem of wwan0, of which a connection was requested from ModemManager.
    fn modem(state: i32, quality: Option<u32>) -> Modem {
        let (path, interfaces) = ("/modem/0".to_owned(), vec!["wwan0".to_owned()]);
        Modem { path, interfaces, state, is_requested: true, quality }
    }

    /// Signals about a modem: uplink and signal.
    fn reported(watch: &mut Watch, modems: &[Modem]) -> Vec<(String, LinkSignal)> {
        let signals = watch.take(modems).into_iter();
        signals
            .inspect(|signal| assert_eq!(signal.source, SignalSource::ModemManager))
            .map(|signal| (signal.mobile.to_string(), signal.signal))
            .collect()
    }

    fn wwan0(signal: LinkSignal) -> Vec<(String, LinkSignal)> {
        vec![("wwan0".to_owned(), signal)]
    }

    /// The signal for a modem in this state.
    fn of(state: i32, is_requested: bool) -> LinkSignal {
        let modem = Modem { is_requested, ..modem(state, None) };
        reported(&mut watch(&["wwan0"], None), &[modem])[0].1
    }

    #[test]
    fn without_a_network_an_uplink_is_down() {
        for state in (FAILED..REGISTERED).filter(|&state| state != UNKNOWN) {
            assert_eq!((of(state, true), of(state, false)), (Down, Down), "{state}");
        }
    }

    #[test]
    fn with_a_network_an_uplink_is_up_when_a_connection_that_was_requested_is_active() {
        for state in [REGISTERED, DISCONNECTING, CONNECTING] {
            assert_eq!(of(state, true), Down, "{state}");
        }
        assert_eq!(of(CONNECTED, true), Up);
    }

    #[test]
    fn where_the_connection_is_not_modem_managers_a_network_is_enough() {
        assert_eq!(of(REGISTERED, false), Up);
    }

    #[test]
    fn a_state_that_is_not_known_is_not_down() {
        assert_eq!((of(UNKNOWN, true), of(CONNECTED + 1, true)), (Up, Up));
    }

    #[test]
    fn only_what_is_new_is_said_and_only_of_the_uplink_that_is_the_modems() {
        let mut watch = watch(&["wwan0", "wwan1"], None);
        let both = |one, other| vec![("wwan0".to_owned(), one), ("wwan1".to_owned(), other)];
        assert_eq!(reported(&mut watch, &[modem(CONNECTED, None)]), both(Up, Up), "all at first");
        assert_eq!(reported(&mut watch, &[modem(CONNECTED, None)]), []);
        assert_eq!(reported(&mut watch, &[modem(SEARCHING, None)]), wwan0(Down));
        assert_eq!(reported(&mut watch, &[modem(INITIALIZING, None)]), []);
    }

    #[test]
    fn a_modem_that_vanishes_takes_its_report_along() {
        let mut watch = watch(&["wwan0"], None);
        assert_eq!(reported(&mut watch, &[modem(SEARCHING, None)]), wwan0(Down));
        assert_eq!(reported(&mut watch, &[]), wwan0(Up));
        let again = Modem { path: "/modem/1".to_owned(), ..modem(SEARCHING, None) };
        assert_eq!(reported(&mut watch, &[again]), wwan0(Down));
    }

    #[test]
    fn an_uplink_fades_below_the_level_until_it_is_above_by_the_margin() {
        let mut watch = watch(&["wwan0"], Some(20));
        let mut at = |quality| {
            let reported = reported(&mut watch, &[modem(CONNECTED, Some(quality))]);
            reported.first().map(|&(_, signal)| signal)
        };
        assert_eq!((at(80), at(20), at(19)), (Some(Up), None, Some(Fading)));
        assert_eq!((at(0), at(20), at(24)), (None, None, None), "one step up is not enough");
        assert_eq!((at(25), at(22), at(19)), (Some(Up), None, Some(Fading)));
    }

    #[test]
    fn a_quality_that_is_old_or_not_asked_for_means_nothing() {
        let mut asked = watch(&["wwan0"], Some(20));
        assert_eq!(reported(&mut asked, &[modem(CONNECTED, Some(3))]), wwan0(Fading));
        assert_eq!(reported(&mut asked, &[modem(CONNECTED, None)]), wwan0(Up));
        assert_eq!(reported(&mut watch(&["wwan0"], None), &[modem(CONNECTED, Some(3))]), wwan0(Up));
    }

    #[test]
    fn a_modem_without_network_is_down_whatever_its_signal() {
        let mut watch = watch(&["wwan0"], Some(20));
        assert_eq!(reported(&mut watch, &[modem(SEARCHING, Some(10))]), wwan0(Down));
        assert_eq!(
            reported(&mut watch, &[modem(CONNECTED, Some(22))]),
            wwan0(Up),
            "it did not fade"
        );
    }

    #[test]
    fn properties_are_read_by_their_types() {
        let owned = |value: Value<'static>| OwnedValue::try_from(value).unwrap();
        let port = |name: &str, kind: u32| (name.to_owned(), kind);
        let bearer = OwnedObjectPath::try_from("/bearer/0").unwrap();
        let mut properties: HashMap<String, OwnedValue> = [
            ("State", Value::from(SEARCHING)),
            ("Ports", Value::from(vec![port("ttyUSB0", 3), port("wwan0", 2), port("wwan1", 2)])),
            ("Bearers", Value::from(vec![bearer])),
            ("SignalQuality", Value::from((43_u32, true))),
        ]
        .map(|(name, value)| (name.to_owned(), owned(value)))
        .into();
        let interfaces = vec!["wwan0".to_owned(), "wwan1".to_owned()];
        let expected = Modem { interfaces, ..modem(SEARCHING, Some(43)) };
        assert_eq!(Modem::read("/modem/0", &properties), expected);

        properties.insert("SignalQuality".to_owned(), owned(Value::from((43_u32, false))));
        assert_eq!(Modem::read("/modem/0", &properties).quality, None, "not taken recently");
        let text = || owned(Value::from("?"));
        properties.values_mut().for_each(|value| *value = text());
        let unknown = Modem { path: "/modem/0".to_owned(), ..Modem::default() };
        assert_eq!(Modem::read("/modem/0", &properties), unknown);
    }
}
