//! Limits and time-outs of the process.

use std::time::Duration;

use crate::cursor::ValueCursor;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// HTTP/1 needs a header buffer of this size.
const MIN_HEADER_BYTES: usize = 8 * KIB;

/// With less, a few messages of common size use it up.
const MIN_BYTES_IN_FLIGHT: usize = MIB;

/// With less, few programs start.
const MIN_PROCESS_BYTES: usize = 16 * MIB;

/// With more, a page of metrics exceeds what scrapers accept.
const MAX_LABELS: u32 = 100_000;

/// `limits` in a `Toolyard` document: upper limits, so that no client and no handler can exhaust the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// `workers`: threads that serve connections. Default: one per processor.
    pub workers: usize,
    /// `requestBodyBytes`: maximum size of a client's request body. Default: 4 MiB: models write the arguments, and
    /// rarely more than some hundred KiB.
    pub request_body_bytes: usize,
    /// `responseBytes`: maximum size of a message from a handler. Default: 64 MiB: results contain files and images.
    /// Each running call may hold one.
    pub response_bytes: usize,
    /// `bytesInFlight`: maximum total size of all messages in flight: bodies, responses, and messages that are queued
    /// or kept for clients. Default: 512 MiB: eight of the largest responses, or some thousand common ones.
    pub bytes_in_flight: usize,
    /// `headerBytes`: maximum size of the head of a request, at least 8 KiB. Default: 64 KiB: room for long tokens and
    /// cookies.
    pub header_bytes: usize,
    /// `connections`: maximum number of open client connections; one more closes the connection that is idle for
    /// longest. Default: 10 000: about as many as a process can serve with the usual number of file descriptors.
    pub connections: usize,
    /// `connectionsPerAddress`: maximum number of connections from one IPv4 address or one /64 network of IPv6;
    /// loopback addresses and Unix sockets have no such limit. Default: a quarter of `connections`: enough for an
    /// office behind one address.
    pub connections_per_address: usize,
    /// `sessions`: maximum number of client sessions. Default: 10 000: one for each connection.
    pub sessions: usize,
    /// `sessionsPerOwner`: maximum number of sessions with the same key, or without a key from the same address.
    /// Default: a quarter of `sessions`: no key and no address locks out the others.
    pub sessions_per_owner: Option<usize>,
    /// `concurrentCalls`: maximum number of running calls in the whole gateway; more wait. Default: 2048: each may hold
    /// one message, so this limits the memory.
    pub concurrent_calls: usize,
    /// `concurrentCallsPerHandler`: maximum number of running calls of one handler. Default: 512: a quarter of the
    /// total, so that a handler that hangs leaves room for the others.
    pub concurrent_calls_per_handler: usize,
    /// `queuedCalls`: maximum number of waiting calls, for each handler and for the gateway; more are refused as
    /// overload. Default: 4096: at a few milliseconds per call the last one still waits less than a minute.
    pub queued_calls: usize,
    /// `queuedNotices`: maximum number of notifications that wait for one client. Default: 256: a client that reads
    /// this slowly has to fetch the state again anyway.
    pub queued_notices: usize,
    /// `parkedCalls`: maximum number of suspended calls of clients without a session, which wait for the client's
    /// input; one more fails as overload. Default: 1000: each may hold an upstream connection that waits as well.
    pub parked_calls: usize,
    /// `tasks`: maximum number of tasks of the gateway that are kept, running or completed. Default: 1000: each holds
    /// its result.
    pub tasks: usize,
    /// `replayBytes`: maximum size of the messages that are kept per session, so that a client can resume a broken
    /// stream. Default: 1 MiB: some thousand notifications, or the largest response except for files and images.
    pub replay_bytes: usize,
    /// `listPage`: tools, prompts or resources on one page of a list. Default: 1000: clients that read only the first
    /// page miss nothing that a model can choose from.
    pub list_page: usize,
    /// `queuedRecords`: maximum number of audit records that wait to be written; more are dropped and counted. Default:
    /// 20 000: the records of some seconds while a database is unavailable.
    pub queued_records: usize,
    /// `toolsPerHandler`: maximum number of tools of one handler, and of its prompts, resources and templates. Default:
    /// 10 000: far beyond what a model can choose from, and a stop for lists that never end.
    pub tools_per_handler: usize,
    /// `processes`: maximum number of running programs of handlers, not counting their child processes. Default: 256:
    /// more than a manifest names, and less than would make the machine swap.
    pub processes: usize,
    /// `lanesPerHandler`: maximum number of dedicated connections of an `mcp` handler, in addition to the shared one;
    /// one more closes the connection that is idle for longest, and calls wait if none is idle. Over HTTP, where
    /// connections are sessions instead of programs, the limit is 64 times as high. Default: 8: each may be a program,
    /// so that 32 handlers start no more than `processes`.
    pub lanes_per_handler: usize,
    /// `processMemoryBytes`: maximum memory of a handler's program, and of each process that it starts, at least 16
    /// MiB. Default: no limit: a good value for one server is too low for another.
    pub process_memory_bytes: Option<usize>,
    /// `metricLabels`: maximum number of tools in metrics; further ones count as `other`. Default: 1000: every time
    /// series has a cost in every system that stores it.
    pub metric_labels: usize,
    /// `queuedSpans`: maximum number of spans that wait for export; more are dropped and counted. Default: 2048, as in
    /// the specification of OpenTelemetry.
    pub queued_spans: usize,
    /// `storeQueue`: maximum number of writes that wait for the store, and of reads; more are refused as overload.
    /// Default: 1024: a few commits of a slow disk, since waiting writes share one.
    pub store_queue: usize,
    /// `storeConnections`: connections to the database server of the store. Default: 8, of the hundred that PostgreSQL
    /// accepts by default, so that several gateways fit.
    pub store_connections: usize,
}

