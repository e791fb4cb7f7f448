//! `airtcp._native`: scenarios, the simulator and the command line for Python.
//!
//! A thin layer: takes Python's types and returns plain data, from which `python/airtcp` makes
//! frames and figures.

mod congestion;
mod toml;

use airtcp_cli::captures::{Captures, Capturing, snaplen};
use airtcp_core::{Duration, Instant};
use airtcp_settings::units;
use airtcp_sim::scenario::{ConfigError, Override, Scenario, files};
use airtcp_sim::trace::link_logs;
use airtcp_sim::trace::recorder::{Recorder, Series};
use airtcp_sim::{Observers, World};
use congestion::{Ack, Failure, Loss, Timeout, Window};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyByteArray, PyDict};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time;

pyo3::create_exception!(
    airtcp,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be used. `str()` lists every problem; `file`, `line`, `column` and `key` \
     describe the first."
);

/// Period at which a run lets Python check for signals and calls its caller's `between_slices`.
const SLICE: time::Duration = time::Duration::from_millis(50);

/// A resolved scenario, what makes the congestion controls that it names, and the texts of the files
/// that it names.
#[pyclass(name = "Scenario", module = "airtcp._native", frozen)]
struct PyScenario {
    scenario: Scenario,
    makers: BTreeMap<String, Py<PyAny>>,
    #[pyo3(get)]
    files: BTreeMap<String, String>,
}

#[pymethods]
impl PyScenario {
    #[staticmethod]
    #[pyo3(signature = (source_name, text, overrides, files = None, makers = None, axes = Vec::new()))]
    fn parse(
        py: Python<'_>,
        source_name: &str,
        text: &str,
        overrides: Vec<(String, String)>,
        files: Option<BTreeMap<String, String>>,
        makers: Option<BTreeMap<String, Py<PyAny>>>,
        axes: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let of = |option: &'static str| {
            move |(path, value): &(String, String)| Override::new(option, path, value)
        };
        let overrides: Vec<Override> =
            overrides.iter().map(of("--set")).chain(axes.iter().map(of("--axis"))).collect();
        let controls =
            makers.as_ref().map(|makers| congestion::controls(py, makers, &Failure::default()));
        let given = files.unwrap_or_default();
        let named = RefCell::new(BTreeMap::new());
        let on_disk = files::beside(source_name);
        let read = |path: &str| {
            let text = given.get(path).cloned().map_or_else(|| on_disk(path), Ok)?;
            named.borrow_mut().insert(path.to_owned(), text.clone());
            Ok(text)
        };
        let controls = controls.as_ref();
        let read = Scenario::parse_with_files(source_name, text, &overrides, controls, &read);
        let scenario = read.map_err(|error| scenario_error(py, &error))?;
        Ok(Self { scenario, makers: makers.unwrap_or_default(), files: named.into_inner() })
    }

    /// True if it names congestion controls from outside.
    #[getter]
    fn names_controls(&self) -> bool {
        let ends = self.scenario.flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]);
        ends.into_iter().any(|end| end.control.is_some())
    }

    #[getter]
    fn name(&self) -> &str {
        &self.scenario.name
    }

    /// Names of its TCP flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.scenario.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    /// Names of its links, one for each direction.
    #[getter]
    fn links(&self) -> Vec<&str> {
        self.scenario.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// When nothing gets through on the path of each TCP flow, and on each link, by their names:
    /// from and until, in seconds.
    fn outages(&self) -> [BTreeMap<&str, Vec<(f64, f64)>>; 2] {
        let seconds = |outages: Vec<(Instant, Instant)>| {
            let ends =
                outages.into_iter().map(|(start, end)| (start.as_secs_f64(), end.as_secs_f64()));
            ends.collect::<Vec<_>>()
        };
        let world = World::new(&self.scenario, 1);
        let of_flows = world.outages(&self.scenario).into_iter().map(seconds);
        let end = Instant::ZERO + self.scenario.duration;
        let of_links = self.scenario.links.iter().map(|link| seconds(link.outages_before(end)));
        [
            self.flows().into_iter().zip(of_flows).collect(),
            self.links().into_iter().zip(of_links).collect(),
        ]
    }

    #[getter]
    fn duration(&self) -> f64 {
        self.scenario.duration.as_secs_f64()
    }

    #[pyo3(signature = (seed, series, between_slices = None, pcap = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        series: Vec<String>,
        between_slices: Option<Bound<'py, PyAny>>,
        pcap: Option<(PathBuf, Vec<String>, bool, Option<String>)>,
    ) -> PyResult<(String, Vec<String>, Bound<'py, PyDict>)> {
        let series = series
            .iter()
            .map(|name| Series::from_str(name))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut recorder = Recorder::new(&series);
        let mut capturing = pcap.map(|pcap| self.capture(seed, pcap)).transpose()?;
        let failure = Failure::default();
        let controls = congestion::controls(py, &self.makers, &failure);
        let mut world = World::with_controls(&self.scenario, seed, &controls);
        world.measure_queueing_delays();
        let end = Instant::ZERO + self.scenario.duration;
        let mut pace = Pace(Duration::from_millis(1));
        while world.now() < end {
            let until = end.min(world.now() + pace.0);
            py.detach(|| {
                let started = time::Instant::now();
                let mut observers = Observers::default();
                if !series.is_empty() {
                    observers.events = Some(&mut recorder);
                }
                observers.packets = capturing.as_mut().map(|capturing| capturing.tap());
                world.run_until(until, &mut observers);
                pace.adapt(started.elapsed());
            });
            if let Some(error) = failure.take() {
                return Err(error);
            }
            py.check_signals()?;
            if let Some(check) = &between_slices {
                check.call0()?;
            }
        }
        if let Some(capturing) = capturing {
            capturing.publish()?;
        }
        let metrics = world.metrics();
        let text = serde_json::to_string(&metrics)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((text, metrics.warnings, columns(py, &recorder, &series)?))
    }
}

