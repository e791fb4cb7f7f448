//! Congestion controls written in Python (`python/airtcp/congestion.py`).

use airtcp_core::{DataRate, Instant};
use airtcp_tcp::congestion::{self, CongestionControl, Controls};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The first exception that a control raised. It ends the run.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().ok()?.take()
    }

    fn keep(&self, error: PyErr) {
        if let Ok(mut kept) = self.0.lock() {
            kept.get_or_insert(error);
        }
    }
}

/// Controls that call Python. Each of `makers` returns the [`Hooks`] of a new control.
pub(crate) fn controls(
    py: Python<'_>,
    makers: &BTreeMap<String, Py<PyAny>>,
    failure: &Failure,
) -> Controls {
    let mut controls = Controls::default();
    for (name, maker) in makers {
        let (maker, failure) = (maker.clone_ref(py), failure.clone());
        controls.insert(name, move |_| {
            let made = Python::attach(|py| maker.call0(py)?.extract::<Hooks>(py));
            let hooks = made.map_err(|error| failure.keep(error)).ok();
            Box::new(InPython { hooks, failure: failure.clone() })
        });
    }
    controls
}

/// Methods of a control; those that it leaves to the base class are absent.
#[derive(FromPyObject)]
struct Hooks {
    on_ack: Option<Py<PyAny>>,
    on_growth: Py<PyAny>,
    on_fast_retransmit: Py<PyAny>,
    on_timeout: Py<PyAny>,
    on_ecn: Option<Py<PyAny>>,
    pacing_rate: Option<Py<PyAny>>,
}

/// The control of one endpoint. Once it has raised an exception it does nothing more.
struct InPython {
    hooks: Option<Hooks>,
    failure: Failure,
}

impl std::fmt::Debug for InPython {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InPython")
    }
}

impl InPython {
    /// Calls the method that `of` picks, if there is one, with the window and what happened, and
    /// takes over what it did to the window.
    fn call<E: for<'py> IntoPyObject<'py>>(
        &mut self,
        window: &mut congestion::Window,
        of: impl FnOnce(&Hooks) -> Option<&Py<PyAny>>,
        event: E,
    ) {
        let Some(method) = self.hooks.as_ref().and_then(of) else { return };
        let called = Python::attach(|py| {
            let lent = Bound::new(py, Window(*window))?;
            method.call1(py, (&lent, event))?;
            *window = lent.borrow().0;
            Ok(())
        });
        if let Err(error) = called {
            self.failure.keep(error);
            self.hooks = None;
        }
    }
}

impl CongestionControl for InPython {
    fn on_ack(&mut self, window: &mut congestion::Window, ack: &congestion::Ack) {
        self.call(window, |hooks| hooks.on_ack.as_ref(), Ack::from(ack));
    }

    fn on_growth(&mut self, window: &mut congestion::Window, ack: &congestion::Ack) {
        self.call(window, |hooks| Some(&hooks.on_growth), Ack::from(ack));
    }

    fn on_fast_retransmit(&mut self, window: &mut congestion::Window, loss: &congestion::Loss) {
        self.call(window, |hooks| Some(&hooks.on_fast_retransmit), Loss::from(loss));
    }

    fn on_timeout(&mut self, window: &mut congestion::Window, timeout: &congestion::Timeout) {
        self.call(window, |hooks| Some(&hooks.on_timeout), Timeout::from(timeout));
    }

    fn on_ecn(&mut self, window: &mut congestion::Window, loss: &congestion::Loss) {
        let hook = |hooks: &Hooks| hooks.on_ecn.is_some();
        if self.hooks.as_ref().is_some_and(hook) {
            self.call(window, |hooks| hooks.on_ecn.as_ref(), Loss::from(loss));
        } else {
            self.on_fast_retransmit(window, loss);
        }
    }

    fn pacing_rate(&self, window: &congestion::Window) -> Option<DataRate> {
        let method = self.hooks.as_ref()?.pacing_rate.as_ref()?;
        let asked = Python::attach(|py| {
            let rate = method.call1(py, (Window(*window),))?.extract::<Option<f64>>(py)?;
            rate.map(data_rate).transpose()
        });
        asked.unwrap_or_else(|error| {
            self.failure.keep(error);
            None
        })
    }
}

fn data_rate(rate: f64) -> PyResult<DataRate> {
    // Saturates, and takes what is not a number for 0.
    DataRate::from_bits_per_sec(rate as u64).ok_or_else(|| {
        PyValueError::new_err(format!("pacing_rate: {rate} bit/s; expected at least 1, or None"))
    })
}

