//! The section `bus`: a message broker that carries calls to other machines.

use std::time::Duration;

use serde_json::Value;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{
        BoundedCountField, CountField, CustomField, FieldType, FlagField, KeywordField, ListField,
        NumberField, SizeField, TextField, TimeoutField,
    },
    formats::{self, BrokerUrl, FormatError},
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

section! {
    /// `bus` of a `Toolyard` document: a message broker, RabbitMQ or NATS with JetStream, that carries calls to other
    /// machines.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusSettings: Default = "bus" {
        /// URL of the broker: `amqp://` or `amqps://` for RabbitMQ, `nats://` or `tls://` for NATS, which may be several
        /// with commas between them. `--bus` on the command line takes precedence. Default: none.
        pub url: Option<BrokerUrl> = "url", URL, optional;
        /// Topic exchange of RabbitMQ. Dead letters go to the exchange of this name with `.dlx`.
        ///
        /// The name that RockBot uses.
        pub exchange: String = "exchange", BUS_NAME, default "rockbot".to_owned();
        /// Prefix of queues of RabbitMQ, and of streams of NATS.
        ///
        /// The name that RockBot uses.
        pub prefix: String = "prefix", BUS_NAME, default "rockbot".to_owned();
        /// Name of this process on the bus, the `source` of its messages. It grants no rights.
        pub source: String = "source", BUS_NAME, default "toolyard".to_owned();
        /// Maximum size of a message with its headers. Larger ones are not sent, and received ones are dead letters.
        ///
        /// The default of NATS.
        pub max_message_bytes: usize = "maxMessageBytes", SizeField(1024), default 1 << 20;
        /// Results of calls above `maxMessageBytes`, which go through the store. Default: none, and such a result is an
        /// error.
        pub stored_results: Option<StoredResultSettings> = "storedResults",
            nested::<StoredResultSettings>(), optional;
        /// Maximum number of messages that wait in a queue. Further ones are refused.
        pub queued_messages: usize = "queuedMessages", CountField, default 10_000;
        /// Maximum number of dead letters that are kept of a queue. The oldest are removed.
        pub dead_letters: usize = "deadLetters", CountField, default 10_000;
        /// Number of times that a message is delivered again. After that it is a dead letter.
        pub redeliveries: u32 = "redeliveries", NumberField { min: 0, max: 100 }, default 3;
        /// Maximum number of messages of a subscription that are delivered and not yet acknowledged.
        ///
        /// The number that RockBot uses.
        pub prefetch: usize = "prefetch", BoundedCountField { min: 1, max: 10_000 }, default 10;
        /// Maximum number of messages that are sent and not yet confirmed by the broker. Further ones wait.
        pub unconfirmed_messages: usize = "unconfirmedMessages",
            BoundedCountField { min: 1, max: 100_000 }, default 1_000;
        /// Maximum number of requests that wait for a reply. Further ones are refused.
        pub pending_requests: usize = "pendingRequests", CountField, default 10_000;
        /// Time limit of sending a message, with the confirmation of the broker.
        pub publish_timeout: Duration = "publishTimeout", TimeoutField, default Duration::from_secs(5);
        /// Time after which NATS delivers a message again whose consumer is silent. A consumer that works is never
        /// silent.
        pub ack_wait: Duration = "ackWait", TimeoutField, default Duration::from_secs(10);
        /// Time until the first attempt to connect again. It doubles with each attempt.
        pub reconnect_delay: Duration = "reconnectDelay", TimeoutField, default Duration::from_secs(2);
        /// Maximum time between two attempts to connect.
        pub max_reconnect_delay: Duration = "maxReconnectDelay", TimeoutField,
            default Duration::from_secs(30);
        /// The worker, `toolyard worker`, which runs calls that arrive on the bus.
        pub worker: BusWorkerSettings = "worker", WORKER, described BusWorkerSettings::default();
        /// Scripts on the bus: of `toolyard scripts-manager`, which runs them, and of gateways whose
        /// `builtins.scripts.runner` is `bus`.
        pub scripts: BusScriptSettings = "scripts", nested::<BusScriptSettings>(),
            described BusScriptSettings::default();
        /// The bridge, `toolyard bridge`, which has MCP servers for others. The caller of its calls and their limits are
        /// those of `worker`.
        pub bridge: BusBridgeSettings = "bridge", nested::<BusBridgeSettings>(),
            described BusBridgeSettings::default();
    }
}

section! {
    /// `bus.storedResults`: results of tools and scripts above `bus.maxMessageBytes`. The process that runs the call puts
    /// them into its store, and its caller reads them from the same one: both need this section, and a `store` that they
    /// share.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StoredResultSettings: Default = "busStoredResults" {
        /// Maximum size of a result.
        pub bytes: usize = "bytes", SizeField(1024), default 16 << 20;
        /// Maximum size of all results that wait in the store. Further ones are errors.
        pub total_bytes: usize = "totalBytes", SizeField(1024), default 1 << 30;
        /// Time after which a result that was not read is removed.
        pub ttl: Duration = "ttl", TimeoutField, default Duration::from_secs(10 * 60);
    }
}

