//! Limits and time-outs of the process.

use std::time::Duration;

use toolyard_core::text::TextBounds;

use crate::{
    field_type::{BoundedCountField, CountField, DurationField, SizeField, TimeoutField},
    section::section,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// HTTP/1 needs a header buffer of this size.
const MIN_HEADER_BYTES: usize = 8 * KIB;

/// With less, a few messages of common size use it up.
const MIN_BYTES_IN_FLIGHT: usize = MIB;

/// With less, few programs start.
const MIN_PROCESS_BYTES: usize = 16 * MIB;

/// Schemas and data of programs are nested less deeply.
const MIN_DEPTH: u32 = 512;

/// With more, values would fill the stack.
const MAX_DEPTH: u32 = 1000;

/// With more, a page of metrics exceeds what scrapers accept.
const MAX_LABELS: u32 = 100_000;

section! {
    /// `limits` in a `Toolyard` document: upper limits, so that no client and no handler can exhaust the gateway.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProcessLimits: Default = "limits" {
        /// Threads that serve connections. Default: one per processor.
        pub workers: usize = "workers", CountField, described processors();
        /// Maximum size of a client's request body.
        ///
        /// Models write the arguments, and rarely more than some hundred KiB.
        pub request_body_bytes: usize = "requestBodyBytes", SizeField(1), default 4 * MIB;
        /// Maximum size of a message from a server. Each running call may hold one.
        ///
        /// Results contain files and images.
        pub response_bytes: usize = "responseBytes", SizeField(1), default 64 * MIB;
        /// Maximum total size of all messages in flight: bodies, responses, and messages that are queued or kept for
        /// clients; at least 1 MiB. Beyond it large messages wait, and are refused after some seconds.
        ///
        /// Eight of the largest responses, or some thousand common ones.
        pub bytes_in_flight: usize = "bytesInFlight", SizeField(MIN_BYTES_IN_FLIGHT), default 512 * MIB;
        /// Maximum size of the head of a request, at least 8 KiB.
        ///
        /// Room for long tokens and cookies.
        pub header_bytes: usize = "headerBytes", SizeField(MIN_HEADER_BYTES), default 64 * KIB;
        /// Maximum number of open client connections; one more closes the connection that is idle for longest.
        ///
        /// About as many as a process can serve with the usual number of file descriptors.
        pub connections: usize = "connections", CountField, default 10_000;
        /// Maximum number of connections from one IPv4 address or one /64 network of IPv6; loopback addresses and Unix
        /// sockets have no such limit. Default: a quarter of `connections`. Behind a proxy without the PROXY protocol,
        /// all clients have its address.
        ///
        /// Enough for an office behind one address.
        pub connections_per_address: usize = "connectionsPerAddress", CountField,
            described connections.div_ceil(4);
        /// Maximum number of client sessions.
        ///
        /// One for each connection.
        pub sessions: usize = "sessions", CountField, default 10_000;
        /// Maximum number of sessions with the same key, or without a key from the same address. Default: a quarter of
        /// `sessions`; clients without a key on the gateway's own machine may use all.
        ///
        /// No key and no address locks out the others.
        pub sessions_per_owner: Option<usize> = "sessionsPerOwner", CountField, optional;
        /// Maximum number of running calls in the whole gateway; more wait.
        ///
        /// Each may hold one message, so this limits the memory.
        pub concurrent_calls: usize = "concurrentCalls", CountField, default 2048;
        /// Maximum number of running calls of one handler; more wait.
        ///
        /// A quarter of the total, so that a handler that hangs leaves room for the others.
        pub concurrent_calls_per_handler: usize = "concurrentCallsPerHandler", CountField, default 512;
        /// Maximum number of waiting calls, for each handler and for the gateway; more are refused as overload.
        ///
        /// At a few milliseconds per call the last one still waits less than a minute.
        pub queued_calls: usize = "queuedCalls", CountField, default 4096;
        /// Maximum number of notifications that wait for one client.
        ///
        /// A client that reads this slowly has to fetch the state again anyway.
        pub queued_notices: usize = "queuedNotices", CountField, default 256;
        /// Maximum number of suspended calls of clients without a session, which wait for the client's input; one more
        /// fails as overload.
        ///
        /// Each may hold an upstream connection that waits as well.
        pub parked_calls: usize = "parkedCalls", CountField, default 1000;
        /// Maximum number of tasks of the gateway that are kept, running or completed.
        ///
        /// Each holds its result.
        pub tasks: usize = "tasks", CountField, default 1000;
        /// Maximum size of the messages that are kept per session, so that a client can resume a broken stream.
        ///
        /// Some thousand notifications, or the largest response except for files and images.
        pub replay_bytes: usize = "replayBytes", SizeField(1), default MIB;
        /// Tools, prompts or resources on one page of a list.
        ///
        /// Clients that read only the first page miss nothing that a model can choose from.
        pub list_page: usize = "listPage", CountField, default 1000;
        /// Maximum number of audit records that wait to be written; more are dropped and counted.
        ///
        /// The records of some seconds while a database is unavailable.
        pub queued_records: usize = "queuedRecords", CountField, default 20_000;
        /// Maximum size of audit records that wait to be written, with their arguments. Arguments that do not fit are
        /// replaced by their digest.
        pub queued_record_bytes: usize = "queuedRecordBytes", SizeField(64 << 10), default 16 << 20;
        /// Maximum number of tools of one handler, and of its prompts, resources and templates.
        ///
        /// Far beyond what a model can choose from, and a stop for lists that never end.
        pub tools_per_handler: usize = "toolsPerHandler", CountField, default 10_000;
        /// Maximum nesting of arguments, of structured results and of definitions, from 512 to 1000 levels. A definition
        /// beyond it is left out, with a remark in the log and the status; a call with such arguments or such a result
        /// fails.
        ///
        /// Clients refuse what is nested more deeply: some stop at 200 levels, most at 1000.
        pub json_depth: usize = "jsonDepth", BoundedCountField { min: MIN_DEPTH, max: MAX_DEPTH }, default 512;
        /// Maximum length of a tool's description from an OpenAPI document, in characters. `search_tools` for the
        /// tool's name and `GET /api/v1/tools/NAME` have the whole.
        ///
        /// Some are pages of a manual, and each takes part in every conversation.
        pub tool_description: usize = "toolDescription", CountField, default TextBounds::DEFAULT.tool_chars;
        /// Maximum length of an argument's description from an OpenAPI document, and of a body's, in characters.
        pub argument_description: usize = "argumentDescription", CountField,
            default TextBounds::DEFAULT.argument_chars;
        /// Maximum size of an example from an OpenAPI document; larger ones are left out.
        ///
        /// Some are whole documents.
        pub example_bytes: usize = "exampleBytes", SizeField(1), default TextBounds::DEFAULT.example_bytes;
        /// Maximum number of running programs of handlers.
        ///
        /// More than a manifest names, and less than would make the machine swap. The child processes of the programs
        /// do not count.
        pub processes: usize = "processes", CountField, default 256;
        /// Maximum number of dedicated connections of one handler; 64 times as many over HTTP.
        ///
        /// Each may be a program, so that 32 handlers start no more than `processes`. Over HTTP, connections are
        /// sessions instead of programs. One more closes the connection that is idle for longest, and calls wait if
        /// none is idle.
        pub lanes_per_handler: usize = "lanesPerHandler", CountField, default 8;
        /// Maximum size of the definitions that a dedicated connection lists beside the shared ones; further ones are left out.
        ///
        /// A toolset that a client enables for itself is some 100 KB; a server must not fill the memory with lists for
        /// each client.
        pub lane_list_bytes: usize = "laneListBytes", SizeField(1), default MIB;
        /// Maximum memory of each process of a handler, at least 16 MiB. Default: no limit.
        ///
        /// A good value for one server is too low for another.
        pub process_memory_bytes: Option<usize> = "processMemoryBytes", SizeField(MIN_PROCESS_BYTES),
            optional;
        /// Maximum number of tools in metrics; further ones count as `other`.
        ///
        /// Every time series has a cost in every system that stores it.
        pub metric_labels: usize = "metricLabels", BoundedCountField { min: 1, max: MAX_LABELS }, default 1000;
        /// Maximum number of spans that wait for export; more are dropped and counted.
        ///
        /// As in the specification of OpenTelemetry.
        pub queued_spans: usize = "queuedSpans", CountField, default 2048;
        /// Maximum number of writes that wait for the store, and of reads; more are refused as overload.
        ///
        /// A few commits of a slow disk, since waiting writes share one.
        pub store_queue: usize = "storeQueue", CountField, default 1024;
        /// Connections to the database server of the store.
        ///
        /// PostgreSQL accepts a hundred by default, so that several gateways fit.
        pub store_connections: usize = "storeConnections", CountField, default 8;
    }
}

