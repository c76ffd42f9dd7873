//! The section `builtins.schedules`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{
        BoundedCountField, CountField, CustomField, FieldType, FlagField, KeywordField, SizeField, TextField,
        TimeoutField,
    },
    formats::{self, EndpointUrl},
    handler::SecretString,
    section::{nested, section},
    tree::{NodeContent, ObjectMember},
    value::{self, StringMode},
};

/// With less not even a sentence fits.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// Scheduled tasks of agents: their limits, and what fires. Gateways on one store share the tasks and need the same
    /// settings.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScheduleSettings: Default = "schedules" {
        /// Time zone of cron expressions. Default: that of the machine.
        pub time_zone: Option<String> = "timeZone",
            TextField::new(formats::time_zone).examples(&["Europe/Berlin", "UTC"]),
            optional;
        /// Maximum number of tasks of one key, or of all callers without a key together; more are refused.
        pub tasks: usize = "tasks", CountField, default 50;
        /// Maximum number of tasks of all keys together.
        pub total_tasks: usize = "totalTasks", CountField, default 1_000;
        /// Minimum time between two runs of a task; expressions that fire more often are refused.
        pub min_interval: Duration = "minInterval", TimeoutField, default Duration::from_secs(60);
        /// Runs that are missed, because no gateway was running: `skip` them, or make up for all of them `once`. A task
        /// that runs once only is made up for in any case.
        pub missed: MissedRuns = "missed", KeywordField(&MISSED), default MissedRuns::Skip;
        /// Delay above which a run counts as missed.
        pub grace: Duration = "grace", TimeoutField, default Duration::from_secs(60);
        /// Number of runs in the history of a key.
        pub history: usize = "history", BoundedCountField { min: 1, max: 1000 }, default 50;
        /// Maximum size of a result in the history, at least 1 KiB; the rest is cut off.
        pub result_bytes: usize = "resultBytes", SizeField(MIN_BYTES), default 4 << 10;
        /// Maximum size of the description of a task, at least 1 KiB.
        pub description_bytes: usize = "descriptionBytes", SizeField(MIN_BYTES), default 4 << 10;
        /// Maximum number of running tasks in one gateway; others wait.
        pub concurrent: usize = "concurrent", CountField, default 8;
        /// Maximum number of running tasks of one key in one gateway, or of all callers without a key together; others
        /// wait, and let tasks of other keys pass. Default: half of `concurrent`.
        pub concurrent_per_key: Option<usize> = "concurrentPerKey", CountField, optional;
        /// Interval of the checks of the clock, and for changes by other gateways.
        pub check: Duration = "check", TimeoutField, default Duration::from_secs(5);
        /// Action of a task that fires: a call of a tool, a webhook, or a message on the bus. Default: its description becomes its result,
        /// which subscribers of its resource are notified of.
        pub action: Option<ScheduleAction> = "action",
            CustomField { read: action, schema: |definitions| nested::<ActionFields>().schema(definitions) },
            optional;
    }
}

section! {
    /// The action of a task that fires: one of the fields.
    struct ActionFields = "scheduleAction" {
        /// Tool to call, with the rights and quotas of the key that has scheduled the task.
        tool: Option<ScheduledCall> = "tool", nested::<ScheduledCall>(), optional;
        /// Webhook to send.
        webhook: Option<ScheduleWebhook> = "webhook", nested::<ScheduleWebhook>(), optional;
        /// Message to publish on the bus of the process (`bus.url`).
        bus: Option<ScheduledMessage> = "bus",
            CustomField { read: message, schema: |definitions| nested::<ScheduledMessage>().schema(definitions) },
            optional;
    }
}

/// The action of a task that fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleAction {
    /// `tool`: a call of a tool.
    Tool(ScheduledCall),
    /// `webhook`: a webhook.
    Webhook(ScheduleWebhook),
    /// `bus`: a message on the bus.
    Bus(ScheduledMessage),
}

