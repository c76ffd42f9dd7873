//! A handler of the type `bus`: the tools that workers announce on the message bus.

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats,
    handler::{RetryPolicy, secrets::SecretCollector},
};

/// The tools of workers on the bus of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct BusHandler {
    /// `groups`: the groups of workers whose tools are published. Default, as an empty list: all groups.
    pub groups: Vec<String>,
    /// `missedAnnouncements`: the number of announcements in a row after which a silent worker is forgotten. Default: 3.
    pub missed_announcements: u32,
    /// `maxWorkers`: the maximum number of workers. Further ones are ignored. Default: 100.
    pub max_workers: usize,
    retry: RetryPolicy,
}

/// The reason why `retries` and `retryPolicy` do not belong to the type.
const NO_RETRIES: &str = "the bus delivers a call again, `bus.redeliveries` times";

/// The reason why `auth` does not belong to the type.
const NO_AUTH: &str = "`bus.url` has the credentials of the broker";

impl Default for BusHandler {
    fn default() -> Self {
        let retry = RetryPolicy::attempts(1);
        Self { groups: Vec::new(), missed_announcements: 3, max_workers: 100, retry }
    }
}

impl HandlerSettings for BusHandler {
    /// The groups, or `*` for all of them.
    fn endpoint(&self) -> String {
        match self.groups.is_empty() {
            true => "bus://*".to_owned(),
            false => format!("bus://{}", self.groups.join(",")),
        }
    }

    fn add_secrets(&self, _: &mut SecretCollector) {}

    fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    fn uses_tls(&self) -> bool {
        false
    }

    fn has_server_definitions(&self) -> bool {
        true
    }
}

impl ReadHandler for BusHandler {
    const FIELDS: &'static [&'static str] = &["busConfig"];

    fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self> {
        scope.location.require_bus();
        let config = fields.optional("busConfig", |cursor| Some(config(cursor)));
        fields.reject_misplaced(&["retries", "retryPolicy"], NO_RETRIES);
        fields.reject_misplaced(&["auth"], NO_AUTH);
        config.unwrap_or_else(|| Some(Self::default()))
    }
}

/// Reads `busConfig`.
fn config(cursor: ValueCursor<'_>) -> Option<BusHandler> {
    let default = BusHandler::default();
    let groups = |cursor: ValueCursor<'_>| cursor.non_empty_list(|item| item.parse(formats::bus_name));
    let mut fields = cursor.fields()?;
    let handler = BusHandler {
        groups: fields.with_default("groups", groups, Vec::new()),
        missed_announcements: fields.with_default(
            "missedAnnouncements",
            |cursor| cursor.number(1, 100),
            default.missed_announcements,
        ),
        max_workers: fields.with_default("maxWorkers", ValueCursor::count, default.max_workers),
        retry: default.retry,
    };
    fields.finish();
    Some(handler)
}