impl PyScenario {
    /// Begins the captures of a run: the folder, the nodes, whether sniffers listen too, and the snap
    /// length as a number.
    fn capture(
        &self,
        seed: u64,
        (folder, nodes, monitor, limit): (PathBuf, Vec<String>, bool, Option<String>),
    ) -> PyResult<Capturing> {
        let refused = |argument: &'static str| {
            move |why: String| PyValueError::new_err(format!("{argument}: {why}"))
        };
        let limit = limit.as_deref().map(snaplen).transpose().map_err(refused("snaplen"))?;
        let mut captures =
            Captures::new(&self.scenario, &nodes, limit).map_err(refused("pcap_nodes"))?;
        if monitor {
            captures = captures.with_sniffers(&self.scenario).map_err(refused("pcap_monitor"))?;
        }
        captures.check(&folder).map_err(|error| refused("pcap")(error.to_string()))?;
        Ok(captures.begin(&self.scenario, seed, &folder)?)
    }
}

/// Simulated time of a slice, chosen so that simulating it takes about [`SLICE`].
struct Pace(Duration);

impl Pace {
    fn adapt(&mut self, taken: time::Duration) {
        if taken < SLICE / 2 {
            self.0 = self.0 * 2;
        } else if taken > SLICE * 2 {
            self.0 = (self.0 / 2).max(Duration::from_nanos(1));
        }
    }
}

fn columns<'py>(
    py: Python<'py>,
    recorder: &Recorder,
    series: &[Series],
) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for &series in series {
        let kept = recorder.columns(series);
        let time = column(py, &kept.time_s, f64::to_ne_bytes)?;
        let flow = column(py, &kept.flow, u32::to_ne_bytes)?;
        let value = column(py, &kept.value, f64::to_ne_bytes)?;
        by_name.set_item(series.name(), (time, flow, value))?;
    }
    Ok(by_name)
}

/// The values as NumPy keeps them in memory.
fn column<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, values.len() * N, |column| {
        for (place, &value) in column.as_chunks_mut().0.iter_mut().zip(values) {
            *place = bytes(value);
        }
        Ok(())
    })
}

fn scenario_error(py: Python<'_>, error: &ConfigError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let first = &error.diagnostics[0];
    let value = raised.value(py);
    let attributes = value
        .setattr("file", &first.source)
        .and_then(|()| value.setattr("line", first.line))
        .and_then(|()| value.setattr("column", first.column))
        .and_then(|()| value.setattr("key", &first.key));
    attributes.err().unwrap_or(raised)
}

/// The units of scenarios' values: what each measures, and its size in the base unit.
fn units() -> Vec<(&'static str, (&'static str, f64))> {
    let counted = [("duration", units::DURATION), ("rate", units::RATE), ("size", units::SIZE)];
    let measured = [("length", &units::LENGTH), ("speed", &units::SPEED)];
    let counted = counted
        .into_iter()
        .flat_map(|(of, units)| units.iter().map(move |&(name, size)| (name, (of, size as f64))));
    let measured = measured.into_iter().flat_map(|(of, measure)| {
        measure.units.iter().map(move |(name, base)| (*name, (of, base(1.0))))
    });
    counted.chain(measured).collect()
}

/// Runs the command line; the first argument is the program's name.
#[pyfunction]
fn cli_main(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| airtcp_cli::main(arguments))
}

/// Name of the log of a link in the folder of `airtcp run --link-logs`.
#[pyfunction]
fn link_log_name(link: &str) -> String {
    link_logs::file_name(link)
}

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::toml::read_toml;
    #[pymodule_export]
    use super::{Ack, Loss, PyScenario, Timeout, Window, cli_main, link_log_name};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let py = module.py();
        let series = Series::ALL.map(|series| (series.name(), series.about()));
        module.add("SERIES", series.into_py_dict(py)?)?;
        let metrics = airtcp_sim::document::fields().map(|(part, fields)| {
            (part, fields.iter().map(|field| (field.name, field.prose)).collect::<Vec<_>>())
        });
        module.add("METRICS", metrics.into_py_dict(py)?)?;
        module.add("UNITS", units().into_py_dict(py)?)
    }
}
