//! What ModemManager tells on the system bus: whether the modem of an uplink is connected, and how
//! well it receives.
//!
//! Read first: ModemManager's D-Bus reference (properties `State`, `Bearers`, `Ports` and
//! `SignalQuality` of org.freedesktop.ModemManager1.Modem; `MMModemState`), and the interface
//! org.freedesktop.DBus.ObjectManager in the D-Bus specification. [`Modem`] is what ModemManager
//! shows of one, [`Watch`] makes signals of it without I/O, [`run`] is the thread.
//!
//! *State.* An uplink is down while its modem has no network ("not registered", "searching"), and
//! while somebody has requested a connection of ModemManager (`Bearers`: "as requested by the
//! user") and none is active: `connected` is "one or more packet data bearers is active",
//! `connecting` "the first". Where nobody has, the connection is not ModemManager's, and in
//! `registered` data connections "may be available for use": it is up, as far as the modem can
//! tell.
//!
//! *Level.* Below the configured one a connected uplink fades, until the level is higher by
//! [`MARGIN`](super::level::MARGIN). A value that was not "recently taken" says nothing.
//!
//! *What ModemManager cannot tell* is left to the other sources: a modem that has vanished, is of
//! unknown state or was never there, a ModemManager or a bus that is gone, take back what was said.
//! (That an interface has gone is for `carrier` to say.)
//!
//! *Signals of the bus are not believed.* Any process on the machine can send us one. Each only
//! makes us ask ModemManager for all that it has, and the answer counts.

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

/// Until the bus is tried again.
const RETRY: Duration = Duration::from_secs(2);

/// How long bus and ModemManager may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

const SERVICE: &str = "org.freedesktop.ModemManager1";
const ROOT: &str = "/org/freedesktop/ModemManager1";
const MODEM: &str = "org.freedesktop.ModemManager1.Modem";

/// After a signal that matches one of these ModemManager may have something else to say: it has
/// come or gone, a modem has, or a modem's properties have changed.
const NEWS: [&str; 3] = [
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.ModemManager1'",
    "type='signal',sender='org.freedesktop.ModemManager1',\
     interface='org.freedesktop.DBus.ObjectManager'",
    "type='signal',sender='org.freedesktop.ModemManager1',\
     interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',\
     arg0='org.freedesktop.ModemManager1.Modem'",
];

/// Values of `MMModemState`; those between the first and the second have no network.
const FAILED: i32 = -1;
const UNKNOWN: i32 = 0;
const REGISTERED: i32 = 8;
const DISCONNECTING: i32 = 9;
const CONNECTING: i32 = 10;

/// The value of `MMModemPortType` for a network interface.
const NET: u32 = 2;

/// What ModemManager shows of a modem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Modem {
    /// Its object on the bus.
    path: String,
    /// Network interfaces.
    interfaces: Vec<String>,
    /// `MMModemState`.
    state: i32,
    /// Somebody has requested a connection of ModemManager, active or not.
    is_requested: bool,
    /// Signal quality, percent, if it was taken recently.
    quality: Option<u32>,
}

impl Modem {
    /// What is missing, or not of its type, is unknown.
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