/// `timeouts` in a `Toolyard` document: time limits of the process. The time limit of a call is that of its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessTimeouts {
    /// `firstList`: how long the first list waits for handlers that are still connecting; may be zero. Default: 2 s:
    /// most are connected by then, and one that is not does not delay the others.
    pub first_list: Duration,
    /// `connect`: time limit of connection and handshake of a handler. Default: 30 s: launchers such as `npx` fetch a
    /// package first.
    pub connect: Duration,
    /// `eraProbe`: time limit for a server to show which revision of MCP it supports. Default: 1.5 s: old servers may
    /// not respond to the probe at all, and should still make the first list.
    pub era_probe: Duration,
    /// `sessionIdle`: lifetime of a session without requests. Default: 30 min: a person's break.
    pub session_idle: Duration,
    /// `clientAnswer`: time limit of a client's response to a request of a call. Default: 10 min: a person reads,
    /// thinks and types.
    pub client_answer: Duration,
    /// `taskAfter`: run time after which a call becomes a task, for clients that accept tasks. Default: 15 s: shorter
    /// than the usual time-out of clients.
    pub task_after: Duration,
    /// `taskKept`: lifetime of a task, from its creation. Default: 1 h: a client that was interrupted finds its result.
    pub task_kept: Duration,
    /// `resume`: how long a call continues after its client was disconnected, and how long a stream can be resumed; may
    /// be zero. Default: 30 s: a laptop that changes networks.
    pub resume: Duration,
    /// `heartbeat`: time without progress after which a client that requested progress is notified that its call still
    /// runs. Default: 20 s: twice before the usual client time-out of 60 s.
    pub heartbeat: Duration,
    /// `drain`: how long running calls may continue after the process was told to stop; may be zero. Default: 10 s:
    /// within the 30 s that Kubernetes grants.
    pub drain: Duration,
    /// `requestHead`: time limit for the head of a request, and lifetime of an idle connection. Default: 90 s: how long
    /// clients usually keep idle connections.
    pub request_head: Duration,
    /// `requestBody`: time limit for the body of a request. Default: 60 s: enough for the largest body over a slow
    /// network.
    pub request_body: Duration,
    /// `responseWrite`: how long a client may leave a response unread before its connection is closed. Default: 60 s: a
    /// short network failure.
    pub response_write: Duration,
    /// `manifestCheck`: interval of checks for edits of the manifest. Default: 1 s: short enough for an author that
    /// waits, and it costs a few system calls.
    pub manifest_check: Duration,
    /// `keyCheck`: interval of checks for keys that other processes created or revoked. Default: 1 s: a revoked key
    /// works at most this long, and one query per second is no load for the store.
    pub key_check: Duration,
    /// `laneIdle`: lifetime of a dedicated connection without calls. Default: 5 min: few clients announce when they
    /// leave.
    pub lane_idle: Duration,
    /// `processIdle`: run time of a handler's program without calls, before it is stopped until the next call. Default:
    /// unlimited: some programs have state that a call expects to find again.
    pub process_idle: Option<Duration>,
    /// `export`: time limit of each telemetry export, and of the final one. Default: 10 s, as in the specification of
    /// OpenTelemetry.
    pub export: Duration,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            request_body_bytes: 4 * MIB,
            response_bytes: 64 * MIB,
            bytes_in_flight: 512 * MIB,
            header_bytes: 64 * KIB,
            connections: 10_000,
            connections_per_address: 2500,
            sessions: 10_000,
            sessions_per_owner: None,
            concurrent_calls: 2048,
            concurrent_calls_per_handler: 512,
            queued_calls: 4096,
            queued_notices: 256,
            parked_calls: 1000,
            tasks: 1000,
            replay_bytes: MIB,
            list_page: 1000,
            queued_records: 20_000,
            tools_per_handler: 10_000,
            processes: 256,
            lanes_per_handler: 8,
            process_memory_bytes: None,
            metric_labels: 1000,
            queued_spans: 2048,
            store_queue: 1024,
            store_connections: 8,
        }
    }
}

