//! The log on standard error. Standard output carries results, or the protocol on stdio.

use clap::ValueEnum;
use toolyard_manifest::{LogFormat, LogSettings};
use toolyard_server::log::{FilterError, LogControl};
use tracing_subscriber::layer::{Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::output::{EscapingWriter, has_colours};

/// Environment variable with the log filter. It takes precedence over the manifest.
const FILTER_VARIABLE: &str = "TOOLYARD_LOG";

type FilteredRegistry = Layered<reload::Layer<EnvFilter, Registry>, Registry>;

/// The layer that formats and writes log lines.
type FormatLayer = Box<dyn Layer<FilteredRegistry> + Send + Sync>;

/// A handle to change the filter and the format of the log.
pub(crate) struct LogHandle {
    filter: reload::Handle<EnvFilter, Registry>,
    format_layer: reload::Handle<FormatLayer, FilteredRegistry>,
    /// Format from the command line. It takes precedence over the manifest.
    format: Option<LogFormatArg>,
    is_filtered: bool,
}

/// Log format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArg {
    /// Readable text
    Human,
    /// One JSON object per line
    Json,
}

impl LogHandle {
    /// Starts the log with the filter of the environment, or else with `default`.
    pub(crate) fn start(default: &str, format: Option<LogFormatArg>) -> Self {
        let from_env = EnvFilter::try_from_env(FILTER_VARIABLE).ok();
        let is_filtered = from_env.is_some();
        let (filter, filter_handle) = reload::Layer::new(from_env.unwrap_or_else(|| EnvFilter::new(default)));
        let (lines, lines_handle) = reload::Layer::new(format_layer(format.unwrap_or(LogFormatArg::Human)));
        tracing_subscriber::registry().with(filter).with(lines).init();
        Self { filter: filter_handle, format_layer: lines_handle, format, is_filtered }
    }

    /// Applies the log settings of a manifest, except those that the command line or the environment sets.
    pub(crate) fn apply_config(&self, logs: &LogSettings) -> Result<(), FilterError> {
        if self.format.is_none() && logs.format == LogFormat::Json {
            let changed = self.format_layer.reload(format_layer(LogFormatArg::Json));
            changed.map_err(|error| FilterError(error.to_string()))?;
        }
        match self.is_filtered {
            true => Ok(()),
            false => set_filter(&self.filter, &logs.filter),
        }
    }

    /// Returns a handle that changes the filter at run time.
    pub(crate) fn control(&self) -> LogControl {
        let filter = self.filter.clone();
        LogControl::new(move |wanted| set_filter(&filter, wanted))
    }
}

fn set_filter(filter: &reload::Handle<EnvFilter, Registry>, wanted: &str) -> Result<(), FilterError> {
    let parsed = EnvFilter::try_new(wanted).map_err(|error| FilterError(error.to_string()))?;
    filter.reload(parsed).map_err(|error| FilterError(error.to_string()))
}

fn format_layer(format: LogFormatArg) -> FormatLayer {
    match format {
        LogFormatArg::Human => {
            let lines = fmt::layer().with_writer(|| EscapingWriter(std::io::stderr()));
            lines.with_ansi(has_colours()).boxed()
        }
        LogFormatArg::Json => {
            let lines = fmt::layer().with_writer(std::io::stderr);
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    }
}
