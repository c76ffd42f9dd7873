//! Settings of the process: every field, and the defaults.

use insta::assert_debug_snapshot;

use super::{schema::missing_fields, toolyard, valid};
use crate::Manifest;

/// A `spec` of the process with every declared field.
const EVERY_SETTING: &str = "
listen: '[::]:9000'
grpc: {listen: [127.0.0.1:50051, 'unix:/run/grpc.sock']}
tls: {certFile: a.crt, keyFile: a.key, clientCAFile: ca.crt}
proxyProtocol: {from: [10.0.0.0/8]}
secretsDir: /run/secrets
allowUnauthenticated: true
allowedHosts: [tools.example.com]
allowedOrigins: [https://app.example.com]
store: {memory: true}
cluster: {address: 'http://10.0.0.5:8080', key: 0123456789abcdef0123456789abcdef}
audit: {enabled: false, arguments: redacted, redact: [pin], file: audit.jsonl, retention: 1h, bytes: 2MiB}
sandbox: {isolation: best-effort, python: /usr/bin/python3, packages: packages, packagesBytes: 1GiB, packageHosts: [files.example.com], buildFromSource: true, uids: {first: 100000, count: 1000}}
functions: {lend: {API_KEY: {value: k, functions: [weather, geo-*]}}, workers: 1, queuedCalls: 2, idle: 1s, callsPerWorker: 3, hostNetwork: true, queuedLogs: 4, logRetention: 1h, logBytes: 3MiB}
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
  memory: {enabled: true, entries: 1, bytes: 8KiB, valueBytes: 4KiB, ttl: 1s, longestTtl: 2s, totalBytes: 1MiB, keylessBytes: 64KiB, keylessAddressBytes: 16KiB, shared: loopback, query: {inputBytes: 4KiB, inputValues: 2, values: 3, resultChars: 4, time: 5s, concurrent: 6}, read: {matches: 1, resultChars: 2, time: 3s, concurrent: 4}}
  results: {enabled: true, threshold: 1, leastChunk: 2, mostChunks: 3, outputSchemas: withdraw, ttl: 4s, storeTime: 5s, models: {gpt-5: {threshold: 6}}}
  guides: {enabled: false}
  skills: {enabled: true, skills: 1, bytes: 2KiB, contentBytes: 1KiB}
  search: {enabled: true, disclosure: search, budget: 1, pinned: [a, 'b/c*'], ranker: toolyard, embedding: {baseURL: 'https://embed.example/v1', model: tiny, apiKey: k, dimensions: 384, timeout: 2s, queryTimeout: 100ms, concurrent: 3, batch: 16, bytes: 1MiB}}
  mcp: {enabled: true, allow: {commands: [uvx], hosts: ['*.example.com', 'localhost:3000'], env: [TOKEN]}, servers: 1}
llm: {baseURL: 'https://llm.example/v1', model: small, apiKey: k, timeout: 1s}
limits:
  requestBodyBytes: 1MiB
  workers: 7
  responseBytes: 1GiB
  headerBytes: 16384
  connections: 1
  connectionsPerAddress: 18
  bytesInFlight: 2MiB
  sessions: 2
  sessionsPerOwner: 19
  concurrentCalls: 3
  concurrentCallsPerHandler: 4
  queuedCalls: 8
  queuedNotices: 5
  parkedCalls: 16
  jsonDepth: 600
  tasks: 17
  replayBytes: 2MiB
  listPage: 16
  queuedRecords: 15
  queuedRecordBytes: 64KiB
  toolsPerHandler: 6
  processes: 9
  lanesPerHandler: 10
  laneListBytes: 3MiB
  processMemoryBytes: 256MiB
  metricLabels: 11
  queuedSpans: 12
  storeQueue: 13
  storeConnections: 14
timeouts:
  firstList: 0s
  firstStart: 21s
  installQueue: 22s
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
  responseWrite: 18s
  manifestCheck: 5s
  keyCheck: 8s
  laneIdle: 70s
  processIdle: 15m
  export: 6s
programs: {environment: [HTTPS_PROXY], moreEnvironment: [COMPANY_CA]}
telemetry:
  prefix: rock.bot
  otlp: {endpoint: 'http://127.0.0.1:4318', protocol: http, headers: {Authorization: 'Bearer b'}, interval: 7s}
  traces: {sample: 0.25}
logs: {format: json, filter: 'warn,toolyard_mcp=trace'}
";

#[test]
fn every_declared_field_has_an_example() {
    let mut missing = missing_fields(&toolyard(EVERY_SETTING.trim()));
    // Metadata does not configure anything.
    missing.retain(|field| !field.contains(" metadata"));
    // The alternatives to `memory`.
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["Toolyard store path", "Toolyard store url"]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn process_with_every_setting() {
    assert_debug_snapshot!(valid(&toolyard(EVERY_SETTING.trim())).process, @r#"
    ProcessSettings {
        listen: [
            Tcp(
                [::]:9000,
            ),
        ],
        grpc: GrpcService {
            listen: [
                Tcp(
                    127.0.0.1:50051,
                ),
                Unix(
                    "/run/grpc.sock",
                ),
            ],
        },
        tls: Some(
            ListenerTls {
                certificate: "a.crt",
                key: "a.key",
                client_authority: Some(
                    "ca.crt",
                ),
            },
        ),
        proxy_protocol: [
            10.0.0.0/8,
        ],
        allow_unauthenticated: true,
        allowed_hosts: [
            "tools.example.com",
        ],
        allowed_origins: [
            "https://app.example.com",
        ],
        secrets_dir: Some(
            "/run/secrets",
        ),
        store: Some(
            Memory,
        ),
        cluster: Some(
            ClusterSettings {
                address: "http://10.0.0.5:8080",
                key: SecretString,
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
            bytes: 2097152,
        },
        sandbox: SandboxPolicy {
            isolation: BestEffort,
            python: "/usr/bin/python3",
            packages: Some(
                "packages",
            ),
            packages_bytes: 1073741824,
            package_hosts: [
                "files.example.com",
            ],
            build_from_source: true,
            uids: UidSettings {
                first: 100000,
                count: 1000,
            },
        },
        programs: ProgramEnvironment {
            environment: [
                "HTTPS_PROXY",
            ],
            more_environment: [
                "COMPANY_CA",
            ],
        },
        functions: FunctionHosting {
            lend: [
                (
                    "API_KEY",
                    VariableGrant {
                        value: SecretString,
                        functions: [
                            ScopePattern {
                                handler: None,
                                name: "weather",
                            },
                            ScopePattern {
                                handler: None,
                                name: "geo-*",
                            },
                        ],
                    },
                ),
            ],
            workers: 1,
            queued_calls: 2,
            idle: 1s,
            calls_per_worker: 3,
            host_network: true,
            queued_logs: 4,
            log_retention: 3600s,
            log_bytes: 3145728,
        },
        builtins: Some(
            BuiltinSettings {
                scripts: Some(
                    ScriptSettings {
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
                        keyless_bytes: Some(
                            65536,
                        ),
                        keyless_address_bytes: Some(
                            16384,
                        ),
                        shared: Loopback,
                        query: QuerySettings {
                            input_bytes: 4096,
                            input_values: 2,
                            values: 3,
                            result_chars: 4,
                            time: 5s,
                            concurrent: 6,
                        },
                        read: ReadSettings {
                            matches: 1,
                            result_chars: 2,
                            time: 3s,
                            concurrent: 4,
                        },
                    },
                ),
                results: Some(
                    ResultSettings {
                        threshold: 1,
                        least_chunk: 2,
                        most_chunks: 3,
                        output_schemas: Withdraw,
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
                            ScopePattern {
                                handler: None,
                                name: "a",
                            },
                            ScopePattern {
                                handler: Some(
                                    "b",
                                ),
                                name: "c*",
                            },
                        ],
                        ranker: Toolyard,
                        embedding: Some(
                            EmbeddingSettings {
                                base_url: EndpointUrl(https://embed.example/…),
                                model: "tiny",
                                api_key: Some(
                                    SecretString,
                                ),
                                dimensions: Some(
                                    384,
                                ),
                                timeout: 2s,
                                query_timeout: 100ms,
                                concurrent: 3,
                                batch: 16,
                                bytes: 1048576,
                            },
                        ),
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
            LlmSettings {
                base_url: EndpointUrl(https://llm.example/…),
                model: "small",
                api_key: Some(
                    SecretString,
                ),
                timeout: 1s,
            },
        ),
        limits: ProcessLimits {
            workers: 7,
            request_body_bytes: 1048576,
            response_bytes: 1073741824,
            bytes_in_flight: 2097152,
            header_bytes: 16384,
            connections: 1,
            connections_per_address: 18,
            sessions: 2,
            sessions_per_owner: Some(
                19,
            ),
            concurrent_calls: 3,
            concurrent_calls_per_handler: 4,
            queued_calls: 8,
            queued_notices: 5,
            parked_calls: 16,
            tasks: 17,
            replay_bytes: 2097152,
            list_page: 16,
            queued_records: 15,
            queued_record_bytes: 65536,
            tools_per_handler: 6,
            json_depth: 600,
            processes: 9,
            lanes_per_handler: 10,
            lane_list_bytes: 3145728,
            process_memory_bytes: Some(
                268435456,
            ),
            metric_labels: 11,
            queued_spans: 12,
            store_queue: 13,
            store_connections: 14,
        },
        timeouts: ProcessTimeouts {
            first_list: 0ns,
            connect: 1s,
            first_start: 21s,
            install_queue: 22s,
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
            response_write: 18s,
            manifest_check: 5s,
            key_check: 8s,
            lane_idle: 70s,
            process_idle: Some(
                900s,
            ),
            export: 6s,
        },
        telemetry: TelemetrySettings {
            prefix: "rock.bot",
            otlp: Some(
                OtlpSettings {
                    endpoint: EndpointUrl(http://127.0.0.1:4318/…),
                    protocol: Http,
                    headers: [
                        (
                            "authorization",
                            SecretString,
                        ),
                    ],
                    interval: 7s,
                },
            ),
            sample: Some(
                0.25,
            ),
        },
        logs: LogSettings {
            format: Json,
            filter: "warn,toolyard_mcp=trace",
        },
    }
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot has a line for each field")]
fn defaults_match_the_documentation() {
    let mut process = valid("").process;
    // The number of processors of the machine.
    process.limits.workers = 1;
    assert_debug_snapshot!(process, @r#"
    ProcessSettings {
        listen: [
            Tcp(
                127.0.0.1:8080,
            ),
        ],
        grpc: GrpcService {
            listen: [],
        },
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
            bytes: 1073741824,
        },
        sandbox: SandboxPolicy {
            isolation: Required,
            python: "python3",
            packages: None,
            packages_bytes: 4294967296,
            package_hosts: [],
            build_from_source: false,
            uids: UidSettings {
                first: 2000000000,
                count: 65536,
            },
        },
        programs: ProgramEnvironment {
            environment: [
                "HTTP_PROXY",
                "HTTPS_PROXY",
                "ALL_PROXY",
                "NO_PROXY",
                "SSL_CERT_FILE",
                "SSL_CERT_DIR",
                "NODE_EXTRA_CA_CERTS",
                "NODE_USE_ENV_PROXY",
                "REQUESTS_CA_BUNDLE",
                "CURL_CA_BUNDLE",
                "NPM_CONFIG_REGISTRY",
                "NPM_CONFIG_CAFILE",
                "NPM_CONFIG_PROXY",
                "NPM_CONFIG_HTTPS_PROXY",
                "NPM_CONFIG_NOPROXY",
                "NPM_CONFIG_STRICT_SSL",
                "NPM_CONFIG_CACHE",
                "NPM_CONFIG_PREFIX",
                "NPM_CONFIG_USERCONFIG",
                "PIP_INDEX_URL",
                "PIP_EXTRA_INDEX_URL",
                "PIP_CERT",
                "PIP_PROXY",
                "PIP_TRUSTED_HOST",
                "PIP_CONFIG_FILE",
                "PIP_CACHE_DIR",
                "UV_INDEX",
                "UV_DEFAULT_INDEX",
                "UV_INDEX_URL",
                "UV_EXTRA_INDEX_URL",
                "UV_CACHE_DIR",
                "UV_TOOL_DIR",
                "UV_CONFIG_FILE",
                "UV_NATIVE_TLS",
                "UV_SYSTEM_CERTS",
                "UV_INSECURE_HOST",
                "PIPX_HOME",
                "GOPROXY",
                "GOFLAGS",
                "GONOSUMDB",
                "GOSUMDB",
                "DOCKER_HOST",
                "DOCKER_CONFIG",
            ],
            more_environment: [],
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
            log_bytes: 268435456,
        },
        builtins: None,
        llm: None,
        limits: ProcessLimits {
            workers: 1,
            request_body_bytes: 4194304,
            response_bytes: 67108864,
            bytes_in_flight: 536870912,
            header_bytes: 65536,
            connections: 10000,
            connections_per_address: 2500,
            sessions: 10000,
            sessions_per_owner: None,
            concurrent_calls: 2048,
            concurrent_calls_per_handler: 512,
            queued_calls: 4096,
            queued_notices: 256,
            parked_calls: 1000,
            tasks: 1000,
            replay_bytes: 1048576,
            list_page: 1000,
            queued_records: 20000,
            queued_record_bytes: 16777216,
            tools_per_handler: 10000,
            json_depth: 512,
            processes: 256,
            lanes_per_handler: 8,
            lane_list_bytes: 1048576,
            process_memory_bytes: None,
            metric_labels: 1000,
            queued_spans: 2048,
            store_queue: 1024,
            store_connections: 8,
        },
        timeouts: ProcessTimeouts {
            first_list: 2s,
            connect: 30s,
            first_start: 300s,
            install_queue: 600s,
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
            response_write: 60s,
            manifest_check: 1s,
            key_check: 1s,
            lane_idle: 300s,
            process_idle: None,
            export: 10s,
        },
        telemetry: TelemetrySettings {
            prefix: "toolyard",
            otlp: None,
            sample: None,
        },
        logs: LogSettings {
            format: Human,
            filter: "info",
        },
    }
    "#);
    assert_eq!(valid("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\n"), Manifest::default());
    assert_eq!(valid(&toolyard("limits:\ntimeouts: {}")), Manifest::default());
}