section! {
    /// `timeouts` in a `Toolyard` document: time limits of the process. The time limit of a call is that of its
    /// handler.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProcessTimeouts: Default = "timeouts" {
        /// Time for which the first list waits for handlers that are still connecting; may be zero.
        ///
        /// Most are connected by then, and one that is not does not delay the others.
        pub first_list: Duration = "firstList", DurationField, default Duration::from_secs(2);
        /// Time limit of connection and handshake of a handler.
        ///
        /// Enough for a program on a busy machine. Launchers that install have `firstStart`.
        pub connect: Duration = "connect", TimeoutField, default Duration::from_secs(30);
        /// Time limit of the first start of a server by a launcher such as `npx`, `uvx`, `pipx`, `docker run` or `go run`,
        /// which may install it.
        ///
        /// A cold cache and a slow network; a launcher that is killed may leave a broken cache.
        pub first_start: Duration = "firstStart", TimeoutField, default Duration::from_secs(5 * 60);
        /// Time for which the first start of a server by a launcher waits for those before it. Then it starts beside
        /// them.
        ///
        /// Two installations that hang; a shared cache takes longer, but seldom breaks.
        pub install_queue: Duration = "installQueue", TimeoutField, default Duration::from_secs(10 * 60);
        /// Time for a server to show which revision of MCP it supports, before the handshake of older revisions is tried. A
        /// later answer still counts.
        ///
        /// Old servers may not respond to the probe at all, and should still make the first list.
        pub era_probe: Duration = "eraProbe", TimeoutField, default Duration::from_millis(1500);
        /// Lifetime of a session without requests.
        ///
        /// A person's break.
        pub session_idle: Duration = "sessionIdle", TimeoutField, default Duration::from_secs(30 * 60);
        /// Time limit of a client's response to a request of a call.
        ///
        /// A person reads, thinks and types.
        pub client_answer: Duration = "clientAnswer", TimeoutField, default Duration::from_secs(10 * 60);
        /// Run time after which a call becomes a task, for clients that accept tasks.
        ///
        /// Shorter than the usual time-out of clients.
        pub task_after: Duration = "taskAfter", DurationField, default Duration::from_secs(15);
        /// Lifetime of a task, from its creation.
        ///
        /// A client that was interrupted finds its result.
        pub task_kept: Duration = "taskKept", TimeoutField, default Duration::from_secs(60 * 60);
        /// Time for which a call continues after its client was disconnected, and for which a stream can be resumed;
        /// may be zero.
        ///
        /// A laptop that changes networks.
        pub resume: Duration = "resume", DurationField, default Duration::from_secs(30);
        /// Time without progress after which a client that requested progress is notified that its call still runs.
        ///
        /// Twice before the usual client time-out of 60 s.
        pub heartbeat: Duration = "heartbeat", TimeoutField, default Duration::from_secs(20);
        /// Time for which running calls may continue after the process was told to stop; may be zero.
        ///
        /// Within the 30 s that Kubernetes grants.
        pub drain: Duration = "drain", DurationField, default Duration::from_secs(10);
        /// Time limit for the head of a request, and lifetime of an idle connection.
        ///
        /// Clients usually keep idle connections for this time.
        pub request_head: Duration = "requestHead", TimeoutField, default Duration::from_secs(90);
        /// Time limit for the body of a request.
        ///
        /// Enough for the largest body over a slow network.
        pub request_body: Duration = "requestBody", TimeoutField, default Duration::from_secs(60);
        /// Time for which a client may leave a response unread before its connection is closed.
        ///
        /// A short network failure.
        pub response_write: Duration = "responseWrite", TimeoutField, default Duration::from_secs(60);
        /// Interval of checks for edits of the manifest.
        ///
        /// Short enough for an author that waits, and it costs a few system calls.
        pub manifest_check: Duration = "manifestCheck", TimeoutField, default Duration::from_secs(1);
        /// Interval of checks for keys that other processes created or revoked.
        ///
        /// A revoked key works at most this long, and one query per second is no load for the store.
        pub key_check: Duration = "keyCheck", TimeoutField, default Duration::from_secs(1);
        /// Lifetime of a dedicated connection without calls.
        ///
        /// Few clients announce when they leave.
        pub lane_idle: Duration = "laneIdle", TimeoutField, default Duration::from_secs(5 * 60);
        /// Run time of a handler's program without calls, before it is stopped until the next call. Default: unlimited.
        ///
        /// Some programs have state that a call expects to find again.
        pub process_idle: Option<Duration> = "processIdle", TimeoutField, optional;
        /// Time limit of each telemetry export, and of the final one.
        ///
        /// As in the specification of OpenTelemetry.
        pub export: Duration = "export", TimeoutField, default Duration::from_secs(10);
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