    /// There is no connection to the network.
    fn is_down(&self) -> bool {
        match self.state {
            UNKNOWN => false,
            FAILED..REGISTERED => true,
            REGISTERED | DISCONNECTING | CONNECTING => self.is_requested,
            // Connected, or a state that came after this was written.
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

/// Makes signals of what ModemManager shows.
#[derive(Debug)]
pub(super) struct Watch {
    /// Percent.
    fading_below: Option<u8>,
    uplinks: BTreeMap<InterfaceName, Uplink>,
}

#[derive(Debug, Default)]
struct Uplink {
    /// The object of its modem.
    modem: Option<String>,
    /// The last report; `None`: there was none.
    said: Option<LinkSignal>,
}

impl Watch {
    /// Knows nothing yet.
    pub(super) fn new(fading_below: Option<u8>, groups: &[Group]) -> Self {
        let uplinks = groups.iter().filter_map(Group::uplink);
        Self { fading_below, uplinks: uplinks.map(|uplink| (uplink, Uplink::default())).collect() }
    }

    /// Takes all modems there are; what is new to be said.
    fn take(&mut self, modems: &[Modem]) -> Vec<MobileSignal> {
        let mut signals = Vec::new();
        for (&interface, uplink) in &mut self.uplinks {
            let is_its = |modem: &&Modem| modem.interfaces.iter().any(|i| i == interface.as_str());
            let modem = modems.iter().find(is_its);
            let path = modem.map(|modem| modem.path.clone());
            if path != uplink.modem {
                match &path {
                    Some(modem) => {
                        tracing::info!(uplink = %interface, modem, "ModemManager has the modem of an uplink")
                    }
                    None => {
                        tracing::info!(uplink = %interface, "ModemManager has no modem of this uplink any more")
                    }
                }
                uplink.modem = path;
            }
            let signal =
                modem.map_or(LinkSignal::Up, |modem| uplink.judge(modem, self.fading_below));
            if uplink.said.replace(signal) != Some(signal) {
                if let Some(Modem { state, quality, .. }) = modem {
                    tracing::info!(uplink = %interface, ?signal, state, quality, "ModemManager reports");
                }
                let (mobile, source) = (MobileId::Uplink(interface), SignalSource::ModemManager);
                signals.push(MobileSignal { mobile, signal, source });
            }
        }
        signals
    }
}

impl Uplink {
    /// What its modem says about it.
    fn judge(&self, modem: &Modem, fading_below: Option<u8>) -> LinkSignal {
        if modem.is_down() {
            return LinkSignal::Down;
        }
        match (modem.quality, fading_below) {
            (Some(quality), Some(level)) if is_faint(quality, level, self.said) => {
                LinkSignal::Fading
            }
            _ => LinkSignal::Up,
        }
    }
}

/// How far ModemManager can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// It answers.
    Followed,
    /// There is none.
    Absent,
    /// It, or the bus, does not answer as it should; why.
    Broken(String),
}

impl Reach {
    fn of(error: &zbus::Error) -> Self {
        // The last one: it went before it answered.
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

    fn tell(&self) {
        match self {
            Self::Followed => tracing::info!("ModemManager is followed"),
            Self::Absent => {
                tracing::info!("ModemManager does not run: modems are followed when it does")
            }
            Self::Broken(why) => tracing::info!("ModemManager is not followed: {why}"),
        }
    }
}

/// Says what holds, and then what changes, until told to stop.
pub(super) fn run(watch: Watch, handle: &Handle, stop: &Stop) -> io::Result<()> {
    let runtime = runtime()?;
    let stop = stop.clone();
    let stopped = runtime.block_on(async {
        tokio::spawn(Follower { watch, handle: handle.clone(), reach: None }.follow());
        tokio::task::spawn_blocking(move || stop.wait(None, PollTimeout::NONE)).await
    });
    runtime.shutdown_background();
    stopped?.map(drop)
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Follows ModemManager for ever.
struct Follower {
    watch: Watch,
    handle: Handle,
    /// As it was told last.
    reach: Option<Reach>,
}

impl Follower {
    async fn follow(mut self) {
        loop {
            let Err(error) = self.follow_on_bus().await;
            self.take(Reach::of(&error), &[]);
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Goes on as long as the bus does.
    async fn follow_on_bus(&mut self) -> zbus::Result<std::convert::Infallible> {
        let bus = patiently(connect()).await?;
        let mut news = patiently(News::subscribe(&bus)).await?;
        loop {
            match patiently(objects(&bus)).await {
                Ok(objects) => self.take(Reach::Followed, &modems(&objects)),
                // The next news may be that it is there, or has come to itself.
                Err(error @ zbus::Error::MethodError(..)) => self.take(Reach::of(&error), &[]),
                Err(error) => return Err(error),
            }
            if news.changes.changed().await.is_err() {
                return Err(zbus::Error::Failure("the system bus is gone".to_owned()));
            }
        }
    }

    fn take(&mut self, reach: Reach, modems: &[Modem]) {
        if self.reach.as_ref() != Some(&reach) {
            reach.tell();
            self.reach = Some(reach);
        }
        for signal in self.watch.take(modems) {
            self.handle.send(Command::Signal(signal));
        }
    }
}

/// What `answer` is, unless it takes too long.
async fn patiently<T>(answer: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    let late = |_| zbus::Error::Failure(format!("no answer for {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, answer).await.map_err(late)?
}

async fn connect() -> zbus::Result<Connection> {
    connection::Builder::system()?.build().await
}

/// Changes whenever there is news, until the bus is gone; much news at once is one change. The
/// tasks that see to it end with this.
struct News {
    changes: watch::Receiver<()>,
    _tasks: JoinSet<()>,
}

impl News {
    /// Nothing is missed from now on.
    async fn subscribe(bus: &Connection) -> zbus::Result<Self> {
        let (change, changes) = watch::channel(());
        let (change, mut tasks) = (Arc::new(change), JoinSet::new());
        for rule in NEWS {
            let mut news = MessageStream::for_match_rule(rule, bus, None).await?;
            let change = change.clone();
            tasks.spawn(async move {
                while let Some(Ok(_)) = news.next().await {
                    change.send_replace(());
                }
            });
        }
        Ok(Self { changes, _tasks: tasks })
    }
}

/// All that ModemManager has; it is not started for this.
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

/// How many modems ModemManager has now; the error says why it cannot be asked.
pub(crate) fn count() -> Result<usize, String> {
    let objects = runtime().map_err(|error| error.to_string())?.block_on(async {
        let bus = patiently(connect()).await?;
        patiently(objects(&bus)).await
    });
    match objects {
        Ok(objects) => Ok(modems(&objects).len()),
        Err(error) if Reach::of(&error) == Reach::Absent => Err("it does not run".to_owned()),
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

    /// Of wwan0; somebody has requested a connection of ModemManager.
    fn modem(state: i32, quality: Option<u32>) -> Modem {
        let (path, interfaces) = ("/modem/0".to_owned(), vec!["wwan0".to_owned()]);
        Modem { path, interfaces, state, is_requested: true, quality }
    }

    /// What is said about a modem.
    fn said(watch: &mut Watch, modems: &[Modem]) -> Vec<(String, LinkSignal)> {
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
        said(&mut watch(&["wwan0"], None), &[modem])[0].1
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
        assert_eq!(said(&mut watch, &[modem(CONNECTED, None)]), both(Up, Up), "all at first");
        assert_eq!(said(&mut watch, &[modem(CONNECTED, None)]), []);
        assert_eq!(said(&mut watch, &[modem(SEARCHING, None)]), wwan0(Down));
        assert_eq!(said(&mut watch, &[modem(INITIALIZING, None)]), []);
    }

    #[test]
    fn a_modem_that_vanishes_takes_its_report_along() {
        let mut watch = watch(&["wwan0"], None);
        assert_eq!(said(&mut watch, &[modem(SEARCHING, None)]), wwan0(Down));
        assert_eq!(said(&mut watch, &[]), wwan0(Up));
        let again = Modem { path: "/modem/1".to_owned(), ..modem(SEARCHING, None) };
        assert_eq!(said(&mut watch, &[again]), wwan0(Down));
    }

    #[test]
    fn an_uplink_fades_below_the_level_until_it_is_above_by_the_margin() {
        let mut watch = watch(&["wwan0"], Some(20));
        let mut at = |quality| {
            let said = said(&mut watch, &[modem(CONNECTED, Some(quality))]);
            said.first().map(|&(_, signal)| signal)
        };
        assert_eq!((at(80), at(20), at(19)), (Some(Up), None, Some(Fading)));
        assert_eq!((at(0), at(20), at(24)), (None, None, None), "one step up is not enough");
        assert_eq!((at(25), at(22), at(19)), (Some(Up), None, Some(Fading)));
    }

    #[test]
    fn a_quality_that_is_old_or_not_asked_for_means_nothing() {
        let mut asked = watch(&["wwan0"], Some(20));
        assert_eq!(said(&mut asked, &[modem(CONNECTED, Some(3))]), wwan0(Fading));
        assert_eq!(said(&mut asked, &[modem(CONNECTED, None)]), wwan0(Up));
        assert_eq!(said(&mut watch(&["wwan0"], None), &[modem(CONNECTED, Some(3))]), wwan0(Up));
    }

    #[test]
    fn a_modem_without_network_is_down_whatever_its_signal() {
        let mut watch = watch(&["wwan0"], Some(20));
        assert_eq!(said(&mut watch, &[modem(SEARCHING, Some(10))]), wwan0(Down));
        assert_eq!(said(&mut watch, &[modem(CONNECTED, Some(22))]), wwan0(Up), "it did not fade");
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