impl Default for ProcessTimeouts {
    fn default() -> Self {
        Self {
            first_list: Duration::from_secs(2),
            connect: Duration::from_secs(30),
            era_probe: Duration::from_millis(1500),
            session_idle: Duration::from_secs(30 * 60),
            client_answer: Duration::from_secs(10 * 60),
            task_after: Duration::from_secs(15),
            task_kept: Duration::from_secs(60 * 60),
            resume: Duration::from_secs(30),
            heartbeat: Duration::from_secs(20),
            drain: Duration::from_secs(10),
            request_head: Duration::from_secs(90),
            request_body: Duration::from_secs(60),
            response_write: Duration::from_secs(60),
            manifest_check: Duration::from_secs(1),
            key_check: Duration::from_secs(1),
            lane_idle: Duration::from_secs(5 * 60),
            process_idle: None,
            export: Duration::from_secs(10),
        }
    }
}

pub(crate) fn limits(cursor: ValueCursor<'_>) -> Option<ProcessLimits> {
    let mut fields = cursor.fields()?;
    let default = ProcessLimits::default();
    let size = |cursor: ValueCursor<'_>| cursor.size(1);
    let budget_size = |cursor: ValueCursor<'_>| cursor.size(MIN_BYTES_IN_FLIGHT);
    let memory_size = |cursor: ValueCursor<'_>| cursor.size(MIN_PROCESS_BYTES);
    let labels =
        |cursor: ValueCursor<'_>| cursor.number(1, MAX_LABELS).and_then(|most| usize::try_from(most).ok());
    let header_size = |cursor: ValueCursor<'_>| cursor.size(MIN_HEADER_BYTES);
    let mut limits = ProcessLimits {
        workers: fields.with_default("workers", ValueCursor::count, default.workers),
        request_body_bytes: fields.with_default("requestBodyBytes", size, default.request_body_bytes),
        response_bytes: fields.with_default("responseBytes", size, default.response_bytes),
        bytes_in_flight: fields.with_default("bytesInFlight", budget_size, default.bytes_in_flight),
        header_bytes: fields.with_default("headerBytes", header_size, default.header_bytes),
        connections: fields.with_default("connections", ValueCursor::count, default.connections),
        connections_per_address: fields.optional("connectionsPerAddress", ValueCursor::count).unwrap_or(0),
        sessions: fields.with_default("sessions", ValueCursor::count, default.sessions),
        sessions_per_owner: fields.optional("sessionsPerOwner", ValueCursor::count),
        concurrent_calls: fields.with_default(
            "concurrentCalls",
            ValueCursor::count,
            default.concurrent_calls,
        ),
        concurrent_calls_per_handler: fields.with_default(
            "concurrentCallsPerHandler",
            ValueCursor::count,
            default.concurrent_calls_per_handler,
        ),
        queued_calls: fields.with_default("queuedCalls", ValueCursor::count, default.queued_calls),
        queued_notices: fields.with_default("queuedNotices", ValueCursor::count, default.queued_notices),
        parked_calls: fields.with_default("parkedCalls", ValueCursor::count, default.parked_calls),
        tasks: fields.with_default("tasks", ValueCursor::count, default.tasks),
        replay_bytes: fields.with_default("replayBytes", size, default.replay_bytes),
        list_page: fields.with_default("listPage", ValueCursor::count, default.list_page),
        queued_records: fields.with_default("queuedRecords", ValueCursor::count, default.queued_records),
        tools_per_handler: fields.with_default(
            "toolsPerHandler",
            ValueCursor::count,
            default.tools_per_handler,
        ),
        processes: fields.with_default("processes", ValueCursor::count, default.processes),
        lanes_per_handler: fields.with_default(
            "lanesPerHandler",
            ValueCursor::count,
            default.lanes_per_handler,
        ),
        process_memory_bytes: fields.optional("processMemoryBytes", memory_size),
        metric_labels: fields.with_default("metricLabels", labels, default.metric_labels),
        queued_spans: fields.with_default("queuedSpans", ValueCursor::count, default.queued_spans),
        store_queue: fields.with_default("storeQueue", ValueCursor::count, default.store_queue),
        store_connections: fields.with_default(
            "storeConnections",
            ValueCursor::count,
            default.store_connections,
        ),
    };
    fields.finish();
    if limits.connections_per_address == 0 {
        limits.connections_per_address = limits.connections.div_ceil(4);
    }
    Some(limits)
}

