//! Wireless cells: a preset, the keys that override its values, and who is where.

use super::model::{Node, NodeId, OutageLayer, Station, Wlan};
use super::resolve::{Names, Positions, queue_limit, resolve};
use airtcp_config::{FromDecoded, Name, PacketsOrSize, Section};
use airtcp_core::Duration;
use airtcp_net::config::QueueLimit;
use airtcp_net::wifi::{
    Attempts, BackoffDraw, ChannelConfig, CtsRule, EifsRule, FirstAccess, MacConfig, PhyConfig,
    Position, Power, Preamble, Propagation, RadioConfig, Reception, ResponseTimeout, StationConfig,
    WifiError, preset,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// The most stations one cell may have: each of them may hear each other.
const MAX_STATIONS: usize = 2_000;

/// Reads the cells, and checks what they have to do with nodes.
pub(super) fn wlans(
    sections: &[Section<'_>],
    nodes: &[Node],
    names: &Names,
    positions: &Positions,
) -> Vec<Wlan> {
    let mut wlans = Vec::new();
    let mut taken = BTreeSet::new();
    for section in sections {
        let name = section.get::<Name>("name");
        let config = config(section);
        let stations = stations(section, names);
        let (Some(name), Some(config), Some(stations)) = (name, config, stations) else { continue };
        if !taken.insert(name.text.clone()) {
            section.push(section.problem("name", format!("a second cell {:?}", name.text)));
            continue;
        }
        let Some(stations) = placed(section, nodes, &stations, positions) else { continue };
        wlans.push(Wlan { name: name.text, config, stations });
    }
    wlans
}

/// The nodes of a cell, groups expanded.
fn stations(section: &Section<'_>, names: &Names) -> Option<Vec<NodeId>> {
    let listed = section.get::<Vec<Name>>("stations")?;
    let mut stations = Vec::new();
    for name in &listed {
        let range = resolve(section, "stations", name, names)?;
        if stations.len() + range.len() > MAX_STATIONS {
            let problem = section.problem("stations", "too many stations in one cell");
            section.push(problem.expected(format!("at most {MAX_STATIONS} stations")));
            return None;
        }
        for node in range.map(NodeId) {
            if stations.contains(&node) {
                let message = format!("{:?} takes part twice", name.text);
                section.push(section.problem("stations", message).expected("each node once"));
                return None;
            }
            stations.push(node);
        }
    }
    if stations.len() < 2 {
        let problem = section.problem("stations", "a cell of one station");
        section.push(problem.expected("at least two stations"));
        return None;
    }
    Some(stations)
}

/// Gives every station its place; all of them must have one, or none.
fn placed(
    section: &Section<'_>,
    nodes: &[Node],
    stations: &[NodeId],
    positions: &Positions,
) -> Option<Vec<Station>> {
    let at = |node: NodeId| positions[node.0 as usize];
    let unplaced = stations.iter().find(|&&node| at(node).is_none());
    let any = stations.iter().any(|&node| at(node).is_some());
    if let (Some(unplaced), true) = (unplaced, any) {
        let name = &nodes[unplaced.0 as usize].name;
        let message = format!("{name:?} has no position, others have");
        let expected = "a position for each of the nodes, or for none";
        section.push(section.problem("stations", message).expected(expected));
        return None;
    }
    let station = |(i, &node): (usize, &NodeId)| {
        let (x, y) = at(node).unwrap_or((i as f64, 0.0));
        Station { node, config: StationConfig { position: Position { x, y } } }
    };
    Some(stations.iter().enumerate().map(station).collect())
}

/// Refuses an outage of the radios of a node (or group) that has none.
pub(super) fn radio_outage(
    section: &Section<'_>,
    nodes: &[Node],
    mut ids: Range<u32>,
    wlans: &[Wlan],
) {
    let phy =
        |id: u32| nodes[id as usize].outage.as_ref().is_some_and(|o| o.layer == OutageLayer::Phy);
    let has_radio = |id| wlans.iter().flat_map(|wlan| &wlan.stations).any(|s| s.node == NodeId(id));
    if ids.any(|id| phy(id) && !has_radio(id))
        && let Some(outage) = section.chosen("outage")
    {
        let problem = outage.problem("layer", "the node is in no cell");
        outage.push(problem.expected("\"above-mac\", or a wlan with this node"));
    }
}

/// A name, and what it stands for.
type Preset = (&'static str, fn() -> ChannelConfig);

/// The presets by name.
pub(super) const PRESETS: [Preset; 4] = [
    ("ieee", preset::ieee),
    ("ns2", preset::ns2),
    ("glomosim", preset::glomosim),
    ("opnet", preset::opnet),
];

/// The preset with what the file says instead.
fn config(section: &Section<'_>) -> Option<ChannelConfig> {
    let name = section.get::<&str>("preset")?;
    let mut config = PRESETS.iter().find(|(known, _)| *known == name)?.1();
    let before = section.problems_found();
    phy(section, &mut config.phy);
    mac(section, &mut config.mac);
    radio(section, &mut config.radio);
    if section.problems_found() > before {
        return None;
    }
    if let Err(error) = config.check() {
        let key = culprit(&error);
        let key = if section.has(&key) { &key } else { "preset" };
        section.push(section.problem(key, error.to_string()));
        return None;
    }
    Some(config)
}

/// Overrides `value` if the file has `key`.
fn set<T: FromDecoded>(section: &Section<'_>, key: &str, value: &mut T) {
    if let Some(Some(given)) = section.get::<Option<T>>(key) {
        *value = given;
    }
}

/// The words for the values of a key, as the schema lists them.
type Words<T, const N: usize> = [(&'static str, T); N];

const PREAMBLE: Words<Preamble, 2> = [("long", Preamble::Long), ("short", Preamble::Short)];
const BACKOFF_DRAW: Words<BackoffDraw, 2> =
    [("inclusive", BackoffDraw::Inclusive), ("exclusive", BackoffDraw::Exclusive)];
const ATTEMPTS: Words<Attempts, 2> =
    [("limit", Attempts::Limit), ("limit-plus-one", Attempts::LimitPlusOne)];
const FIRST_ACCESS: Words<FirstAccess, 3> = [
    ("immediate", FirstAccess::Immediate),
    ("after-difs", FirstAccess::AfterDifs),
    ("backoff", FirstAccess::Backoff),
];
const EIFS: Words<EifsRule, 2> = [("interval", EifsRule::Interval), ("nav", EifsRule::Nav)];
const CTS: Words<CtsRule, 2> =
    [("nav-idle", CtsRule::NavIdle), ("medium-idle", CtsRule::MediumIdle)];

/// The word the file has for `key`.
fn given<'a>(section: &Section<'a>, key: &str) -> Option<&'a str> {
    section.get::<Option<&str>>(key).flatten()
}

/// Overrides `value` if the file has a word for `key`.
fn choose<T: Copy>(section: &Section<'_>, key: &str, value: &mut T, words: &[(&str, T)]) {
    let given = given(section, key);
    if let Some((_, meant)) = words.iter().find(|(word, _)| Some(*word) == given) {
        *value = *meant;
    }
}

/// The word for `value`.
fn word<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> String {
    words.iter().find(|(_, meant)| meant == value).map_or("", |(word, _)| word).to_owned()
}

fn set_power(section: &Section<'_>, key: &str, value: &mut Power) {
    let mut watts = value.as_watts();
    if section.has(key) {
        set(section, key, &mut watts);
        *value = Power::from_watts(watts);
    }
}

fn phy(section: &Section<'_>, phy: &mut PhyConfig) {
    let PhyConfig {
        preamble,
        data_rate,
        control_rate,
        broadcast_rate,
        slot,
        sifs,
        difs,
        whole_microseconds,
    } = phy;
    choose(section, "preamble", preamble, &PREAMBLE);
    set(section, "data-rate", data_rate);
    set(section, "control-rate", control_rate);
    set(section, "broadcast-rate", broadcast_rate);
    set(section, "slot", slot);
    set(section, "sifs", sifs);
    set(section, "difs", difs);
    set(section, "whole-microseconds", whole_microseconds);
}

fn mac(section: &Section<'_>, mac: &mut MacConfig) {
    let MacConfig {
        header,
        llc,
        rts_threshold,
        cw_min,
        cw_max,
        backoff_draw,
        repeat_interrupted_slot,
        short_retry_limit,
        long_retry_limit,
        attempts,
        first_access,
        post_backoff,
        eifs,
        eifs_ack_rate,
        response_timeout,
        difs_after_timeout,
        cts,
        wait_for_data,
        sense_before_data,
        nav_from_data,
        nav_reset,
        queue,
    } = mac;
    set(section, "mac-header", header);
    set(section, "llc", llc);
    set(section, "rts-threshold", rts_threshold);
    set(section, "cw-min", cw_min);
    set(section, "cw-max", cw_max);
    choose(section, "backoff-draw", backoff_draw, &BACKOFF_DRAW);
    set(section, "repeat-interrupted-slot", repeat_interrupted_slot);
    set(section, "short-retry-limit", short_retry_limit);
    set(section, "long-retry-limit", long_retry_limit);
    choose(section, "attempts", attempts, &ATTEMPTS);
    choose(section, "first-access", first_access, &FIRST_ACCESS);
    set(section, "post-backoff", post_backoff);
    choose(section, "eifs", eifs, &EIFS);
    set(section, "eifs-ack-rate", eifs_ack_rate);
    response(section, response_timeout);
    set(section, "difs-after-timeout", difs_after_timeout);
    choose(section, "cts", cts, &CTS);
    set(section, "wait-for-data", wait_for_data);
    set(section, "sense-before-data", sense_before_data);
    set(section, "nav-from-data", nav_from_data);
    set(section, "nav-reset", nav_reset);
    if let Some(Some(limit)) = section.get::<Option<PacketsOrSize>>("queue") {
        *queue = queue_limit(limit);
    }
}

fn response(section: &Section<'_>, timeout: &mut ResponseTimeout) {
    const MARGIN: Duration = Duration::from_micros(4);
    let preset = *timeout;
    if let Some(word) = given(section, "response-timeout") {
        *timeout = match (word, preset) {
            ("whole-frame", ResponseTimeout::WholeFrame { .. }) => preset,
            ("whole-frame", _) => ResponseTimeout::WholeFrame { margin: MARGIN },
            _ => ResponseTimeout::ReceptionStart,
        };
    }
    match timeout {
        ResponseTimeout::WholeFrame { margin } => set(section, "response-margin", margin),
        ResponseTimeout::ReceptionStart => {
            refuse(section, &["response-margin"], "response-timeout", "whole-frame");
        }
    }
}

fn radio(section: &Section<'_>, radio: &mut RadioConfig) {
    let RadioConfig {
        tx_power,
        propagation: Propagation::TwoRayGround { frequency, height },
        rx_threshold,
        cs_threshold,
        reception,
        bit_error_rate,
    } = radio;
    set_power(section, "tx-power", tx_power);
    set(section, "frequency", frequency);
    set(section, "antenna-height", height);
    set_power(section, "rx-threshold", rx_threshold);
    set_power(section, "cs-threshold", cs_threshold);
    receive(section, reception);
    set(section, "bit-error-rate", bit_error_rate);
}

fn receive(section: &Section<'_>, reception: &mut Reception) {
    const FIRST_LOCK: [&str; 2] = ["capture-ratio", "ignored-frame-sets-nav"];
    const SINR: [&str; 3] = ["min-sinr", "noise", "interference-floor"];
    let preset = *reception;
    if let Some(word) = given(section, "reception") {
        *reception = match (word, preset) {
            ("first-lock", Reception::FirstLock { .. })
            | ("cumulative-sinr", Reception::CumulativeSinr { .. }) => preset,
            ("first-lock", _) => preset::ns2().radio.reception,
            _ => preset::ieee().radio.reception,
        };
    }
    match reception {
        Reception::FirstLock { capture_ratio, ignored_frame_sets_nav } => {
            set(section, "capture-ratio", capture_ratio);
            set(section, "ignored-frame-sets-nav", ignored_frame_sets_nav);
            refuse(section, &SINR, "reception", "cumulative-sinr");
        }
        Reception::CumulativeSinr { noise, min_sinr, interference_floor } => {
            set_power(section, "noise", noise);
            set(section, "min-sinr", min_sinr);
            set_power(section, "interference-floor", interference_floor);
            refuse(section, &FIRST_LOCK, "reception", "first-lock");
        }
    }
}

/// Refuses keys that matter to another choice only.
fn refuse(section: &Section<'_>, keys: &[&str], choice: &str, needed: &str) {
    for key in keys.iter().filter(|key| section.has(key)) {
        let message = format!("has no effect without {choice} = {needed:?}");
        section.push(section.problem(key, message).expected(format!("{choice} = {needed:?}")));
    }
}

/// A configuration as the keys and values that give it, in the order of the schema.
pub(super) fn keys(config: &ChannelConfig) -> Vec<(&'static str, String)> {
    let ChannelConfig {
        phy:
            PhyConfig {
                preamble,
                data_rate,
                control_rate,
                broadcast_rate,
                slot,
                sifs,
                difs,
                whole_microseconds,
            },
        mac,
        radio:
            RadioConfig {
                tx_power,
                propagation: Propagation::TwoRayGround { frequency, height },
                rx_threshold,
                cs_threshold,
                reception,
                bit_error_rate,
            },
    } = config;
    let mut keys = vec![
        ("preamble", word(preamble, &PREAMBLE)),
        ("data-rate", data_rate.to_string()),
        ("control-rate", control_rate.to_string()),
        ("broadcast-rate", broadcast_rate.to_string()),
        ("slot", slot.to_string()),
        ("sifs", sifs.to_string()),
        ("difs", difs.to_string()),
        ("whole-microseconds", whole_microseconds.to_string()),
    ];
    keys.extend(mac_keys(mac));
    keys.extend([
        ("tx-power", tx_power.to_string()),
        ("frequency", format!("{} MHz", frequency / 1e6)),
        ("antenna-height", format!("{height} m")),
        ("rx-threshold", rx_threshold.to_string()),
        ("cs-threshold", cs_threshold.to_string()),
    ]);
    match reception {
        Reception::FirstLock { capture_ratio, ignored_frame_sets_nav } => keys.extend([
            ("reception", "first-lock".to_owned()),
            ("capture-ratio", capture_ratio.to_string()),
            ("ignored-frame-sets-nav", ignored_frame_sets_nav.to_string()),
        ]),
        Reception::CumulativeSinr { noise, min_sinr, interference_floor } => keys.extend([
            ("reception", "cumulative-sinr".to_owned()),
            ("min-sinr", min_sinr.to_string()),
            ("noise", noise.to_string()),
            ("interference-floor", interference_floor.to_string()),
        ]),
    }
    keys.push(("bit-error-rate", bit_error_rate.to_string()));
    keys
}

fn mac_keys(mac: &MacConfig) -> Vec<(&'static str, String)> {
    let MacConfig {
        header,
        llc,
        rts_threshold,
        cw_min,
        cw_max,
        backoff_draw,
        repeat_interrupted_slot,
        short_retry_limit,
        long_retry_limit,
        attempts,
        first_access,
        post_backoff,
        eifs,
        eifs_ack_rate,
        response_timeout,
        difs_after_timeout,
        cts,
        wait_for_data,
        sense_before_data,
        nav_from_data,
        nav_reset,
        queue,
    } = mac;
    let queue = match queue {
        QueueLimit::Packets(n) => format!("{n} packets"),
        QueueLimit::Bytes(size) => size.to_string(),
    };
    let mut keys = vec![
        ("mac-header", header.to_string()),
        ("llc", llc.to_string()),
        ("rts-threshold", rts_threshold.to_string()),
        ("cw-min", cw_min.to_string()),
        ("cw-max", cw_max.to_string()),
        ("backoff-draw", word(backoff_draw, &BACKOFF_DRAW)),
        ("repeat-interrupted-slot", repeat_interrupted_slot.to_string()),
        ("short-retry-limit", short_retry_limit.to_string()),
        ("long-retry-limit", long_retry_limit.to_string()),
        ("attempts", word(attempts, &ATTEMPTS)),
        ("first-access", word(first_access, &FIRST_ACCESS)),
        ("post-backoff", post_backoff.to_string()),
        ("eifs", word(eifs, &EIFS)),
        ("eifs-ack-rate", eifs_ack_rate.to_string()),
    ];
    match response_timeout {
        ResponseTimeout::WholeFrame { margin } => keys.extend([
            ("response-timeout", "whole-frame".to_owned()),
            ("response-margin", margin.to_string()),
        ]),
        ResponseTimeout::ReceptionStart => {
            keys.push(("response-timeout", "reception-start".to_owned()));
        }
    }
    keys.extend([
        ("difs-after-timeout", difs_after_timeout.to_string()),
        ("cts", word(cts, &CTS)),
        ("wait-for-data", wait_for_data.to_string()),
        ("sense-before-data", sense_before_data.to_string()),
        ("nav-from-data", nav_from_data.to_string()),
        ("nav-reset", nav_reset.to_string()),
        ("queue", queue),
    ]);
    keys
}

/// The key that a mistake in the whole is about.
fn culprit(error: &WifiError) -> String {
    let field = match error {
        WifiError::Range { which: "height", .. } => "antenna-height",
        WifiError::Rate { which, .. }
        | WifiError::ContentionWindow { which, .. }
        | WifiError::RetryLimit { which }
        | WifiError::Range { which, .. } => which,
        WifiError::ContentionWindows { .. } => "cw-min",
        WifiError::Sifs { .. } => "sifs",
        WifiError::Slot => "slot",
        WifiError::Unreachable { .. } => "rx-threshold",
        WifiError::CarrierSense { .. } => "cs-threshold",
    };
    field.replace('_', "-")
}