section! {
    /// `bus.worker`: calls that arrive on the bus.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusWorkerSettings: Default = "busWorker" {
        /// Name of the group of workers. Each call goes to one worker of the group.
        pub group: String = "group", BUS_NAME, default "toolyard".to_owned();
        /// True if the worker also takes calls from the topic `tool.invoke`, which all groups share. One group of a broker
        /// should: each group answers such a call, also with `tool_not_found`.
        pub shared_topic: bool = "sharedTopic", FlagField, default true;
        /// Time between two announcements of the worker, by which gateways with a handler of the type `bus` know that it
        /// runs.
        pub announce_interval: Duration = "announceInterval", TimeoutField, default Duration::from_secs(5);
        /// Maximum number of calls that run at a time. Further ones stay in the queue.
        pub concurrent_calls: usize = "concurrentCalls", BoundedCountField { min: 1, max: 10_000 }, default 16;
        /// Time of the acknowledgement of a call. `auto`: after the work if the tool is annotated as read-only or
        /// idempotent, and then the call may run more than once; before the work otherwise, and then it runs at most
        /// once. `before` and `after` apply to all tools.
        ///
        /// A call that has effects must not run twice.
        pub acknowledge: Acknowledgement = "acknowledge", KeywordField(&ACKNOWLEDGEMENT),
            default Acknowledgement::Auto;
        /// Time limit of a call without the header `rb-timeout-ms`.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(60);
        /// Maximum time limit that the header `rb-timeout-ms` can set.
        pub max_timeout: Duration = "maxTimeout", TimeoutField, default Duration::from_secs(120);
        /// Id of the API key that calls run as, with its scopes, quotas and rate. Default: none.
        pub key: Option<String> = "key", TextField::new(key_id).pattern("^[0-9a-zA-Z_-]+$"), optional;
        /// Name of the caller in the audit trail, without `key`.
        pub principal: String = "principal", BUS_NAME, default "bus".to_owned();
        /// Patterns of the tools that calls may use, without `key`: `NAME` or `HANDLER/NAME`, where `*` stands for any
        /// characters. Others do not exist for calls on the bus.
        ///
        /// The manifest of a worker has the tools that it is for.
        pub tools: Vec<String> = "tools", ListField(TextField::new(tool_pattern)), default vec!["*".to_owned()];
    }
}

section! {
    /// `bus.scripts`: scripts that are sent over the bus.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusScriptSettings: Default = "busScripts" {
        /// Name of the group of managers. Each script goes to one manager of the group.
        pub group: String = "group", BUS_NAME, default "scripts".to_owned();
        /// Maximum time limit that a manager grants a script.
        ///
        /// The most that the tool lets a model ask for.
        pub max_timeout: Duration = "maxTimeout", TimeoutField, default Duration::from_secs(300);
        /// Time that a gateway waits for a manager and for the packages of a script, beside the time limit of the script.
        pub start_timeout: Duration = "startTimeout", TimeoutField, default Duration::from_secs(120);
    }
}

section! {
    /// `bus.bridge`: MCP servers on the bus.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusBridgeSettings: Default = "busBridge" {
        /// Name of the group of bridges. Each call goes to one bridge of the group, so that all have the same servers.
        pub group: String = "group", BUS_NAME, default "mcp-bridge".to_owned();
        /// Names of the agents that the servers are announced to, each on the topic `tool.meta.mcp.{name}`. The sender of
        /// a request to refresh gets them as well.
        ///
        /// The name of a gateway on the bus, `source`, by default.
        pub agents: Vec<String> = "agents", ListField(BUS_NAME), default vec!["toolyard".to_owned()];
    }
}

/// The time of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// `auto`: by the annotations of the tool.
    Auto,
    /// `before`: before the work.
    Before,
    /// `after`: after the work.
    After,
}

const ACKNOWLEDGEMENT: KeywordChoice<Acknowledgement> = KeywordChoice {
    noun: "time of an acknowledgement",
    words: &[
        ("auto", Acknowledgement::Auto),
        ("before", Acknowledgement::Before),
        ("after", Acknowledgement::After),
    ],
    unsupported: &[],
};

const BUS_NAME: TextField<String> = TextField::new(formats::bus_name).pattern("^[A-Za-z0-9_-]{1,64}$");

const URL_TEXT: TextField<BrokerUrl> =
    TextField::new(BrokerUrl::parse).secret().pattern("^(amqps?|nats|tls)://.").examples(&[
        "amqps://toolyard:${file:password}@broker.example.com/",
        "nats://broker.example.com:4222",
        "${BUS_URL}",
    ]);

const URL: CustomField<BrokerUrl> =
    CustomField { read: |cursor| URL_TEXT.read(cursor), schema: |definitions| URL_TEXT.schema(definitions) };

const WORKER: CustomField<BusWorkerSettings> = CustomField { read: worker, schema: worker_schema };

/// Reads the section `worker`, whose fields for the caller exclude each other.
fn worker(cursor: ValueCursor<'_>) -> Option<BusWorkerSettings> {
    let worker: BusWorkerSettings = nested().read(cursor.clone())?;
    let default = BusWorkerSettings::default();
    let is_set = worker.tools != default.tools || worker.principal != default.principal;
    if worker.key.is_some() && is_set {
        let problem = cursor.problem("`key` already decides the caller and its tools");
        cursor.report(
            problem.hint("remove `principal` and `tools`; `toolyard key create --scope` sets the tools"),
        );
        return None;
    }
    Some(worker)
}

fn worker_schema(definitions: &mut SchemaDefinitions) -> Value {
    nested::<BusWorkerSettings>().schema(definitions)
}

fn key_id(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new("the id of a key", "an id as `toolyard key list` shows it");
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let valid = (1..=64).contains(&text.len()) && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

fn tool_pattern(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "a pattern of tools",
        "`NAME` or `HANDLER/NAME`, where `*` stands for any characters",
    );
    match text.parse::<toolyard_core::access::ScopePattern>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(invalid),
    }
}
