//! Settings of the process: every field, and the defaults.

use insta::assert_debug_snapshot;

use super::{schema::missing_fields, toolyard, valid};
use crate::Manifest;

/// A `spec` of the process with every declared field.
const EVERY_SETTING: &str = "
listen: '[::]:9000'
grpc: {listen: [127.0.0.1:50051, 'unix:/run/grpc.sock']}
console: {enabled: false, listen: 127.0.0.1:8081, sessions: 5, sessionTime: 1h, traceURL: 'https://traces.example/{traceId}'}
tls: {certFile: a.crt, keyFile: a.key, clientCAFile: ca.crt}
proxyProtocol: {from: [10.0.0.0/8]}
secretsDir: /run/secrets
allowUnauthenticated: true
unauthenticatedAdmin: false
allowedHosts: [tools.example.com]
allowedOrigins: [https://app.example.com]
store: {memory: true}
cluster: {address: 'http://10.0.0.5:8080', key: 0123456789abcdef0123456789abcdef}
bus: {url: 'amqps://me:hunter2@broker.example.com/', exchange: calls, prefix: calls, source: agent, maxMessageBytes: 64KiB, storedResults: {bytes: 2KiB, totalBytes: 3KiB, ttl: 16s}, queuedMessages: 1, deadLetters: 2, redeliveries: 0, prefetch: 4, unconfirmedMessages: 5, pendingRequests: 6, publishTimeout: 7s, ackWait: 8s, reconnectDelay: 9s, maxReconnectDelay: 10s, worker: {group: weather, sharedTopic: false, announceInterval: 14s, concurrentCalls: 11, acknowledge: before, timeout: 12s, maxTimeout: 13s, key: 5d41402abc4b}, scripts: {group: jobs, maxTimeout: 14s, startTimeout: 15s}, bridge: {group: servers, agents: [a, b]}}
a2a: {name: orders, description: Orders., url: 'https://tools.example.com/a2a', skills: [{tool: run, id: ask, name: Ask, description: Asks., tags: [a], examples: [b], textArgument: prompt}], bus: false, push: {perTask: 1, attempts: 2, retryDelay: 5s, timeout: 3s, concurrent: 4, private: true}, tasks: 1, tasksPerKey: 1, taskTtl: 2s, artifactBytes: 64KiB}
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
  mcp: {enabled: true, allow: {commands: [uvx], hosts: ['*.example.com', 'localhost:3000'], env: [TOKEN]}, servers: 1, file: mcp.json, bridge: true}
  openRouter: {baseURL: 'https://router.example/api/v1', apiKey: k, timeout: 1s, responseBytes: 64KiB, concurrent: 2}
  web: {enabled: true, provider: searxng, endpoint: 'https://searx.example', apiKey: k, apiKeyEnvVar: SEARCH_KEY, maxSearchResults: 7, chunkingThreshold: 1, chunkMaxLength: 2, chunkTtl: 1s, userAgent: 'Agent/1.0', robots: false, hosts: ['*.example.com'], privateHosts: ['wiki.corp:8080'], hostRequests: 3, pageBytes: 64KiB, timeout: 4s, concurrent: 5, concurrentPerKey: 2, render: chromium, chromium: {command: /opt/chromium, memory: 512MiB, cpu: 1500m, processes: 100, disk: 64MiB, timeout: 3s, domBytes: 64KiB, requests: 9, responseBytes: 1MiB, concurrent: 1}, githubAPI: 'https://github.example/api/v3', githubToken: t}
  schedules: {enabled: true, timeZone: UTC, tasks: 1, totalTasks: 2, minInterval: 1s, missed: once, grace: 2s, history: 3, resultBytes: 2KiB, descriptionBytes: 1KiB, concurrent: 4, concurrentPerKey: 3, check: 5s, action: {webhook: {url: 'https://hooks.example.com/tasks', secret: 0123456789abcdef0123456789abcdef, private: true, timeout: 6s}}}
  agents: {enabled: true, cards: [{url: 'https://agents.example.com', endpoint: 'https://agents.example.com/a2a', signature: {url: 'https://agents.example.com/jwks.json', keys: [{kty: OKP}]}, headers: {X-Key: k}}], file: well-known-agents.json, bus: false, check: 14s, refresh: 1s, ttl: 2s, agents: 3, cardBytes: 2KiB, concurrent: 4, concurrentPerKey: 5, timeout: 6s, maxTaskTime: 7s, poll: 8s, pushURL: 'https://tools.example.com/a2a/notifications', messageBytes: 9KiB, resultBytes: 10KiB, resultTtl: 11s, history: 12, historyBytes: 13KiB}
  subagents: {enabled: true, model: tiny, concurrent: 1, totalConcurrent: 2, timeout: 3s, maxTimeout: 4s, taskBytes: 5KiB, turns: 6, concurrentCalls: 7, listedTools: 8, resultChars: 9, tokens: 10, replyTokens: 13, cost: '0.5', inputPrice: '3', outputPrice: '15', boardBytes: 11KiB, totalBoardBytes: 12KiB}
  wisps: {enabled: true, model: tiny, batch: 2, concurrent: 3, steps: 4, timeout: 1s, definitionBytes: 8KiB, outputBytes: 16KiB, inputChars: 5, priorChars: 6, resultChars: 7, ttl: 2s, successTtl: 1s, repeats: 8, repeatWindow: 9s, sharedFolder: shared, sharedBytes: 17KiB}
  code: {enabled: true, timeout: 1s, longestTimeout: 2s, memory: 64MiB, codeBytes: 2KiB, calls: 3, concurrentCalls: 4, resultBytes: 5KiB, outputBytes: 6KiB, logBytes: 7KiB, concurrent: 8, queued: 9, observed: 10}
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
  toolDescription: 300
  argumentDescription: 200
  exampleBytes: 100
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
    // The alternatives to `key`, to `apiKey`, to `webhook` and to `memory`.
    let alternatives = [
        "Toolyard busWorker principal",
        "Toolyard busWorker tools",
        "Toolyard openRouter apiKeySecretRef",
        "Toolyard scheduleAction bus",
        "Toolyard scheduleAction tool",
        "Toolyard scheduledCall arguments",
        "Toolyard scheduledCall name",
        "Toolyard scheduledMessage body",
        "Toolyard scheduledMessage messageType",
        "Toolyard scheduledMessage topic",
        "Toolyard secretRef key",
        "Toolyard secretRef name",
        "Toolyard store path",
        "Toolyard store url",
    ];
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), alternatives);
}

#[test]
fn process_with_every_setting() {
    assert_debug_snapshot!(valid(&toolyard(EVERY_SETTING.trim())).process);
}

#[test]
fn defaults_match_the_documentation() {
    let mut process = valid("").process;
    // The number of processors of the machine.
    process.limits.workers = 1;
    assert_debug_snapshot!(process);
    assert_eq!(valid("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\n"), Manifest::default());
    assert_eq!(valid(&toolyard("limits:\ntimeouts: {}")), Manifest::default());
}
