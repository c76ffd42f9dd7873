//! What the process allows, and how long it waits.

use std::time::Duration;

use crate::cursor::Cursor;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// HTTP/1 needs that much for a buffer of headers.
const LEAST_HEADER_BYTES: usize = 8 * KIB;

/// With less, few programs start.
const LEAST_PROCESS_BYTES: usize = 16 * MIB;

/// With more, a page of metrics is larger than what reads it takes.
const MOST_LABELS: u32 = 100_000;

/// Bounds, so that no client and no handler can use up the gateway. `limits` in a `Toolyard` document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `workers`: threads that serve connections. As many as the machine has processors.
    pub workers: usize,
    /// `requestBodyBytes`: bytes of a request from a client. 4 MiB: arguments are written by a model, which
    /// rarely writes more than some hundred KiB.
    pub request_body_bytes: usize,
    /// `responseBytes`: bytes of the largest message from a handler. 64 MiB: results hold files and images.
    /// Each call that runs may hold one.
    pub response_bytes: usize,
    /// `headerBytes`: bytes of the head of a request, at least 8 KiB. 64 KiB: room for long tokens and
    /// cookies.
    pub header_bytes: usize,
    /// `connections`: clients' open connections. 10 000: about what a process can serve before it needs more
    /// than the usual number of file descriptors.
    pub connections: usize,
    /// `sessions`: sessions of clients that keep one. 10 000: one for each connection.
    pub sessions: usize,
    /// `concurrentCalls`: calls that run at a time in the whole gateway; more wait. 2048:
    /// each may hold one message, so this bounds the memory.
    pub concurrent_calls: usize,
    /// `concurrentCallsPerHandler`: calls that run at a time in one handler. 512: a quarter of all, so that a
    /// handler that hangs leaves room for the others.
    pub concurrent_calls_per_handler: usize,
    /// `queuedCalls`: calls that wait for one of these places, for each handler and for the gateway; more are
    /// refused as overload. 4096: at a few milliseconds a call the last one still waits less than a minute.
    pub queued_calls: usize,
    /// `queuedNotices`: notifications that wait for one client. 256: a client that reads this slowly has to
    /// ask for the state anew anyhow.
    pub queued_notices: usize,
    /// `parkedCalls`: calls of clients without a session that wait for their clients to come back with an answer; one
    /// more fails as overload. 1000: each may hold a connection to a server that waits as well.
    pub parked_calls: usize,
    /// `tasks`: calls that went on as tasks of the gateway and are remembered, running or over. 1000: each holds its
    /// result.
    pub tasks: usize,
    /// `replayBytes`: bytes that are kept of what was sent on the streams of one session, for its client to come back to
    /// after its connection broke. 1 MiB: some thousand notifications, and the largest answer but for files and images.
    pub replay_bytes: usize,
    /// `listPage`: tools, prompts or resources on one page of a list. 1000: clients that read the first page only miss
    /// nothing of what a model can choose from.
    pub list_page: usize,
    /// `queuedRecords`: records of the audit trail that wait to be written; more are lost, and counted. 20 000: what comes
    /// together while a database is away for some seconds.
    pub queued_records: usize,
    /// `toolsPerHandler`: tools that one handler may list, and as many prompts, resources and templates. 10 000: far beyond
    /// what a model can choose from, and short of a list that never ends.
    pub tools_per_handler: usize,
    /// `processes`: programs that handlers may have running at a time; what these start is theirs. 256: more than
    /// a manifest names, and short of what would make the machine swap.
    pub processes: usize,
    /// `lanesPerHandler`: connections of one client each that an `mcp` handler may have beside the one that all share;
    /// for one more, the one that was idle for longest ends, and where none is idle, calls wait. Over HTTP, where they are
    /// sessions and no programs, 64 times as many. 8: each may be a program, of which 32 handlers then still
    /// start no more than `processes`.
    pub lanes_per_handler: usize,
    /// `processMemoryBytes`: bytes that a program of a handler, and each process that it starts, may allocate for
    /// itself, at least 16 MiB. No limit: what is right for one server is too little for another.
    pub process_memory_bytes: Option<usize>,
    /// `metricLabels`: tools that metrics name; what further ones do counts as `other`. 1000: a time series costs every
    /// system that stores it, for as long as it does.
    pub metric_labels: usize,
    /// `queuedSpans`: parts of traces that wait to be sent; more are dropped, and counted. 2048: what the specification of
    /// OpenTelemetry has.
    pub queued_spans: usize,
    /// `storeQueue`: writes that wait for the store, and as many reads; more are refused as overload. 1024: a few
    /// commits of a slow disk, since writes that wait share one.
    pub store_queue: usize,
    /// `storeConnections`: connections to the database server of a store that is one. 8: of the hundred that
    /// PostgreSQL takes unless it is told otherwise, so that several gateways fit.
    pub store_connections: usize,
}

