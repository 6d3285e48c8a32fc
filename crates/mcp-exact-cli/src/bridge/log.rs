//! Log of `mcp-exact bridge` on standard error, and the export of traces and metrics.
//!
//! The log contains warnings unless `--log`, or the variable `RUST_LOG`, names other levels. Traces and metrics leave the
//! process only if the configuration or the environment names a collector. The log is written by a thread, because nobody may read
//! standard error.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tracing::Metadata;
use tracing::subscriber::Interest;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Filter, Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::config::Config;
use super::lines::{LineLog, LineQueue, LineWriter};
#[cfg(feature = "telemetry")]
use super::telemetry;
use crate::terminal::stderr;
use crate::text::{Text, Untrusted, text};

/// Time limit for writing the last lines at the end of the program.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// Standard error as the writer of the log, which never blocks.
#[derive(Clone)]
pub struct Stderr(Arc<LineQueue>);

impl Stderr {
    /// Adds a line, without its line break.
    pub fn line(&self, line: &Text) {
        self.0.add_line(format!("{line}\n"));
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An event is one line, whatever its fields have.
        let event = String::from_utf8_lossy(bytes);
        self.line(&text!("{}", Untrusted(event.trim_end_matches('\n'))));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Filter of a layer that decides about each event anew.
///
/// Whoever asks what is enabled without writing an event (`tracing::enabled!`) leaves the decision to the next event, unless that
/// is asked about too: without this, events of other parts would be lost (tokio-rs/tracing, issue 2519).
pub struct FreshFilter<F>(pub F);

impl<S, F: Filter<S>> Filter<S> for FreshFilter<F> {
    fn enabled(&self, metadata: &Metadata<'_>, cx: &Context<'_, S>) -> bool {
        self.0.enabled(metadata, cx)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let interest = self.0.callsite_enabled(metadata);
        if interest.is_always() {
            Interest::sometimes()
        } else {
            interest
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.0.max_level_hint()
    }
}

/// Default filter of the log.
const DEFAULT_FILTER: &str = "warn";

/// Log and trace export of the process; [`LogAndTraces::end`] sends the last traces.
pub struct LogAndTraces {
    /// Lines on standard error.
    lines: LineLog,
    /// Exporter of traces and metrics.
    #[cfg(feature = "telemetry")]
    exporter: telemetry::Exporter,
}

impl LogAndTraces {
    /// Starts the log and the export of traces. Returns an error if the filter or the URL of the collector is invalid.
    pub fn start(filter: Option<&str>, config: &Config) -> anyhow::Result<Self> {
        let of_environment = std::env::var("RUST_LOG").ok();
        let filter = match (filter, of_environment.as_deref()) {
            (Some(filter), _) => filter.parse::<Targets>().context(
                "--log: write levels, such as `info`, or levels of parts, such as `warn,mcp_exact_bridge=debug`",
            )?,
            // `RUST_LOG` may contain directives of other programs, which this program cannot parse.
            (None, Some(filter)) if !filter.is_empty() => filter
                .parse::<Targets>()
                .unwrap_or_else(|_| default_filter()),
            _ => default_filter(),
        };
        let left_out = |count| format!("{count} lines are left out: nobody has read them\n");
        let lines = LineLog::start(
            LineWriter::new(Box::new(stderr().document()), false),
            None,
            END_TIMEOUT,
            left_out,
        )?;
        let stderr = Stderr(Arc::clone(&lines.queue));
        let log = tracing_subscriber::fmt::layer()
            .with_writer(move || stderr.clone())
            .with_ansi(false)
            .with_filter(FreshFilter(filter));
        let registry = tracing_subscriber::registry();
        #[cfg(feature = "telemetry")]
        {
            let exporter = telemetry::Exporter::start(config.telemetry.as_ref())?;
            let layer = exporter.layer();
            // Only tests run a second gateway in one process; the second gateway uses the log of the first.
            let _ = registry.with(layer).with(log).try_init();
            Ok(Self { lines, exporter })
        }
        #[cfg(not(feature = "telemetry"))]
        {
            if config.telemetry.is_some() {
                anyhow::bail!(
                    "[telemetry] needs the feature `telemetry`: install the program with `--features full`"
                );
            }
            let _ = registry.with(log).try_init();
            Ok(Self { lines })
        }
    }

    /// Returns standard error for the other lines of the gateway.
    pub fn stderr(&self) -> Stderr {
        Stderr(Arc::clone(&self.lines.queue))
    }

    /// Sends the traces that were not sent yet, and writes the last lines.
    pub async fn end(self) {
        #[cfg(feature = "telemetry")]
        self.exporter.end().await;
    }
}

/// Returns the filter that is used if none is specified.
fn default_filter() -> Targets {
    DEFAULT_FILTER.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// An event is written although somebody has asked about one that is not: of another part, and before any event.
    #[test]
    fn questions_cost_no_event() {
        /// Text that was written.
        #[derive(Clone, Default)]
        struct Written(Arc<Mutex<Vec<u8>>>);

        impl Write for Written {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("no panic").extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let written = Written::default();
        let layer = |filter: &str| {
            let written = written.clone();
            let filter: Targets = filter.parse().expect("a filter");
            tracing_subscriber::fmt::layer()
                .with_writer(move || written.clone())
                .with_filter(FreshFilter(filter))
        };
        let layers = ["first=info,second=info", "first=info,third=debug"].map(layer);
        let subscriber = tracing_subscriber::registry().with(Vec::from(layers));
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..2 {
                assert!(tracing::enabled!(target: "second", tracing::Level::INFO));
                tracing::info!(target: "first", "an event");
                assert!(tracing::enabled!(target: "third", tracing::Level::DEBUG));
                tracing::info!(target: "first", "an event");
            }
        });
        let text = String::from_utf8(written.0.lock().expect("no panic").clone());
        let text = text.expect("UTF-8");
        assert_eq!(text.matches("an event").count(), 8, "{text}");
    }
}
