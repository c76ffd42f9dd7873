//! Mistakes in `Toolyard` documents.

use insta::assert_snapshot;

use super::{problems, registry, toolyard, valid};
use crate::{SecretString, StoreSettings};

#[test]
fn second_document_is_refused() {
    assert_snapshot!(problems(&format!("{}---\n{}", toolyard("{}"), toolyard("{}"))), @"
    tools.yaml:6:1: duplicate `Toolyard` document
      hint: first defined at tools.yaml:1:1
    ");
}

#[test]
fn unknown_version_is_refused() {
    assert_snapshot!(problems("apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: Toolyard\n"), @"
    tools.yaml:1:13: apiVersion: `omnia.altairalabs.ai/v1alpha1` is not a known version of Toolyard
      expected toolyard.dev/v1alpha1
    ");
}

#[test]
fn addresses() {
    assert_snapshot!(problems(&toolyard("listen: localhost:8080")), @"
    tools.yaml:4:11: spec.listen: `localhost:8080` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    ");
    assert_snapshot!(problems(&toolyard("listen: 8080")), @"
    tools.yaml:4:11: spec.listen: found a number
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    ");
    assert_snapshot!(problems(&toolyard("allowedHosts: [http://a, '*']\nallowedOrigins: [https://a/, b]")), @"
    tools.yaml:4:18: spec.allowedHosts[0]: `http://a` is not a host
      expected a host such as tools.example.com or localhost:8080
    tools.yaml:4:28: spec.allowedHosts[1]: `*` is not a host
      expected a host such as tools.example.com or localhost:8080
    tools.yaml:5:20: spec.allowedOrigins[0]: `https://a/` is not an origin
      expected an origin such as https://app.example.com
      hint: an origin has no path and no `/` at its end
    tools.yaml:5:32: spec.allowedOrigins[1]: `b` is not an origin
      expected an origin such as https://app.example.com
    ");
}

#[test]
fn variable_grants() {
    let lend = |entries: &str| problems(&toolyard(&format!("functions: {{lend: {{{entries}}}}}")));
    assert_snapshot!(lend("TOKEN: hunter2"), @r#"
    tools.yaml:4:29: spec.functions.lend.TOKEN: found a string
      expected an object
      hint: list the functions that may use the variable: `{value: "${NAME}", functions: [weather, "geo-*"]}`
    "#);
    assert_snapshot!(lend("TOKEN: {value: hunter2}"), @"
    tools.yaml:4:29: spec.functions.lend.TOKEN.functions: this field is required
    ");
    assert_snapshot!(lend("TOKEN: {value: hunter2, functions: []}"), @"
    tools.yaml:4:57: spec.functions.lend.TOKEN.functions: this list is empty
      expected at least one item
    ");
    assert_snapshot!(lend("TOKEN: {value: hunter2, functions: weather}"), @"
    tools.yaml:4:57: spec.functions.lend.TOKEN.functions: found a string
      expected a list
      hint: write a list of one item as `[item]`
    ");
    assert_snapshot!(lend("TOKEN: {functions: [geo/coder, a b]}"), @"
    tools.yaml:4:29: spec.functions.lend.TOKEN.value: this field is required
    tools.yaml:4:42: spec.functions.lend.TOKEN.functions[0]: `geo/coder` is not a pattern of ids of functions
      expected letters, digits, `-`, `_` and `.`, in which `*` stands for any characters
    tools.yaml:4:53: spec.functions.lend.TOKEN.functions[1]: `a b` is not a pattern of ids of functions
      expected letters, digits, `-`, `_` and `.`, in which `*` stands for any characters
    ");
}

#[test]
fn clusters() {
    assert_snapshot!(problems(&toolyard("cluster: {address: 10.0.0.5:8080, key: secret}")), @"
    tools.yaml:4:22: spec.cluster.address: `10.0.0.5:8080` is not an origin of HTTP
      expected a scheme, a host and a port, such as http://10.0.0.5:8080
    tools.yaml:4:42: spec.cluster.key: this is not a key that cannot be guessed
      expected at least 32 characters, such as `openssl rand -hex 32` prints
    ");
    assert_snapshot!(problems(&toolyard("cluster: {address: http://10.0.0.5/mcp}")), @"
    tools.yaml:4:12: spec.cluster.key: this field is required
    tools.yaml:4:22: spec.cluster.address: `http://10.0.0.5/mcp` is not an origin of HTTP
      expected a scheme, a host and a port, such as http://10.0.0.5:8080
    ");
}

#[test]
fn sandbox_settings() {
    assert_snapshot!(problems(&toolyard("sandbox: {isolation: best, packagesBytes: 1KiB}")), @"
    tools.yaml:4:24: spec.sandbox.isolation: `best` is not a known kind of isolation
      expected one of required, best-effort, none
    tools.yaml:4:45: spec.sandbox.packagesBytes: this is too small
      expected a size of 67108864 or more
    ");
    assert_snapshot!(problems(&toolyard("functions: {workers: 0, idle: 0s}")), @"
    tools.yaml:4:24: spec.functions.workers: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:33: spec.functions.idle: this is zero
      expected a duration above zero
    ");
    let scripts = "builtins: {scripts: {runner: pod, memory: 1MiB, cpu: 5m, disk: 1, output: 1}}";
    assert_snapshot!(problems(&toolyard(scripts)), @r#"
    tools.yaml:4:32: spec.builtins.scripts.runner: `pod` is not a known runner of scripts
      expected one of local, kubernetes
    tools.yaml:4:45: spec.builtins.scripts.memory: this is too small
      expected a size of 33554432 or more
    tools.yaml:4:56: spec.builtins.scripts.cpu: `5m` is not a share of processors
      expected a number of processors, or of thousandths with an `m`: 2, "0.5", 500m
      hint: from 10m to 1000
    tools.yaml:4:66: spec.builtins.scripts.disk: this is too small
      expected a size of 65536 or more
    tools.yaml:4:77: spec.builtins.scripts.output: this is too small
      expected a size of 4096 or more
    "#);
    assert_snapshot!(problems(&toolyard("builtins: {scripts: {cpu: 1.5}, searches: {}}")), @r#"
    tools.yaml:4:29: spec.builtins.scripts.cpu: found a number
      expected a number of processors, or of thousandths with an `m`: 2, "0.5", 500m
      hint: put a number with decimals in quotes
    tools.yaml:4:35: spec.builtins.searches: unknown field
      expected one of scripts, memory, results, guides, skills, search, mcp
      hint: did you mean `search`?
    "#);
    assert_snapshot!(problems(&toolyard("builtins: {scripts: true}")), @"
    tools.yaml:4:23: spec.builtins.scripts: found a boolean
      expected an object
    ");
}

#[test]
fn builtin_tools_and_their_limits() {
    let memory = "memory: {bytes: 1KiB, ttl: 0s, query: {values: 0}}, skills: {contentBytes: 1}";
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{{memory}}}"))), @"
    tools.yaml:4:30: spec.builtins.memory.bytes: this is too small
      expected a size of 4096 or more
    tools.yaml:4:41: spec.builtins.memory.ttl: this is zero
      expected a duration above zero
    tools.yaml:4:61: spec.builtins.memory.query.values: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:89: spec.builtins.skills.contentBytes: this is too small
      expected a size of 1024 or more
    ");
    let results = "results: {threshold: 0, models: {a: {}, b: {threshold: 1, more: 2}}}";
    let search = "search: {disclosure: none, budget: 0, pinned: ['a b']}";
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{{results}, {search}}}"))), @"
    tools.yaml:4:35: spec.builtins.results.threshold: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:50: spec.builtins.results.models.a.threshold: this field is required
    tools.yaml:4:72: spec.builtins.results.models.b.more: unknown field
      expected threshold
    tools.yaml:4:105: spec.builtins.search.disclosure: `none` is not a known kind of disclosure
      expected one of auto, all, search
    tools.yaml:4:119: spec.builtins.search.budget: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:131: spec.builtins.search.pinned[0]: `a b` is not a pattern of tools
      expected `NAME` or `HANDLER/NAME`, where `*` stands for any characters
    ");
    let allow = "commands: [''], hosts: ['*', 'https://a', 'a*.b'], env: ['A=B']";
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{mcp: {{allow: {{{allow}}}}}}}"))), @"
    tools.yaml:4:39: spec.builtins.mcp.allow.commands[0]: `` is not a command
      expected the name or the path of a program
    tools.yaml:4:52: spec.builtins.mcp.allow.hosts[0]: `*` is not a host
      expected a host such as mcp.example.com, or *.example.com
    tools.yaml:4:57: spec.builtins.mcp.allow.hosts[1]: `https://a` is not a host
      expected a host such as mcp.example.com, or *.example.com
    tools.yaml:4:70: spec.builtins.mcp.allow.hosts[2]: `a*.b` is not a host
      expected a host such as mcp.example.com, or *.example.com
    tools.yaml:4:85: spec.builtins.mcp.allow.env[0]: `A=B` is not the name of an environment variable
      expected at least one character, and no `=` or NUL
    ");
    assert_snapshot!(problems(&toolyard("llm: {baseURL: 'ftp://a', model: '', timeout: 0s}")), @"
    tools.yaml:4:18: spec.llm.baseURL: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: it begins with http:// or https://
    tools.yaml:4:36: spec.llm.model: `` is not the id of a model
      expected what its provider calls it, such as gpt-5-mini
    tools.yaml:4:49: spec.llm.timeout: this is zero
      expected a duration above zero
    ");
}

#[test]
fn builtin_tools_are_the_first_handler() {
    let docs = |name: &str| {
        let handler = "    type: mcp\n    mcpConfig: {transport: stdio, command: docs}\n";
        registry(&format!("  - name: {name}\n{handler}"))
    };
    let check = |spec: &str, expected: &[&str]| {
        let manifest = valid(&format!("{}---\n{}", docs("docs"), toolyard(spec)));
        let names: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
        assert_eq!(names, expected, "{spec}");
    };
    check("logs: {}", &["docs"]);
    check("builtins: {}", &["builtins", "docs"]);
    check("builtins: {scripts: {enabled: false}}", &["builtins", "docs"]);
    assert_snapshot!(problems(&format!("{}---\n{}", docs("builtins"), toolyard("builtins: {}"))), @"
    tools.yaml:13:13: spec.builtins: duplicate handler name
      hint: first defined at tools.yaml:6:11: spec.handlers[0].name
    ");
}

#[test]
fn flags() {
    assert_snapshot!(problems(&toolyard("allowUnauthenticated: yes")), @"
    tools.yaml:4:25: spec.allowUnauthenticated: found a string
      expected true or false
      hint: write true or false, without quotes
    ");
    assert_snapshot!(problems(&toolyard("allowUnauthenticated: 1")), @"
    tools.yaml:4:25: spec.allowUnauthenticated: found a number
      expected true or false
    ");
}

#[test]
fn limits() {
    assert_snapshot!(problems(&toolyard("limits: {requestBodyBytes: 4MB}")), @"
    tools.yaml:4:30: spec.limits.requestBodyBytes: `4MB` is not a size
      expected a number of bytes, alone or with a unit: 65536, 64KiB, 4MiB, 1GiB
      hint: the units are KiB, MiB and GiB, spelled out
    ");
    assert_snapshot!(problems(&toolyard("limits: {requestBodyBytes: 0, headerBytes: 1KiB}")), @"
    tools.yaml:4:30: spec.limits.requestBodyBytes: this is too small
      expected a size of 1 or more
    tools.yaml:4:46: spec.limits.headerBytes: this is too small
      expected a size of 8192 or more
    ");
    assert_snapshot!(problems(&toolyard("limits: {responseBytes: 1.5, headerBytes: -1}")), @"
    tools.yaml:4:27: spec.limits.responseBytes: found a number
      expected a number of bytes, alone or with a unit: 65536, 64KiB, 4MiB, 1GiB
    tools.yaml:4:45: spec.limits.headerBytes: this is too small
      expected a size of 8192 or more
    ");
    assert_snapshot!(problems(&toolyard("limits: {connections: 0, sessions: '10', concurrentCalls: 1e3}")), @"
    tools.yaml:4:25: spec.limits.connections: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:38: spec.limits.sessions: found a string
      expected a whole number from 1 to 1000000000
      hint: write the number without quotes
    tools.yaml:4:61: spec.limits.concurrentCalls: found a number
      expected a whole number from 1 to 1000000000
    ");
    assert_snapshot!(problems(&toolyard("limits: {concurrentCall: 1}")), @"
    tools.yaml:4:12: spec.limits.concurrentCall: unknown field
      expected one of workers, requestBodyBytes, responseBytes, bytesInFlight, headerBytes, connections, connectionsPerAddress, sessions, sessionsPerOwner, concurrentCalls, concurrentCallsPerHandler, queuedCalls, queuedNotices, parkedCalls, tasks, replayBytes, listPage, queuedRecords, queuedRecordBytes, toolsPerHandler, jsonDepth, processes, lanesPerHandler, laneListBytes, processMemoryBytes, metricLabels, queuedSpans, storeQueue, storeConnections
      hint: did you mean `concurrentCalls`?
    ");
}

#[test]
fn stores() {
    let store = |fields: &str| valid(&toolyard(&format!("store: {{{fields}}}"))).process.store;
    assert_eq!(store("path: yard.db"), Some(StoreSettings::File("yard.db".into())));
    assert_eq!(store("path: /var/yard.db"), Some(StoreSettings::File("/var/yard.db".into())));
    assert_eq!(store("memory: true"), Some(StoreSettings::Memory));
    let url = "postgres://me:hunter2@db/yard";
    assert_eq!(
        store("url: 'postgres://me:${TOKEN}@db/yard'"),
        Some(StoreSettings::Url(SecretString::new(url)))
    );
    assert_eq!(valid(&toolyard("store:")).process.store, None);

    assert_snapshot!(problems(&toolyard("store: {}")), @"
    tools.yaml:4:10: spec.store: this selects no store
      expected one of path, url, memory
    ");
    assert_snapshot!(problems(&toolyard("store: {path: a, url: 'postgres://a', memory: true}")), @"
    tools.yaml:4:20: spec.store.url: `url` does not belong here
      hint: `path` already selects the store
    tools.yaml:4:41: spec.store.memory: `memory` does not belong here
      hint: `path` already selects the store
    ");
    assert_snapshot!(problems(&toolyard("store: {url: '${TOKEN}', memory: true}")), @"
    tools.yaml:4:16: spec.store.url: this is not the URL of a PostgreSQL database
      expected a URL such as postgres://toolyard@db.example.com/toolyard
    tools.yaml:4:28: spec.store.memory: `memory` does not belong here
      hint: `url` already selects the store
    ");
    assert_snapshot!(problems(&toolyard("store: {memory: false}")), @"
    tools.yaml:4:19: spec.store.memory: this is false
      expected true
      hint: omit `store` to use the default file
    ");
    assert_snapshot!(problems(&toolyard("store: {pth: a}")), @"
    tools.yaml:4:10: spec.store: this selects no store
      expected one of path, url, memory
    tools.yaml:4:11: spec.store.pth: unknown field
      expected one of path, url, memory
      hint: did you mean `path`?
    ");
    assert_snapshot!(problems(&toolyard("store: yard.db")), @"
    tools.yaml:4:10: spec.store: found a string
      expected an object
    ");
}

#[test]
fn timeouts() {
    assert_snapshot!(problems(&toolyard("timeouts: {connect: 0s, sessionIdle: 30, drain: forever}")), @"
    tools.yaml:4:23: spec.timeouts.connect: this is zero
      expected a duration above zero
    tools.yaml:4:40: spec.timeouts.sessionIdle: found a number
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: add a unit, as in `30s`
    tools.yaml:4:51: spec.timeouts.drain: `forever` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
    assert_snapshot!(problems(&toolyard("timeouts: [connect]")), @"
    tools.yaml:4:13: spec.timeouts: found a list
      expected an object
    ");
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "
listen: nowhere
allowUnauthenticated: maybe
alowedHosts: []
limits:
  conections: 5
  headerBytes: big
timeouts:
  drain: soon
";
    assert_snapshot!(problems(&toolyard(text.trim())), @"
    tools.yaml:4:11: spec.listen: `nowhere` is not an address to listen on
      expected an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock
    tools.yaml:5:25: spec.allowUnauthenticated: found a string
      expected true or false
      hint: write true or false, without quotes
    tools.yaml:6:3: spec.alowedHosts: unknown field
      expected one of listen, grpc, tls, proxyProtocol, allowUnauthenticated, allowedHosts, allowedOrigins, secretsDir, store, cluster, audit, sandbox, programs, functions, builtins, llm, limits, timeouts, telemetry, logs
      hint: did you mean `allowedHosts`?
    tools.yaml:8:5: spec.limits.conections: unknown field
      expected one of workers, requestBodyBytes, responseBytes, bytesInFlight, headerBytes, connections, connectionsPerAddress, sessions, sessionsPerOwner, concurrentCalls, concurrentCallsPerHandler, queuedCalls, queuedNotices, parkedCalls, tasks, replayBytes, listPage, queuedRecords, queuedRecordBytes, toolsPerHandler, jsonDepth, processes, lanesPerHandler, laneListBytes, processMemoryBytes, metricLabels, queuedSpans, storeQueue, storeConnections
      hint: did you mean `connections`?
    tools.yaml:9:18: spec.limits.headerBytes: `big` is not a size
      expected a number of bytes, alone or with a unit: 65536, 64KiB, 4MiB, 1GiB
    tools.yaml:11:12: spec.timeouts.drain: `soon` is not a duration
      expected a duration such as 500ms, 30s, 1m30s or 2h
      hint: the units are h, m, s, ms, us and ns, without spaces
    ");
}

#[test]
fn telemetry_and_logs() {
    let text = "
telemetry:
  prefix: my-yard
  otlp: {endpoint: 'collector:4317', protocol: thrift, headers: {Host: a}, interval: 0s}
  traces: {sample: 1.5, sampler: always}
logs: {format: text, filter: 'inof,hyper=loud'}
";
    assert_snapshot!(problems(&toolyard(text.trim())), @"
    tools.yaml:5:13: spec.telemetry.prefix: `my-yard` is not a prefix of metrics
      expected a letter, then letters, digits, `_` and `.`, up to 64 in all
    tools.yaml:6:22: spec.telemetry.otlp.endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    tools.yaml:6:50: spec.telemetry.otlp.protocol: `thrift` is not a known protocol
      expected one of grpc, http
    tools.yaml:6:68: spec.telemetry.otlp.headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of message framing and routing itself
    tools.yaml:6:88: spec.telemetry.otlp.interval: this is zero
      expected a duration above zero
    tools.yaml:7:22: spec.telemetry.traces.sample: this number is out of range
      expected a number from 0 to 1, such as 0.1
    tools.yaml:7:27: spec.telemetry.traces.sampler: unknown field
      expected sample
      hint: did you mean `sample`?
    tools.yaml:8:18: spec.logs.format: `text` is not a known format of the log
      expected one of human, json
    tools.yaml:8:32: spec.logs.filter: `inof,hyper=loud` is not a filter of the log
      expected off, error, warn, info, debug or trace, for all or for a target, as in `info,toolyard_mcp=debug`
    ");
    assert_snapshot!(problems(&toolyard("telemetry: {otlp: {}, traces: {sample: '0.1'}}")), @"
    tools.yaml:4:21: spec.telemetry.otlp.endpoint: this field is required
    tools.yaml:4:42: spec.telemetry.traces.sample: found a string
      expected a number from 0 to 1, such as 0.1
      hint: write the number without quotes
    ");
}