pub(crate) fn timeouts(cursor: ValueCursor<'_>) -> Option<ProcessTimeouts> {
    let mut fields = cursor.fields()?;
    let default = ProcessTimeouts::default();
    let timeouts = ProcessTimeouts {
        first_list: fields.with_default("firstList", ValueCursor::duration, default.first_list),
        connect: fields.with_default("connect", ValueCursor::timeout, default.connect),
        era_probe: fields.with_default("eraProbe", ValueCursor::timeout, default.era_probe),
        session_idle: fields.with_default("sessionIdle", ValueCursor::timeout, default.session_idle),
        client_answer: fields.with_default("clientAnswer", ValueCursor::timeout, default.client_answer),
        task_after: fields.with_default("taskAfter", ValueCursor::duration, default.task_after),
        task_kept: fields.with_default("taskKept", ValueCursor::timeout, default.task_kept),
        resume: fields.with_default("resume", ValueCursor::duration, default.resume),
        heartbeat: fields.with_default("heartbeat", ValueCursor::timeout, default.heartbeat),
        drain: fields.with_default("drain", ValueCursor::duration, default.drain),
        request_head: fields.with_default("requestHead", ValueCursor::timeout, default.request_head),
        request_body: fields.with_default("requestBody", ValueCursor::timeout, default.request_body),
        response_write: fields.with_default("responseWrite", ValueCursor::timeout, default.response_write),
        manifest_check: fields.with_default("manifestCheck", ValueCursor::timeout, default.manifest_check),
        key_check: fields.with_default("keyCheck", ValueCursor::timeout, default.key_check),
        lane_idle: fields.with_default("laneIdle", ValueCursor::timeout, default.lane_idle),
        process_idle: fields.optional("processIdle", ValueCursor::timeout),
        export: fields.with_default("export", ValueCursor::timeout, default.export),
    };
    fields.finish();
    Some(timeouts)
}