/// How long the process waits. `timeouts` in a `Toolyard` document; a call has the time-out of its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `firstList`: how long the first list waits for handlers that are still connecting; may be zero. 2 s:
    /// most are there by then, and a handler that is not breaks nothing for the others.
    pub first_list: Duration,
    /// `connect`: how long a handler may take to connect and shake hands. 30 s: launchers such as `npx` fetch
    /// a package first.
    pub connect: Duration,
    /// `eraProbe`: how long a server may take to show which revision of MCP it speaks. 1.5 s: silence is how an
    /// old one says that it does not know the question, and it should still make the first list.
    pub era_probe: Duration,
    /// `sessionIdle`: how long a session lives without a request. 30 min: a person's break.
    pub session_idle: Duration,
    /// `clientAnswer`: how long a client may take to answer what a call asks it. 10 min: a person reads, thinks and types.
    pub client_answer: Duration,
    /// `taskAfter`: how long a call runs before a client that takes tasks is given one. 15 s: within what clients
    /// commonly wait for an answer.
    pub task_after: Duration,
    /// `taskKept`: how long a task of the gateway is remembered, from its beginning. 1 h: a client that was
    /// interrupted finds its result.
    pub task_kept: Duration,
    /// `resume`: how long a call goes on whose client was cut off, and how long a stream waits for its client to come
    /// back; may be zero. 30 s: a laptop that changes networks.
    pub resume: Duration,
    /// `heartbeat`: after how long without progress a client that wants some is told that its call goes on. 20 s: twice
    /// before the 60 s after which clients commonly give up.
    pub heartbeat: Duration,
    /// `drain`: how long running calls may go on after the process was told to stop; may be zero. 10 s:
    /// within the 30 s that Kubernetes grants.
    pub drain: Duration,
    /// `requestHead`: how long a client may take to send the head of a request, and how long it may keep a
    /// connection without one. 90 s: what clients commonly keep unused connections for.
    pub request_head: Duration,
    /// `requestBody`: how long a client may take to send the body of a request. 60 s: for the largest body over
    /// a slow network.
    pub request_body: Duration,
    /// `manifestCheck`: how often the files of the manifest are looked at for edits. 1 s: an editor's user waits no
    /// longer, and it costs a few system calls.
    pub manifest_check: Duration,
    /// `keyCheck`: how often it is looked whether other processes have made or revoked keys. 1 s: a revoked key may go on
    /// for as long, and the store does not notice one question a second.
    pub key_check: Duration,
    /// `laneIdle`: how long a connection of one client is kept without a call. 5 min: few clients say when they leave.
    pub lane_idle: Duration,
    /// `processIdle`: how long the program of a handler runs without a call before it is ended until the next one.
    /// Unset, it stays: some have state that a call expects to find again.
    pub process_idle: Option<Duration>,
    /// `export`: how long telemetry may take to be sent, each time and all together at the end. 10 s: what the
    /// specification of OpenTelemetry has.
    pub export: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            request_body_bytes: 4 * MIB,
            response_bytes: 64 * MIB,
            header_bytes: 64 * KIB,
            connections: 10_000,
            sessions: 10_000,
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

impl Default for Timeouts {
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
            manifest_check: Duration::from_secs(1),
            key_check: Duration::from_secs(1),
            lane_idle: Duration::from_secs(5 * 60),
            process_idle: None,
            export: Duration::from_secs(10),
        }
    }
}