/// cwnd and ssthresh of a sender.
#[pyclass(module = "airtcp._native")]
pub(crate) struct Window(congestion::Window);

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (smss, initial, ssthresh = None, limit = None))]
    fn new(smss: u32, initial: u32, ssthresh: Option<u32>, limit: Option<u32>) -> Self {
        Self(congestion::Window::new(smss, initial, ssthresh, limit))
    }

    fn __getnewargs__(&self) -> (u32, u32, u32, u32) {
        (self.0.smss(), self.0.initial(), self.0.ssthresh(), self.0.limit())
    }

    fn __getstate__(&self) -> u32 {
        self.0.cwnd()
    }

    fn __setstate__(&mut self, cwnd: u32) {
        self.0.set_cwnd(cwnd);
    }

    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd()
    }

    #[setter]
    fn set_cwnd(&mut self, bytes: u32) {
        self.0.set_cwnd(bytes);
    }

    #[getter]
    fn ssthresh(&self) -> u32 {
        self.0.ssthresh()
    }

    #[setter]
    fn set_ssthresh(&mut self, bytes: u32) {
        self.0.set_ssthresh(bytes);
    }

    #[getter]
    fn smss(&self) -> u32 {
        self.0.smss()
    }

    #[getter]
    fn initial(&self) -> u32 {
        self.0.initial()
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    fn grow(&mut self, bytes: u32) {
        self.0.grow(bytes);
    }
}

fn seconds(now: Instant) -> f64 {
    now.since_start().as_secs_f64()
}

/// Declares an event for a control: a class of values that Python reads, pickles and copies.
macro_rules! told {
    ($(#[doc = $doc:literal])* $name:ident { $($field:ident: $kind:ty,)* }) => {
        $(#[doc = $doc])*
        #[pyclass(module = "airtcp._native", frozen, get_all)]
        pub(crate) struct $name {
            $($field: $kind,)*
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new(values: ($($kind,)*)) -> Self {
                let ($($field,)*) = values;
                Self { $($field,)* }
            }

            fn __getnewargs__(&self) -> (($($kind,)*),) {
                (($(self.$field,)*),)
            }
        }
    };
}

told! {
    /// An acknowledgement.
    Ack {
        now: f64,
        acked: u32,
        rtt: Option<f64>,
        srtt: Option<f64>,
        flight: u32,
        duplicate_acks: u32,
        cwnd_limited: bool,
        hops: Option<u8>,
        delivered: u64,
        lost: u64,
        inflight: u32,
        delivery_rate: Option<f64>,
    }
}

impl From<&congestion::Ack> for Ack {
    fn from(ack: &congestion::Ack) -> Self {
        let rate = |sample: congestion::RateSample| {
            let interval = sample.interval.as_secs_f64();
            (interval > 0.0).then(|| sample.delivered as f64 * 8.0 / interval)
        };
        Self {
            now: seconds(ack.now),
            acked: ack.acked,
            rtt: ack.rtt.map(|rtt| rtt.as_secs_f64()),
            srtt: ack.srtt.map(|srtt| srtt.as_secs_f64()),
            flight: ack.flight,
            duplicate_acks: ack.duplicate_acks,
            cwnd_limited: ack.cwnd_limited,
            hops: ack.hops,
            delivered: ack.delivery.delivered,
            lost: ack.delivery.lost,
            inflight: ack.delivery.inflight,
            delivery_rate: ack.rate.and_then(rate),
        }
    }
}

told! {
    /// A loss that duplicate ACKs or SACK reported.
    Loss {
        now: f64,
        flight: u32,
        duplicate_acks: u32,
    }
}

impl From<&congestion::Loss> for Loss {
    fn from(loss: &congestion::Loss) -> Self {
        let &congestion::Loss { now, flight, duplicate_acks } = loss;
        Self { now: seconds(now), flight, duplicate_acks }
    }
}

told! {
    /// An expiry of the retransmission timer.
    Timeout {
        now: f64,
        flight: u32,
        first: bool,
        duplicate_acks: u32,
    }
}

impl From<&congestion::Timeout> for Timeout {
    fn from(timeout: &congestion::Timeout) -> Self {
        let &congestion::Timeout { now, flight, first, duplicate_acks, .. } = timeout;
        Self { now: seconds(now), flight, first, duplicate_acks }
    }
}
