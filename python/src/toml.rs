//! TOML for the studies' files: the values, and the line of each.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A line, from 1, and what is wrong with its syntax.
type Mistake = (usize, String);

/// The document as Python's own types, with the line, from 1, of each key and of each element of an
/// array, by its path; and what is wrong with the syntax, with lines. One of the two is empty.
#[pyfunction]
pub(crate) fn read_toml<'py>(
    py: Python<'py>,
    text: &str,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>, Vec<Mistake>)> {
    let values = PyDict::new(py);
    let mut reading = Reading { starts: line_starts(text), lines: PyDict::new(py) };
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        reading.table(document.into_inner(), &values, &PyTuple::empty(py))?;
    }
    let errors = (errors.iter())
        .map(|error| (reading.line(error.span().unwrap_or_default().start), error.message().into()))
        .collect();
    Ok((values, reading.lines, errors))
}

/// The offset at which each line begins.
fn line_starts(text: &str) -> Vec<usize> {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(ends).collect()
}

struct Reading<'py> {
    starts: Vec<usize>,
    lines: Bound<'py, PyDict>,
}

impl<'py> Reading<'py> {
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at)
    }

    /// Reads a table into `into`, in the order of the text: the parser sorts by key.
    fn table(
        &mut self,
        table: DeTable<'_>,
        into: &Bound<'py, PyDict>,
        path: &Bound<'py, PyTuple>,
    ) -> PyResult<()> {
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let at = self.line(key.span().start);
            let path = path.add(PyTuple::new(path.py(), [key.get_ref().as_ref()])?)?;
            let path = path.cast_into::<PyTuple>()?;
            self.lines.set_item(&path, at)?;
            into.set_item(key.get_ref().as_ref(), self.value(value, &path)?)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        value: Spanned<DeValue<'_>>,
        path: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = path.py();
        Ok(match value.into_inner() {
            DeValue::String(text) => text.as_ref().into_pyobject(py)?.into_any(),
            // A number that does not fit is larger than any that is allowed.
            DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix())
                .unwrap_or(i128::MAX)
                .into_pyobject(py)?
                .into_any(),
            DeValue::Float(x) => {
                x.as_str().parse().unwrap_or(f64::NAN).into_pyobject(py)?.into_any()
            }
            DeValue::Boolean(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
            DeValue::Datetime(time) => time.to_string().into_pyobject(py)?.into_any(),
            DeValue::Array(values) => {
                let list = PyList::empty(py);
                for (index, value) in values.into_iter().enumerate() {
                    let path = path.add(PyTuple::new(py, [index])?)?.cast_into::<PyTuple>()?;
                    self.lines.set_item(&path, self.line(value.span().start))?;
                    list.append(self.value(value, &path)?)?;
                }
                list.into_any()
            }
            DeValue::Table(table) => {
                let dict = PyDict::new(py);
                self.table(table, &dict, path)?;
                dict.into_any()
            }
        })
    }
}