pub(crate) fn limits(cursor: Cursor<'_>) -> Option<Limits> {
    let mut fields = cursor.fields()?;
    let default = Limits::default();
    let size = |cursor: Cursor<'_>| cursor.size(1);
    let memory_size = |cursor: Cursor<'_>| cursor.size(LEAST_PROCESS_BYTES);
    let labels =
        |cursor: Cursor<'_>| cursor.number(1, MOST_LABELS).and_then(|most| usize::try_from(most).ok());
    let header_size = |cursor: Cursor<'_>| cursor.size(LEAST_HEADER_BYTES);
    let limits = Limits {
        workers: fields.with_default("workers", Cursor::count, default.workers),
        request_body_bytes: fields.with_default("requestBodyBytes", size, default.request_body_bytes),
        response_bytes: fields.with_default("responseBytes", size, default.response_bytes),
        header_bytes: fields.with_default("headerBytes", header_size, default.header_bytes),
        connections: fields.with_default("connections", Cursor::count, default.connections),
        sessions: fields.with_default("sessions", Cursor::count, default.sessions),
        concurrent_calls: fields.with_default("concurrentCalls", Cursor::count, default.concurrent_calls),
        concurrent_calls_per_handler: fields.with_default(
            "concurrentCallsPerHandler",
            Cursor::count,
            default.concurrent_calls_per_handler,
        ),
        queued_calls: fields.with_default("queuedCalls", Cursor::count, default.queued_calls),
        queued_notices: fields.with_default("queuedNotices", Cursor::count, default.queued_notices),
        parked_calls: fields.with_default("parkedCalls", Cursor::count, default.parked_calls),
        tasks: fields.with_default("tasks", Cursor::count, default.tasks),
        replay_bytes: fields.with_default("replayBytes", size, default.replay_bytes),
        list_page: fields.with_default("listPage", Cursor::count, default.list_page),
        queued_records: fields.with_default("queuedRecords", Cursor::count, default.queued_records),
        tools_per_handler: fields.with_default("toolsPerHandler", Cursor::count, default.tools_per_handler),
        processes: fields.with_default("processes", Cursor::count, default.processes),
        lanes_per_handler: fields.with_default("lanesPerHandler", Cursor::count, default.lanes_per_handler),
        process_memory_bytes: fields.optional("processMemoryBytes", memory_size),
        metric_labels: fields.with_default("metricLabels", labels, default.metric_labels),
        queued_spans: fields.with_default("queuedSpans", Cursor::count, default.queued_spans),
        store_queue: fields.with_default("storeQueue", Cursor::count, default.store_queue),
        store_connections: fields.with_default("storeConnections", Cursor::count, default.store_connections),
    };
    fields.finish();
    Some(limits)
}

pub(crate) fn timeouts(cursor: Cursor<'_>) -> Option<Timeouts> {
    let mut fields = cursor.fields()?;
    let default = Timeouts::default();
    let timeouts = Timeouts {
        first_list: fields.with_default("firstList", Cursor::duration, default.first_list),
        connect: fields.with_default("connect", Cursor::timeout, default.connect),
        era_probe: fields.with_default("eraProbe", Cursor::timeout, default.era_probe),
        session_idle: fields.with_default("sessionIdle", Cursor::timeout, default.session_idle),
        client_answer: fields.with_default("clientAnswer", Cursor::timeout, default.client_answer),
        task_after: fields.with_default("taskAfter", Cursor::duration, default.task_after),
        task_kept: fields.with_default("taskKept", Cursor::timeout, default.task_kept),
        resume: fields.with_default("resume", Cursor::duration, default.resume),
        heartbeat: fields.with_default("heartbeat", Cursor::timeout, default.heartbeat),
        drain: fields.with_default("drain", Cursor::duration, default.drain),
        request_head: fields.with_default("requestHead", Cursor::timeout, default.request_head),
        request_body: fields.with_default("requestBody", Cursor::timeout, default.request_body),
        manifest_check: fields.with_default("manifestCheck", Cursor::timeout, default.manifest_check),
        key_check: fields.with_default("keyCheck", Cursor::timeout, default.key_check),
        lane_idle: fields.with_default("laneIdle", Cursor::timeout, default.lane_idle),
        process_idle: fields.optional("processIdle", Cursor::timeout),
        export: fields.with_default("export", Cursor::timeout, default.export),
    };
    fields.finish();
    Some(timeouts)
}
