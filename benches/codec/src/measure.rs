//! Measures every library on every message: CPU time of decoding (including the drop of the decoded value) and of
//! encoding, and allocations of decoding. Samples of the libraries alternate, so that other load of the machine affects
//! all libraries equally.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;

use crate::contestant::{Contestant, Prepared};
use crate::entry::Entry;
use crate::heap::{self, Use};

/// Number and duration of the samples of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of samples for each library, message and operation.
    pub samples: usize,
    /// Target CPU time of one sample.
    pub sample: Duration,
}

/// Time of one operation on one message, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time {
    /// Minimum of the samples, which the report shows.
    pub min: f64,
    /// Median of the samples.
    pub median: f64,
}

/// Measurements of one library for one message.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Time of decoding and dropping the value.
    pub decode: Time,
    /// Time of encoding; `None` if the library cannot encode.
    pub encode: Option<Time>,
    /// Heap use of decoding.
    pub heap: Use,
    /// True if the message, after decoding and encoding, equals the original as a JSON value; `None` if the library
    /// cannot encode.
    pub equal: Option<bool>,
}

/// Measurements of all libraries for one message.
pub struct Row {
    /// Measured message.
    pub entry: Entry,
    /// Measurements of each library, or the reason why the library does not support the message, in the order of the
    /// columns.
    pub cells: Vec<Result<Figures, String>>,
}

impl Row {
    /// Returns the measurements of the library in this column; `None` if the library does not support the message.
    pub fn figures(&self, library: usize) -> Option<&Figures> {
        self.cells.get(library)?.as_ref().ok()
    }
}

/// Measures all libraries for one message.
pub fn row(entry: Entry, libraries: &[Box<dyn Contestant>], effort: Effort) -> Row {
    let prepared: Vec<_> = libraries
        .iter()
        .map(|library| library.prepare(&entry))
        .collect();
    let heap: Vec<_> = libraries
        .iter()
        .map(|library| heap::allocations_during(|| library.decode(&entry)))
        .collect();
    let decode = alternate(libraries.len(), effort, |index| match &prepared[index] {
        Ok(_) => Some(decoder(libraries[index].as_ref(), &entry)),
        Err(_) => None,
    });
    let encode = alternate(libraries.len(), effort, |index| match &prepared[index] {
        Ok(prepared) if libraries[index].encodes() => Some(encoder(prepared.as_ref())),
        _ => None,
    });
    let figures = |index: usize| {
        let prepared = prepared[index].as_ref().map_err(Clone::clone)?;
        Ok(Figures {
            decode: decode[index].ok_or("was not measured")?,
            encode: encode[index],
            heap: heap[index],
            equal: encode[index].map(|_| is_equal(prepared.as_ref(), &entry)),
        })
    };
    let cells = (0..libraries.len()).map(figures).collect();
    drop(prepared);
    Row { entry, cells }
}

/// Returns a function that decodes the message once.
fn decoder<'a>(library: &'a dyn Contestant, entry: &'a Entry) -> Box<dyn FnMut() + 'a> {
    Box::new(|| library.decode(entry))
}

/// Returns a function that encodes the message once into a reused buffer, as a connection does.
fn encoder<'a>(prepared: &'a (dyn Prepared + 'a)) -> Box<dyn FnMut() + 'a> {
    let mut out = Vec::new();
    Box::new(move || {
        out.clear();
        black_box(prepared).encode(&mut out);
        black_box(&out);
    })
}

/// Returns true if the encoded message equals the original as a JSON value.
fn is_equal(prepared: &dyn Prepared, entry: &Entry) -> bool {
    let mut out = Vec::new();
    prepared.encode(&mut out);
    let parse = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    parse(&out) == parse(&entry.bytes)
}

/// Measures `count` functions, which `work` returns by index, in turn; each round starts with a different function. The
/// result is `None` for an index without a function.
fn alternate<'a>(
    count: usize,
    effort: Effort,
    work: impl Fn(usize) -> Option<Box<dyn FnMut() + 'a>>,
) -> Vec<Option<Time>> {
    let mut works: Vec<_> = (0..count)
        .map(|index| {
            let mut work = work(index)?;
            let repeats = calibrate(effort.sample, |repeats| sample(&mut work, repeats));
            Some((work, repeats, Vec::with_capacity(effort.samples)))
        })
        .collect();
    for round in 0..effort.samples {
        for turn in 0..count {
            if let Some((work, repeats, samples)) = &mut works[(round + turn) % count] {
                samples.push(sample(work, *repeats));
            }
        }
    }
    works
        .into_iter()
        .map(|work| work.map(|(_, _, samples)| summary(samples)))
        .collect()
}

/// Returns the number of repetitions for a sample with the CPU time `target`; `sample` runs a number of repetitions and
/// returns the nanoseconds of one. The calls of `sample` also warm up caches and the allocator. The best of three
/// samples is used in each step, because a disturbed sample would end the search too early.
fn calibrate(target: Duration, mut sample: impl FnMut(u32) -> f64) -> u32 {
    /// Maximum number of repetitions.
    const MAX_REPEATS: u32 = 1 << 24;
    let target = target.as_nanos() as f64;
    let mut repeats = 1;
    loop {
        let best = (0..3)
            .map(|_| sample(repeats))
            .fold(f64::INFINITY, f64::min);
        let each = best.max(1.0);
        if each * f64::from(repeats) >= target / 4.0 || repeats >= MAX_REPEATS {
            return (target / each).clamp(1.0, f64::from(MAX_REPEATS)) as u32;
        }
        repeats *= 4;
    }
}

/// Runs `work` a number of times; returns the CPU time of one run, in nanoseconds.
fn sample(work: &mut dyn FnMut(), repeats: u32) -> f64 {
    let start = ThreadTime::now();
    for _ in 0..repeats {
        work();
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeats)
}

/// Returns the minimum and the median of samples.
fn summary(mut samples: Vec<f64>) -> Time {
    samples.sort_by(f64::total_cmp);
    Time {
        min: samples.first().copied().unwrap_or(f64::NAN),
        median: samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the number of repetitions for a function that takes `each` nanoseconds and whose first sample takes a
    /// millisecond more.
    fn check(each: f64, repeats: u32) {
        let mut first = 1e6;
        let sample = |_| each + std::mem::take(&mut first);
        assert_eq!(calibrate(Duration::from_millis(3), sample), repeats);
    }

    /// A first sample that takes much too long does not end the search for the number of repetitions.
    #[test]
    fn disturbed_sample_continues_calibration() {
        check(100.0, 30_000);
    }

    /// A function that takes longer than a sample runs once in each sample.
    #[test]
    fn slow_work_is_not_repeated() {
        check(5e6, 1);
    }
}
