//! Documents that are right.

use std::time::Duration;

use insta::assert_debug_snapshot;

use super::{environment, handler, mcp, read, source, toolyard, transport, valid};
use crate::{HandlerKind, Manifest, McpTransport, parse_with};

const REGISTRY: &str = "
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: agent-tools
  namespace: agents
  uid: 0c0ffee0
  labels: {tier: \"1\"}
  annotations: {example.com/note: \"${NOT_A_REFERENCE}\"}
spec:
  handlers:
    - name: filesystem-tools
      type: mcp
      mcpConfig:
        transport: stdio
        command: /usr/local/bin/mcp-filesystem
        args:
          - \"--root=/data\"
        workDir: /app
        env:
          LOG_LEVEL: info
    - name: code-tools
      type: mcp
      timeout: 1m30s
      mcpConfig:
        transport: streamable-http
        endpoint: http://mcp-code.tools.svc.cluster.local:8080/mcp
status:
  phase: Ready
  anything: [goes, here]
";

#[test]
fn a_registry_in_yaml() {
    let handlers = valid(REGISTRY).handlers;
    assert_debug_snapshot!(handlers[0], @r#"
    Handler {
        name: HandlerName(
            "filesystem-tools",
        ),
        registry: "agent-tools",
        timeout: 30s,
        prefix: OnClash,
        overrides: [],
        price: None,
        display_name: None,
        description: None,
        chunking: Chunking {
            structured: None,
            threshold: None,
        },
        probe: Some(
            Probe {
                interval: 60s,
                timeout: 5s,
            },
        ),
        kind: Mcp(
            McpHandler {
                transport: Stdio {
                    command: "/usr/local/bin/mcp-filesystem",
                    args: Args(1 hidden),
                    work_dir: Some(
                        "/app",
                    ),
                    env: Env[
                        "LOG_LEVEL",
                    ],
                },
                lane: None,
                filter: ToolFilter {
                    allow: [],
                    block: [],
                },
                retry: RetryPolicy {
                    max_attempts: 1,
                    initial_backoff: 100ms,
                    backoff_multiplier: 2.0,
                    max_backoff: 30s,
                },
            },
        ),
        from_outside: [],
    }
    "#);
    assert_eq!((handlers.len(), handlers[1].name.as_str()), (2, "code-tools"));
    assert_eq!(handlers[1].timeout, Duration::from_secs(90));
    let HandlerKind::Mcp(mcp) = &handlers[1].kind else { panic!() };
    assert_debug_snapshot!(mcp.transport, @"
    Http(
        McpHttp {
            style: Streamable,
            endpoint: Endpoint(http://mcp-code.tools.svc.cluster.local:8080/…),
            headers: [],
            auth: None,
        },
    )
    ");
}

#[test]
fn a_registry_in_json_with_tabs() {
    let text = "{\n\t\"apiVersion\": \"omnia.altairalabs.ai/v1alpha1\",\n\t\"kind\": \"ToolRegistry\",\n\
        \t\"metadata\": {\"name\":\"a\"},\n\t\"spec\": {\n\t\t\"handlers\": [\n\t\t\t{\"name\":\"files\",\"type\":\"mcp\",\
        \"timeout\":null,\"mcpConfig\":{\"transport\":\"stdio\",\"command\":\"x\\/y\",\"args\":[\"\\u00e9\"]}}\n\t\t]\n\t}\n}\n";
    let manifest = valid(text);
    assert_eq!(manifest.handlers[0].name.as_str(), "files");
    assert_eq!(manifest.handlers[0].timeout, Duration::from_secs(30));
}

#[test]
fn escapes_of_json() {
    #[track_caller]
    fn check(escaped: &str, expected: &str) {
        let text = registry_in_json(escaped);
        let McpTransport::Stdio { command, .. } = transport(&text) else { panic!() };
        assert_eq!(command, expected);
    }
    // As programs write it that keep to ASCII.
    check(r"a\ud83d\ude00\u00e9\/\\", "a\u{1f600}\u{e9}/\\");
    check(r"\\ud83d\\ude00", r"\ud83d\ude00");
    for half in [r"\ud83d", r"\ude00\ud83d", r"\ud83d\u0061"] {
        assert!(read(&registry_in_json(half)).is_err(), "{half}");
    }
}

fn registry_in_json(command: &str) -> String {
    format!(
        r#"{{"apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry", "metadata": {{"name": "a"}},
        "spec": {{"handlers": [{{"name": "a", "type": "mcp", "mcpConfig": {{"transport": "stdio", "command": "{command}"}}}}]}}}}"#
    )
}

/// A specification of the process whose fields are all set.
const EVERYTHING_SET: &str = "
listen: '[::]:9000'
allowUnauthenticated: true
allowedHosts: [tools.example.com]
allowedOrigins: [https://app.example.com]
store: {memory: true}
cluster: {address: 'http://10.0.0.5:8080', key: 0123456789abcdef0123456789abcdef}
audit: {enabled: false, arguments: redacted, redact: [pin], file: audit.jsonl, retention: 1h}
sandbox: {isolation: best-effort, python: /usr/bin/python3, packages: packages, packagesBytes: 1GiB}
functions: {lend: {API_KEY: k}, workers: 1, queuedCalls: 2, idle: 1s, callsPerWorker: 3, hostNetwork: true, queuedLogs: 4, logRetention: 1h}
builtins:
  scripts:
    enabled: true
    runner: kubernetes
    network: true
    packages: false
    memory: 64MiB
    cpu: '0.5'
    processes: 5
    disk: 1MiB
    output: 64KiB
    concurrent: 6
    kubernetes: {namespace: scripts, image: python, imagePullSecret: pull, runtimeClass: gvisor, packageIndex: 'https://packages.example.com/simple'}
  memory: {enabled: true, entries: 1, bytes: 8KiB, valueBytes: 4KiB, ttl: 1s, longestTtl: 2s, totalBytes: 1MiB, query: {inputBytes: 4KiB, inputValues: 2, values: 3, resultChars: 4, time: 5s, concurrent: 6}}
  results: {enabled: true, threshold: 1, leastChunk: 2, mostChunks: 3, ttl: 4s, storeTime: 5s, models: {gpt-5: {threshold: 6}}}
  guides: {enabled: false}
  skills: {enabled: true, skills: 1, bytes: 2KiB, contentBytes: 1KiB}
  search: {enabled: true, disclosure: search, budget: 1, pinned: [a, 'b/c*']}
  mcp: {enabled: true, allow: {commands: [uvx], hosts: ['*.example.com', 'localhost:3000'], env: [TOKEN]}, servers: 1}
llm: {baseURL: 'https://llm.example/v1', model: small, apiKey: k, timeout: 1s}
limits:
  requestBodyBytes: 1MiB
  workers: 7
  responseBytes: 1GiB
  headerBytes: 16384
  connections: 1
  sessions: 2
  concurrentCalls: 3
  concurrentCallsPerHandler: 4
  queuedCalls: 8
  queuedNotices: 5
  parkedCalls: 16
  tasks: 17
  replayBytes: 2MiB
  listPage: 16
  queuedRecords: 15
  toolsPerHandler: 6
  processes: 9
  lanesPerHandler: 10
  processMemoryBytes: 256MiB
  metricLabels: 11
  queuedSpans: 12
  storeQueue: 13
  storeConnections: 14
timeouts:
  firstList: 0s
  connect: 1s
  eraProbe: 2s
  sessionIdle: 3h
  clientAnswer: 20m
  taskAfter: 0s
  taskKept: 2h
  resume: 0s
  heartbeat: 9s
  drain: 0s
  requestHead: 500ms
  requestBody: 4s
  manifestCheck: 5s
  keyCheck: 8s
  laneIdle: 70s
  processIdle: 15m
  export: 6s
telemetry:
  prefix: rock.bot
  otlp: {endpoint: 'http://127.0.0.1:4318', protocol: http, headers: {Authorization: 'Bearer b'}, interval: 7s}
  traces: {sample: 0.25}
logs: {format: json, filter: 'warn,toolyard_mcp=trace'}
";

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn a_process_with_everything_set() {
    assert_debug_snapshot!(valid(&toolyard(EVERYTHING_SET.trim())).process, @r#"
    Process {
        listen: [
            Tcp(
                [::]:9000,
            ),
        ],
        tls: None,
        proxy_protocol: [],
        allow_unauthenticated: true,
        allowed_hosts: [
            "tools.example.com",
        ],
        allowed_origins: [
            "https://app.example.com",
        ],
        secrets_dir: None,
        store: Some(
            Memory,
        ),
        cluster: Some(
            Cluster {
                address: "http://10.0.0.5:8080",
                key: Secret,
            },
        ),
        audit: AuditTrail {
            enabled: false,
            arguments: Redacted,
            redact: [
                "pin",
            ],
            file: Some(
                "audit.jsonl",
            ),
            retention: 3600s,
        },
        sandbox: SandboxPolicy {
            isolation: BestEffort,
            python: "/usr/bin/python3",
            packages: Some(
                "packages",
            ),
            packages_bytes: 1073741824,
        },
        functions: FunctionHosting {
            lend: [
                (
                    "API_KEY",
                    Secret,
                ),
            ],
            workers: 1,
            queued_calls: 2,
            idle: 1s,
            calls_per_worker: 3,
            host_network: true,
            queued_logs: 4,
            log_retention: 3600s,
        },
        builtins: Some(
            Builtins {
                scripts: Some(
                    Scripts {
                        runner: Kubernetes,
                        network: true,
                        packages: false,
                        memory_bytes: 67108864,
                        cpu_millis: 500,
                        processes: 5,
                        disk_bytes: 1048576,
                        output_bytes: 65536,
                        concurrent: 6,
                        kubernetes: PodSettings {
                            namespace: "scripts",
                            image: "python",
                            image_pull_secret: Some(
                                "pull",
                            ),
                            runtime_class: Some(
                                "gvisor",
                            ),
                            package_index: Some(
                                "https://packages.example.com/simple",
                            ),
                        },
                    },
                ),
                memory: Some(
                    MemorySettings {
                        entries: 1,
                        bytes: 8192,
                        value_bytes: 4096,
                        ttl: 1s,
                        longest_ttl: 2s,
                        total_bytes: 1048576,
                        query: QuerySettings {
                            input_bytes: 4096,
                            input_values: 2,
                            values: 3,
                            result_chars: 4,
                            time: 5s,
                            concurrent: 6,
                        },
                    },
                ),
                results: Some(
                    ResultSettings {
                        threshold: 1,
                        least_chunk: 2,
                        most_chunks: 3,
                        ttl: 4s,
                        store_time: 5s,
                        models: [
                            (
                                "gpt-5",
                                6,
                            ),
                        ],
                    },
                ),
                guides: false,
                skills: Some(
                    SkillSettings {
                        skills: 1,
                        bytes: 2048,
                        content_bytes: 1024,
                    },
                ),
                search: Some(
                    SearchSettings {
                        disclosure: Search,
                        budget: 1,
                        pinned: [
                            Pattern {
                                handler: None,
                                name: "a",
                            },
                            Pattern {
                                handler: Some(
                                    "b",
                                ),
                                name: "c*",
                            },
                        ],
                    },
                ),
                mcp: Some(
                    ManagementSettings {
                        allow: Some(
                            AllowedServers {
                                commands: [
                                    "uvx",
                                ],
                                hosts: [
                                    "*.example.com",
                                    "localhost:3000",
                                ],
                                env: [
                                    "TOKEN",
                                ],
                            },
                        ),
                        servers: 1,
                    },
                ),
                registry_guides: [],
                llm: None,
            },
        ),
        llm: Some(
            Llm {
                base_url: Endpoint(https://llm.example/…),
                model: "small",
                api_key: Some(
                    Secret,
                ),
                timeout: 1s,
            },
        ),
        limits: Limits {
            workers: 7,
            request_body_bytes: 1048576,
            response_bytes: 1073741824,
            header_bytes: 16384,
            connections: 1,
            sessions: 2,
            concurrent_calls: 3,
            concurrent_calls_per_handler: 4,
            queued_calls: 8,
            queued_notices: 5,
            parked_calls: 16,
            tasks: 17,
            replay_bytes: 2097152,
            list_page: 16,
            queued_records: 15,
            tools_per_handler: 6,
            processes: 9,
            lanes_per_handler: 10,
            process_memory_bytes: Some(
                268435456,
            ),
            metric_labels: 11,
            queued_spans: 12,
            store_queue: 13,
            store_connections: 14,
        },
        timeouts: Timeouts {
            first_list: 0ns,
            connect: 1s,
            era_probe: 2s,
            session_idle: 10800s,
            client_answer: 1200s,
            task_after: 0ns,
            task_kept: 7200s,
            resume: 0ns,
            heartbeat: 9s,
            drain: 0ns,
            request_head: 500ms,
            request_body: 4s,
            manifest_check: 5s,
            key_check: 8s,
            lane_idle: 70s,
            process_idle: Some(
                900s,
            ),
            export: 6s,
        },
        telemetry: Telemetry {
            prefix: "rock.bot",
            otlp: Some(
                Otlp {
                    endpoint: Endpoint(http://127.0.0.1:4318/…),
                    protocol: Http,
                    headers: [
                        (
                            "authorization",
                            Secret,
                        ),
                    ],
                    interval: 7s,
                },
            ),
            sample: Some(
                0.25,
            ),
        },
        logs: Logs {
            format: Json,
            filter: "warn,toolyard_mcp=trace",
        },
    }
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn the_defaults_are_those_of_the_documentation() {
    let mut process = valid("").process;
    // As many as the machine has processors.
    process.limits.workers = 1;
    assert_debug_snapshot!(process, @r#"
    Process {
        listen: [
            Tcp(
                127.0.0.1:8080,
            ),
        ],
        tls: None,
        proxy_protocol: [],
        allow_unauthenticated: false,
        allowed_hosts: [],
        allowed_origins: [],
        secrets_dir: None,
        store: None,
        cluster: None,
        audit: AuditTrail {
            enabled: true,
            arguments: Digest,
            redact: [
                "password",
                "passwd",
                "secret",
                "token",
                "access_token",
                "refresh_token",
                "authorization",
                "api_key",
                "apikey",
                "private_key",
            ],
            file: None,
            retention: 7776000s,
        },
        sandbox: SandboxPolicy {
            isolation: Required,
            python: "python3",
            packages: None,
            packages_bytes: 4294967296,
        },
        functions: FunctionHosting {
            lend: [],
            workers: 64,
            queued_calls: 256,
            idle: 300s,
            calls_per_worker: 1000,
            host_network: false,
            queued_logs: 10000,
            log_retention: 2592000s,
        },
        builtins: None,
        llm: None,
        limits: Limits {
            workers: 1,
            request_body_bytes: 4194304,
            response_bytes: 67108864,
            header_bytes: 65536,
            connections: 10000,
            sessions: 10000,
            concurrent_calls: 2048,
            concurrent_calls_per_handler: 512,
            queued_calls: 4096,
            queued_notices: 256,
            parked_calls: 1000,
            tasks: 1000,
            replay_bytes: 1048576,
            list_page: 1000,
            queued_records: 20000,
            tools_per_handler: 10000,
            processes: 256,
            lanes_per_handler: 8,
            process_memory_bytes: None,
            metric_labels: 1000,
            queued_spans: 2048,
            store_queue: 1024,
            store_connections: 8,
        },
        timeouts: Timeouts {
            first_list: 2s,
            connect: 30s,
            era_probe: 1.5s,
            session_idle: 1800s,
            client_answer: 600s,
            task_after: 15s,
            task_kept: 3600s,
            resume: 30s,
            heartbeat: 20s,
            drain: 10s,
            request_head: 90s,
            request_body: 60s,
            manifest_check: 1s,
            key_check: 1s,
            lane_idle: 300s,
            process_idle: None,
            export: 10s,
        },
        telemetry: Telemetry {
            prefix: "toolyard",
            otlp: None,
            sample: None,
        },
        logs: Logs {
            format: Human,
            filter: "info",
        },
    }
    "#);
    assert_eq!(valid("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\n"), Manifest::default());
    assert_eq!(valid(&toolyard("limits:\ntimeouts: {}")), Manifest::default());
}

#[test]
fn handlers_keep_the_order_of_sources_and_documents() {
    let named = |name: &str| handler("").replace("agent-tools", name).replace("files", name);
    let sources = [
        source(
            "b.yaml",
            &format!("{}---\n---\n{}...\n# the end\n", named("one"), toolyard("listen: 127.0.0.1:1")),
        ),
        source("a.yaml", &format!("\u{feff}{}---\n{}", named("three"), named("two"))),
    ];
    let manifest = parse_with(&sources, &environment).unwrap();
    let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
    assert_eq!(names, ["one", "three", "two"]);
    assert_eq!(manifest.handlers[1].registry, "three");
    assert_eq!(manifest.process.listen[0].tcp().unwrap().port(), 1);
}

#[test]
fn the_environment_fills_in_and_does_not_leak() {
    let text = mcp(
        "transport: stdio\ncommand: x\nargs: [--token, '${TOKEN}', '$${TOKEN}']\nenv: {KEY: 'Bearer ${TOKEN}'}",
    ) + "    timeout: ${TIMEOUT}\n";
    let manifest = valid(&text);
    assert_eq!(manifest.handlers[0].timeout, Duration::from_secs(5));
    let HandlerKind::Mcp(mcp) = &manifest.handlers[0].kind else { panic!() };
    let McpTransport::Stdio { args, env, .. } = &mcp.transport else { panic!() };
    assert_eq!(args.iter().collect::<Vec<_>>(), ["--token", "hunter2", "${TOKEN}"]);
    assert_eq!(env.iter().collect::<Vec<_>>(), [("KEY", "Bearer hunter2")]);
    assert!(!format!("{manifest:?}").contains("hunter2"));
}

#[test]
fn problems_come_in_the_order_of_files_and_positions() {
    let sources = [source("b.yaml", "kind: x\n---\nkind: y\n"), source("a.yaml", "kind: z\n")];
    let problems = parse_with(&sources, &environment).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(places, ["a.yaml:1:7: kind", "b.yaml:1:7: kind", "b.yaml:3:7: kind"]);
    assert!(read("kind: x").is_err());
}

#[test]
fn texts_without_a_document_say_nothing() {
    for text in ["", "\n", "# a comment\n", "---\n---\n", "\u{feff}", "null", "~\n---\n"] {
        assert_eq!(valid(text), Manifest::default(), "{text:?}");
    }
}

#[test]
fn names_clash_across_files_and_no_problem_hides_another() {
    let sources = [
        source("a.yaml", &handler("timeout: 5")),
        source(
            "b.json",
            &format!("{}---\n{}", toolyard("listen: x"), handler("").replace("agent-tools", "b")),
        ),
        source("c.yaml", "kind: Toolyard\napiVersion: toolyard.dev/v1alpha1\nspec: [\n"),
        source("d.yaml", &(toolyard("{}") + "metadata: {}\n")),
    ];
    insta::assert_snapshot!(parse_with(&sources, &environment).unwrap_err(), @"
    a.yaml:9:14: spec.handlers[0].timeout: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    b.json:4:11: spec.listen: `x` is not a place to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    b.json:11:11: spec.handlers[0].name: a second handler of this name
      hint: the first one is at a.yaml:6:11: spec.handlers[0].name
    c.yaml:4:1: spec[0]: this is neither YAML nor JSON: while parsing a node, did not find expected node content
    d.yaml:1:1: a second document of the kind `Toolyard`
      hint: the first one is at b.json:1:1
    d.yaml:5:11: metadata.name: this field is required
    ");
}