section! {
    /// The tool that a task calls.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScheduledCall = "scheduledCall" {
        /// Published name of the tool.
        pub name: String = "name", TextField::new(tool_name), required;
        /// Arguments of the call. In their strings, `{name}`, `{description}` and `{time}` stand for those of the task.
        pub arguments: Map<String, Value> = "arguments",
            CustomField {
                read: |cursor| value::object(cursor, StringMode::Expanded),
                schema: |_| json!({"type": "object", "examples": [{"prompt": "{description}"}]}),
            },
            required;
    }
}

section! {
    /// A webhook, signed according to Standard Webhooks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScheduleWebhook = "scheduleWebhook" {
        /// URL that gets a POST request. Redirects are not followed.
        pub url: EndpointUrl = "url",
            TextField::new(EndpointUrl::parse)
                .secret()
                .pattern("^https?://[^@]+$")
                .examples(&["https://hooks.example.com/tasks"]),
            required;
        /// Secret of the signature (HMAC-SHA256), as text, or in base64 with the prefix `whsec_`.
        pub secret: SecretString = "secret",
            TextField::new(formats::webhook_secret).secret().examples(&["${WEBHOOK_SECRET}"]),
            required;
        /// Permit private addresses, such as services of the same cluster.
        pub private: bool = "private", FlagField, default false;
        /// Time limit of the request.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
    }
}

section! {
    /// A message on the bus.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScheduledMessage = "scheduledMessage" {
        /// Topic of the message. A group of receivers must have subscribed to it; the broker keeps the message for them.
        pub topic: String = "topic",
            TextField::new(formats::bus_topic).examples(&["agent.task.planner"]),
            required;
        /// Type of the message.
        pub message_type: String = "messageType", TextField::new(formats::message_type),
            default "Toolyard.ScheduledTask".to_owned();
        /// Body of the message, a JSON object. In its strings, `{name}`, `{description}` and `{time}` stand for those of
        /// the task. Default: an object with `runId`, `name`, `description`, `time` and `key`.
        pub body: Option<Map<String, Value>> = "body",
            CustomField {
                read: |cursor| value::object(cursor, StringMode::Expanded),
                schema: |_| json!({"type": "object", "examples": [{"goal": "{description}"}]}),
            },
            optional;
    }
}

impl ScheduleSettings {
    /// Returns the maximum number of running tasks of one key.
    #[must_use]
    pub fn concurrent_of_key(&self) -> usize {
        self.concurrent_per_key.unwrap_or_else(|| self.concurrent.div_ceil(2))
    }
}

/// The treatment of missed runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedRuns {
    /// `skip`: they are left out.
    #[default]
    Skip,
    /// `once`: one run makes up for all of them.
    Once,
}

const MISSED: KeywordChoice<MissedRuns> = KeywordChoice {
    noun: "treatment of missed runs",
    words: &[("skip", MissedRuns::Skip), ("once", MissedRuns::Once)],
    unsupported: &[],
};

fn tool_name(text: &str) -> Result<String, formats::FormatError> {
    formats::non_empty_name(text).map(|()| text.to_owned())
}

/// Reads the message of an action, which needs a bus.
fn message(cursor: ValueCursor<'_>) -> Option<ScheduledMessage> {
    cursor.require_bus();
    nested().read(cursor)
}

/// Reads an action, which has exactly one of the fields.
fn action(cursor: ValueCursor<'_>) -> Option<ScheduleAction> {
    let is_one = match cursor.content() {
        NodeContent::Object(members) => {
            let is_action = |member: &&ObjectMember| {
                ["tool", "webhook", "bus"].contains(&&*member.name) && !cursor.member(member).is_null()
            };
            members.iter().filter(is_action).count() == 1
        }
        // The section reports that it is no object.
        _ => true,
    };
    if !is_one {
        let hint = "give one of `tool`, `webhook` and `bus`, or leave `action` out";
        cursor.report(cursor.problem("not exactly one action").hint(hint));
    }
    let fields = nested::<ActionFields>().read(cursor).filter(|_| is_one)?;
    let ActionFields { tool, webhook, bus } = fields;
    let webhook = webhook.map(ScheduleAction::Webhook);
    tool.map(ScheduleAction::Tool).or(webhook).or_else(|| bus.map(ScheduleAction::Bus))
}
