//! The log of the program: to standard error, for standard output belongs to results, and on stdio to the protocol.

use clap::ValueEnum;
use toolyard_manifest::{LogFormat, Logs};
use toolyard_server::log::{FilterError, LogControl};
use tracing_subscriber::layer::{Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::output::has_colours;

/// What is logged from the start, whatever a manifest says.
const VARIABLE: &str = "TOOLYARD_LOG";

type Filtered = Layered<reload::Layer<EnvFilter, Registry>, Registry>;

/// How lines are written.
type Lines = Box<dyn Layer<Filtered> + Send + Sync>;

/// The log, which can be changed.
pub(crate) struct Log {
    filter: reload::Handle<EnvFilter, Registry>,
    lines: reload::Handle<Lines, Filtered>,
    /// What the command line says, whatever a manifest does.
    format: Option<Format>,
    is_filtered: bool,
}

/// How lines of the log look.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

impl Log {
    /// Begins to log: `default`, unless the environment says what.
    pub(crate) fn start(default: &str, format: Option<Format>) -> Self {
        let said = EnvFilter::try_from_env(VARIABLE).ok();
        let is_filtered = said.is_some();
        let (filter, filter_handle) = reload::Layer::new(said.unwrap_or_else(|| EnvFilter::new(default)));
        let (lines, lines_handle) = reload::Layer::new(lines(format.unwrap_or(Format::Human)));
        tracing_subscriber::registry().with(filter).with(lines).init();
        Self { filter: filter_handle, lines: lines_handle, format, is_filtered }
    }

    /// Logs as a manifest says from now on, as far as neither the command line nor the environment does.
    pub(crate) fn follow(&self, logs: &Logs) -> Result<(), FilterError> {
        if self.format.is_none() && logs.format == LogFormat::Json {
            let changed = self.lines.reload(lines(Format::Json));
            changed.map_err(|error| FilterError(error.to_string()))?;
        }
        match self.is_filtered {
            true => Ok(()),
            false => change(&self.filter, &logs.filter),
        }
    }

    /// What changes the filter later on.
    pub(crate) fn control(&self) -> LogControl {
        let filter = self.filter.clone();
        LogControl::new(move |wanted| change(&filter, wanted))
    }
}

fn change(filter: &reload::Handle<EnvFilter, Registry>, wanted: &str) -> Result<(), FilterError> {
    let wanted = EnvFilter::try_new(wanted).map_err(|error| FilterError(error.to_string()))?;
    filter.reload(wanted).map_err(|error| FilterError(error.to_string()))
}

fn lines(format: Format) -> Lines {
    let lines = fmt::layer().with_writer(std::io::stderr);
    match format {
        Format::Human => lines.with_ansi(has_colours()).boxed(),
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    }
}
