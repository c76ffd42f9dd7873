//! The section `builtins.agents`.

use std::{path::PathBuf, time::Duration};

use http::HeaderName;
use serde_json::{Map, Value, json};

use crate::{
    cursor::ValueCursor,
    field_type::{
        BoundedCountField, CountField, CustomField, FieldType, FileField, FlagField, ListField, SizeField,
        TextField, TimeoutField,
    },
    formats::{self, EndpointUrl},
    handler::SecretString,
    registry::headers,
    section::{nested, section},
    tree::{NodeContent, ObjectMember},
    value::{self, StringMode},
};

/// With less not even a small card fits.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// Other agents, which are called by the A2A protocol. The group is only enabled if the section is present.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentSettings: Default = "agents" {
        /// Agents that are known by the URL of their agent card.
        pub cards: Vec<AgentCardSource> = "cards", ListField(nested::<AgentCardSource>()), described Vec::new();
        /// File with a list of agent cards, such as a `well-known-agents.json` on a data volume. Its agents are known as
        /// long as they are in it. Edits apply without a restart, and the file need not exist. Default: none.
        pub file: Option<PathBuf> = "file", FileField, optional;
        /// True if agents that announce themselves on the message bus are known, and get tasks over it, if there is a
        /// `bus.url`. Every program with the right to write to the topic `discovery.announce` can announce an agent.
        pub bus: bool = "bus", FlagField, default true;
        /// Interval of the checks for edits of the file.
        pub check: Duration = "check", TimeoutField, default Duration::from_secs(5);
        /// Time between two requests for a card.
        pub refresh: Duration = "refresh", TimeoutField, default Duration::from_secs(10 * 60);
        /// Time for which an agent stays known after its card was last read, or announced.
        pub ttl: Duration = "ttl", TimeoutField, default Duration::from_secs(24 * 60 * 60);
        /// Maximum number of known agents; further ones are left out.
        pub agents: usize = "agents", BoundedCountField { min: 1, max: 10_000 }, default 256;
        /// Maximum size of a card, at least 1 KiB.
        pub card_bytes: usize = "cardBytes", SizeField(MIN_BYTES), default 256 << 10;
        /// Maximum number of running tasks; more are refused.
        pub concurrent: usize = "concurrent", CountField, default 32;
        /// Maximum number of running tasks of one key, or of all callers without a key together; more are refused. Default:
        /// half of `concurrent`.
        pub concurrent_per_key: Option<usize> = "concurrentPerKey", CountField, optional;
        /// Time limit of a request for a card, of one that checks a task, and until the answer to another one begins.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
        /// Maximum time limit of a task, which its caller chooses.
        pub max_task_time: Duration = "maxTaskTime", TimeoutField, default Duration::from_secs(60 * 60);
        /// Time between two checks of the state of a task, for agents that do not stream.
        pub poll: Duration = "poll", TimeoutField, default Duration::from_secs(2);
        /// URL of `/a2a/notifications` of this gateway as agents reach it. With it, agents that support push notifications
        /// notify the gateway of changes of its tasks, whose state is checked 15 times less often then. Default: none.
        pub push_url: Option<EndpointUrl> = "pushURL",
            ENDPOINT.examples(&["https://tools.example.com/a2a/notifications"]), optional;
        /// Maximum size of a message to an agent, at least 1 KiB.
        pub message_bytes: usize = "messageBytes", SizeField(MIN_BYTES), default 256 << 10;
        /// Maximum size of the result of a task, at least 1 KiB; the rest is cut off.
        pub result_bytes: usize = "resultBytes", SizeField(MIN_BYTES), default 1 << 20;
        /// Time for which a result is kept in working memory.
        pub result_ttl: Duration = "resultTtl", TimeoutField, default Duration::from_secs(60 * 60);
        /// Number of tasks of a key that are kept with the beginnings of their results.
        pub history: usize = "history", BoundedCountField { min: 1, max: 1000 }, default 50;
        /// Maximum size of a result in the history, at least 1 KiB; the rest is cut off.
        pub history_bytes: usize = "historyBytes", SizeField(MIN_BYTES), default 4 << 10;
    }
}

section! {
    /// An agent that is known by its agent card.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentCardSource = "agentCard" {
        /// URL of the agent, below which `/.well-known/agent-card.json` has the card, or the URL of the card itself, which
        /// ends with `.json`. Redirects are not followed.
        pub url: EndpointUrl = "url", ENDPOINT.examples(&["https://agents.example.com"]), required;
        /// URL of the agent's JSON-RPC interface. Default: that of the card. An interface on another host than the card's
        /// must have a public address, and gets no `headers`.
        pub endpoint: Option<EndpointUrl> = "endpoint", ENDPOINT.examples(&["http://planner:8000/a2a"]), optional;
        /// Keys of the agent card. With them the card must have a signature by one of them; without them, signatures are not
        /// checked.
        pub signature: Option<CardKeys> = "signature",
            CustomField { read: card_keys, schema: |definitions| nested::<CardKeys>().schema(definitions) },
            optional;
        /// Headers of all requests to the agent, such as `Authorization`.
        pub headers: Vec<(HeaderName, SecretString)> = "headers",
            CustomField {
                read: |cursor| headers(cursor, formats::is_header_name),
                schema: |_| json!({
                    "default": {},
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "examples": [{"Authorization": "Bearer ${AGENT_TOKEN}"}],
                }),
            },
            described Vec::new();
    }
}

section! {
    /// The public keys of an agent card, as JSON Web Keys for `ES256`, `ES384`, `EdDSA`, `RS256`, `RS384`, `RS512`, `PS256`,
    /// `PS384` or `PS512`. At least one of the fields is required.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CardKeys: Default = "agentCardKeys" {
        /// URL of a JSON Web Key Set, which is read with each card.
        pub url: Option<EndpointUrl> = "url", ENDPOINT.examples(&["https://agents.example.com/jwks.json"]), optional;
        /// Keys.
        pub keys: Vec<Map<String, Value>> = "keys",
            ListField(CustomField {
                read: |cursor| {
                    // A symmetric key is a mistake, but secret.
                    cursor.mark_secret();
                    value::object(cursor, StringMode::Literal)
                },
                schema: |_| json!({"type": "object", "examples": [{"kty": "EC", "crv": "P-256", "kid": "1", "x": "…", "y": "…"}]}),
            }),
            described Vec::new();
    }
}

const ENDPOINT: TextField<EndpointUrl> =
    TextField::new(EndpointUrl::parse).secret().pattern("^https?://[^@]+$");

impl AgentSettings {
    /// Returns the maximum number of running tasks of one key.
    #[must_use]
    pub fn concurrent_of_key(&self) -> usize {
        self.concurrent_per_key.unwrap_or_else(|| self.concurrent.div_ceil(2))
    }
}

/// Reads the keys of a card, of which there are some.
fn card_keys(cursor: ValueCursor<'_>) -> Option<CardKeys> {
    let is_given = |member: &ObjectMember| match &cursor.member(member).content() {
        NodeContent::Null => false,
        NodeContent::List(items) => !items.is_empty(),
        _ => ["url", "keys"].contains(&&*member.name),
    };
    let has_keys = match cursor.content() {
        NodeContent::Object(members) => members.iter().any(is_given),
        // The section reports that it is no object.
        _ => true,
    };
    if !has_keys {
        let hint = "give `url`, `keys` or both, or leave `signature` out";
        cursor.report(cursor.problem("there are no keys").hint(hint));
    }
    nested::<CardKeys>().read(cursor).filter(|_| has_keys)
}
