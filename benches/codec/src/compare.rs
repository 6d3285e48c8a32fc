//! Comparison of the measured libraries: ratios of times, geometric means, and the message with the largest ratio.

use crate::contestant::{Contestant, Role};
use crate::entry::Entry;
use crate::measure::{Effort, Figures, Row};

/// Measured operation of the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Decode,
    Encode,
}

impl Operation {
    /// Both operations, in the order of the report.
    pub const BOTH: [Self; 2] = [Self::Decode, Self::Encode];

    /// Returns the name of the operation in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Encode => "encode",
        }
    }

    /// Returns the minimum time of the operation for one message, in nanoseconds; `None` if the library cannot encode.
    pub fn time(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Decode => Some(figures.decode.min),
            Self::Encode => figures.encode.map(|time| time.min),
        }
    }
}

/// Measurements of all libraries for all messages in one run of the benchmark.
pub struct Run {
    /// Date of the run in UTC, such as `2025-06-18`.
    pub date: String,
    /// Number and duration of the samples.
    pub effort: Effort,
    /// Names and roles of the libraries, in the order of the columns of `rows`.
    pub libraries: Vec<(&'static str, Role)>,
    /// Index of the column of `serde_json::Value`, with which all libraries are compared.
    pub baseline: usize,
    /// Index of the column of the library of this repository.
    pub ours: usize,
    /// One row for each message.
    pub rows: Vec<Row>,
}

/// Ratio of the times of two libraries for one message.
#[derive(Debug, Clone, PartialEq)]
pub struct Extreme {
    /// Time of one library divided by the time of the other library.
    pub ratio: f64,
    /// Name of the compared message.
    pub entry: String,
}

impl Run {
    /// Creates the results of a run, and finds the columns of the baseline and of our library by their roles.
    pub fn new(
        date: String,
        effort: Effort,
        libraries: &[Box<dyn Contestant>],
        rows: Vec<Row>,
    ) -> Self {
        let libraries: Vec<_> = libraries
            .iter()
            .map(|library| (library.name(), library.role()))
            .collect();
        let find = |role| {
            libraries
                .iter()
                .position(|library| library.1 == role)
                .unwrap_or(0)
        };
        Self {
            date,
            effort,
            baseline: find(Role::Baseline),
            ours: find(Role::Ours),
            libraries,
            rows,
        }
    }

    /// Iterates over the column indexes of the other libraries of typed messages.
    pub fn peers(&self) -> impl Iterator<Item = usize> {
        let role = |index: &usize| self.libraries[*index].1 == Role::Peer;
        (0..self.libraries.len()).filter(role)
    }

    /// Returns the column index of the library with this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.libraries.iter().position(|library| library.0 == name)
    }

    /// Returns the time of the library in column `library` for one message, divided by the time of the library in
    /// column `base`; `None` if one of them does not support the operation.
    pub fn ratio(
        &self,
        row: &Row,
        operation: Operation,
        library: usize,
        base: usize,
    ) -> Option<f64> {
        let time = operation.time(row.figures(library)?)?;
        let base = operation.time(row.figures(base)?)?;
        Some(time / base)
    }

    /// Returns the ratios of the times of two libraries, for all messages that both support and for which `choose`
    /// returns true.
    pub fn ratios<'a>(
        &'a self,
        operation: Operation,
        library: usize,
        base: usize,
        choose: impl Fn(&Entry) -> bool + 'a,
    ) -> impl Iterator<Item = Extreme> + 'a {
        self.rows
            .iter()
            .filter(move |row| choose(&row.entry))
            .filter_map(move |row| {
                Some(Extreme {
                    ratio: self.ratio(row, operation, library, base)?,
                    entry: row.entry.name.clone(),
                })
            })
    }

    /// Returns the geometric mean of the ratios of two libraries, and the number of compared messages.
    pub fn mean(&self, operation: Operation, library: usize, base: usize) -> Option<(f64, usize)> {
        geometric(
            self.ratios(operation, library, base, |_| true)
                .map(|it| it.ratio),
        )
    }

    /// Returns the largest ratio of the times of two libraries, with its message.
    pub fn worst(&self, operation: Operation, library: usize, base: usize) -> Option<Extreme> {
        self.ratios(operation, library, base, |_| true)
            .max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// Returns the geometric mean and the number of the values; `None` without values.
pub fn geometric(values: impl Iterator<Item = f64>) -> Option<(f64, usize)> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty()).then(|| (mean.exp(), logs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ratio and its inverse have the geometric mean 1.
    #[test]
    fn geometric_mean_balances_ratios() {
        assert_eq!(geometric([0.5, 2.0].into_iter()), Some((1.0, 2)));
    }

    /// Without values there is no geometric mean.
    #[test]
    fn mean_of_nothing_is_absent() {
        assert_eq!(geometric(std::iter::empty()), None);
    }
}
