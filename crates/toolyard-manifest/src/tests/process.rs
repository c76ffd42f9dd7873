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
fn schedule_settings() {
    let schedules = "timeZone: Berlin, minInterval: 0s, missed: twice, history: 0";
    let webhook = "{url: hooks.example.com, secret: short}";
    for action in [
        "{}",
        "{tool: null}",
        "{tool: {name: t, arguments: {}}, webhook: {url: 'https://a', secret: 0123456789abcdef0123456789abcdef}}",
    ] {
        let problems = problems(&toolyard(&format!("builtins: {{schedules: {{action: {action}}}}}")));
        assert!(problems.contains("spec.builtins.schedules.action: not exactly one action"), "{problems}");
    }
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{schedules: {{{schedules}, action: {{webhook: {webhook}}}}}}}"))), @"
    tools.yaml:4:36: spec.builtins.schedules.timeZone: `Berlin` is not a time zone
      expected a name of the IANA database, such as Europe/Berlin or UTC
    tools.yaml:4:57: spec.builtins.schedules.minInterval: this is zero
      expected a duration above zero
    tools.yaml:4:69: spec.builtins.schedules.missed: `twice` is not a known treatment of missed runs
      expected one of skip, once
    tools.yaml:4:85: spec.builtins.schedules.history: this number is out of range
      expected a whole number from 1 to 1000
    tools.yaml:4:112: spec.builtins.schedules.action.webhook.url: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    tools.yaml:4:139: spec.builtins.schedules.action.webhook.secret: this is not a secret that cannot be guessed
      expected at least 24 characters, such as `openssl rand -hex 32` prints
    ");
    for (builtins, is_on) in
        [("{}", false), ("{schedules: {enabled: false}}", false), ("{schedules: {}}", true)]
    {
        let process = valid(&toolyard(&format!("builtins: {builtins}"))).process;
        assert_eq!(process.builtins.unwrap().schedules.is_some(), is_on, "{builtins}");
    }
}

#[test]
fn subagent_settings() {
    let llm = "llm: {baseURL: 'https://llm.example/v1', model: small}";
    let limits = "concurrent: 0, timeout: 0s, taskBytes: 1, concurrentCalls: 17, replyTokens: 0, cost: free";
    assert_snapshot!(problems(&toolyard(&format!("{llm}\nbuiltins: {{subagents: {{{limits}}}}}"))), @"
    tools.yaml:5:38: spec.builtins.subagents.concurrent: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:5:50: spec.builtins.subagents.timeout: this is zero
      expected a duration above zero
    tools.yaml:5:65: spec.builtins.subagents.taskBytes: this is too small
      expected a size of 1024 or more
    tools.yaml:5:85: spec.builtins.subagents.concurrentCalls: this number is out of range
      expected a whole number from 1 to 16
    tools.yaml:5:102: spec.builtins.subagents.replyTokens: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:5:111: spec.builtins.subagents.cost: `free` is not a price
      expected a number with at most 6 decimals, in quotes, such as '0.25'
    ");
    // Without an endpoint the model is that of the client, which chooses it.
    assert_snapshot!(problems(&toolyard("builtins: {subagents: {model: tiny}}")), @"
    tools.yaml:4:33: spec.builtins.subagents.model: `llm` is not set
      hint: set `llm` in the Toolyard document to the endpoint of a language model
    ");
    for (builtins, is_on) in
        [("{}", false), ("{subagents: {enabled: false}}", false), ("{subagents: {}}", true)]
    {
        for llm in ["", llm] {
            let process = valid(&toolyard(&format!("{llm}\nbuiltins: {builtins}"))).process;
            assert_eq!(process.builtins.unwrap().subagents.is_some(), is_on, "{builtins}");
        }
    }
}

#[test]
fn wisp_settings() {
    assert_snapshot!(problems(&toolyard("builtins: {wisps: {batch: 11, steps: 0, outputBytes: 1, repeats: 0, ttl: 0s}}")), @"
    tools.yaml:4:29: spec.builtins.wisps.batch: this number is out of range
      expected a whole number from 1 to 10
    tools.yaml:4:40: spec.builtins.wisps.steps: this number is out of range
      expected a whole number from 1 to 50
    tools.yaml:4:56: spec.builtins.wisps.outputBytes: this is too small
      expected a size of 4096 or more
    tools.yaml:4:68: spec.builtins.wisps.repeats: this number is out of range
      expected a whole number from 1 to 1000
    tools.yaml:4:76: spec.builtins.wisps.ttl: this is zero
      expected a duration above zero
    ");
    assert_snapshot!(problems(&toolyard("builtins: {memory: {enabled: false}, wisps: {}}")), @"
    tools.yaml:4:13: spec.builtins: `wisps` is enabled without `memory`, where its steps put their outputs
      hint: remove `enabled: false` of `memory`, or the section `wisps`
    ");
    for (builtins, is_on) in [("{}", false), ("{wisps: {enabled: false}}", false), ("{wisps: {}}", true)] {
        let process = valid(&toolyard(&format!("builtins: {builtins}"))).process;
        assert_eq!(process.builtins.unwrap().wisps.is_some(), is_on, "{builtins}");
    }
}

#[test]
fn agent_settings() {
    let card = "{url: agents.example.com, endpoint: 'https://me@a', headers: {Host: x}}";
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{agents: {{cards: [{card}], poll: 0s, history: 0}}}}"))), @"
    tools.yaml:4:37: spec.builtins.agents.cards[0].url: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: the scheme is missing: put `http://` or `https://` in front
    tools.yaml:4:67: spec.builtins.agents.cards[0].endpoint: this is not an endpoint
      expected a URL such as https://mcp.example.com/mcp
      hint: remove the user name and password: URLs appear in logs
    tools.yaml:4:93: spec.builtins.agents.cards[0].headers.Host: `Host` is not the name of a header to set
      expected a name such as X-Api-Key
      hint: the gateway sets the headers of message framing and routing itself
    tools.yaml:4:111: spec.builtins.agents.poll: this is zero
      expected a duration above zero
    tools.yaml:4:124: spec.builtins.agents.history: this number is out of range
      expected a whole number from 1 to 1000
    ");
    for (builtins, is_on) in [("{}", false), ("{agents: {enabled: false}}", false), ("{agents: {}}", true)] {
        let process = valid(&toolyard(&format!("builtins: {builtins}"))).process;
        assert_eq!(process.builtins.unwrap().agents.is_some(), is_on, "{builtins}");
    }
}

#[test]
fn keys_of_agent_cards() {
    let check = |signature: &str, expected: &str| {
        let card = format!("{{url: 'https://a.example', signature: {signature}}}");
        let problems = problems(&toolyard(&format!("builtins: {{agents: {{cards: [{card}]}}}}")));
        assert!(problems.contains(expected), "{problems}");
    };
    let none = "spec.builtins.agents.cards[0].signature: there are no keys\n  hint: give `url`, `keys` or both, or leave";
    check("{}", none);
    check("{keys: []}", none);
    check(
        "{keys: [x]}",
        "spec.builtins.agents.cards[0].signature.keys[0]: found a string\n  expected an object",
    );
    check("{url: jwks.json}", "spec.builtins.agents.cards[0].signature.url: this is not an endpoint");
}

#[test]
fn script_settings() {
    let code = "timeout: 0s, memory: 1MiB, codeBytes: 1, calls: 0, concurrentCalls: 101";
    assert_snapshot!(problems(&toolyard(&format!("builtins: {{code: {{{code}}}}}"))), @"
    tools.yaml:4:30: spec.builtins.code.timeout: this is zero
      expected a duration above zero
    tools.yaml:4:42: spec.builtins.code.memory: this is too small
      expected a size of 33554432 or more
    tools.yaml:4:59: spec.builtins.code.codeBytes: this is too small
      expected a size of 1024 or more
    tools.yaml:4:69: spec.builtins.code.calls: this number is out of range
      expected a whole number from 1 to 1000000000
    tools.yaml:4:89: spec.builtins.code.concurrentCalls: this number is out of range
      expected a whole number from 1 to 100
    ");
    for (builtins, is_on) in [("{}", false), ("{code: {enabled: false}}", false), ("{code: {}}", true)] {
        let process = valid(&toolyard(&format!("builtins: {builtins}"))).process;
        assert_eq!(process.builtins.unwrap().code.is_some(), is_on, "{builtins}");
    }
    valid(&toolyard("builtins: {code: {}, search: {disclosure: code}}"));
    assert_snapshot!(problems(&toolyard("builtins: {search: {disclosure: code}}")), @"
    tools.yaml:4:35: spec.builtins.search.disclosure: `disclosure: code` needs the scripts of `builtins.code`
      hint: add `code: {}` to `builtins`, or choose `search`
    ");
    assert_snapshot!(problems(&toolyard("builtins: {code: {enabled: false}, search: {disclosure: code}}")), @"
    tools.yaml:4:59: spec.builtins.search.disclosure: `disclosure: code` needs the scripts of `builtins.code`
      hint: add `code: {}` to `builtins`, or choose `search`
    ");
}

#[test]
fn settings_of_the_gateway_as_an_agent() {
    let check = |settings: &str, expected: &str| {
        let problems = problems(&toolyard(&format!("a2a: {settings}")));
        assert!(problems.contains(expected), "{problems}");
    };
    check(
        "{name: ' x', skills: []}",
        "tools.yaml:4:15: spec.a2a.name: ` x` is not a name of an agent or a skill",
    );
    check("{name: x}", "spec.a2a.skills: this field is required");
    check("{skills: []}", "spec.a2a.skills: ");
    check("{skills: [{tool: run}]}", "spec.a2a.skills[0].description: this field is required");
    check("{skills: [], taskTtl: 0s}", "spec.a2a.taskTtl: this is zero");
    let twice = "{skills: [{tool: run, description: a}, {tool: x, id: RUN, description: b}]}";
    check(twice, "spec.a2a.skills: two skills have the id `RUN`\n  hint: give one of them another `id`");
    check("{push: {perTask: 0}}", "spec.a2a.push.perTask: this number is out of range");
    check("{push: {attempts: 21}}", "spec.a2a.push.attempts: this number is out of range");
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
      expected one of local, kubernetes, bus
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
      expected one of scripts, memory, results, guides, skills, search, mcp, openRouter, web, schedules, agents, subagents, wisps, code
      hint: did you mean `search`?
    "#);
    assert_snapshot!(problems(&toolyard("builtins: {scripts: true}")), @"
    tools.yaml:4:23: spec.builtins.scripts: found a boolean
      expected an object
    ");
}

#[test]
fn invalid_settings_of_openrouter_are_explained() {
    let check = |settings: &str| problems(&toolyard(&format!("builtins: {{openRouter: {settings}}}")));
    assert_snapshot!(check("{}"), @"tools.yaml:4:26: spec.builtins.openRouter.apiKey: this field is required");
    assert_snapshot!(check("{apiKey: ''}"), @"
    tools.yaml:4:35: spec.builtins.openRouter.apiKey: this is not a token
      expected visible ASCII characters without blanks
      hint: is the variable empty?
    ");
    assert_snapshot!(check("{apiKey: 'two words'}"), @"
    tools.yaml:4:35: spec.builtins.openRouter.apiKey: this is not a token
      expected visible ASCII characters without blanks
      hint: is the variable empty?
    ");
    assert_snapshot!(check("{apiKey: k, apiKeySecretRef: {name: a, key: b}}"), @"
    tools.yaml:4:27: spec.builtins.openRouter.apiKey: `apiKey` does not belong here
      hint: `apiKeySecretRef` already refers to the secret
    tools.yaml:4:55: spec.builtins.openRouter.apiKeySecretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    ");
    assert_snapshot!(check("{apiKeySecretRef: {name: a, key: b}}"), @"
    tools.yaml:4:44: spec.builtins.openRouter.apiKeySecretRef: `secretsDir` is not set
      hint: set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file `api/token` in it
    ");
    assert_snapshot!(check("{apiKey: 'file:absent'}"), @"
    tools.yaml:4:35: spec.builtins.openRouter.apiKey: this file cannot be read: No such file or directory (os error 2)
      expected `file:` and the path of a file, from the folder of the manifest
    ");
    assert_snapshot!(
        check("{apiKey: k, baseURL: 'https://a/b?key=c', timeout: 0s, responseBytes: 1KiB, concurrent: 0}"),
        @"
    tools.yaml:4:47: spec.builtins.openRouter.baseURL: this is not the base URL of an API
      expected a URL without a query, such as https://openrouter.ai/api/v1
      hint: remove the query
    tools.yaml:4:77: spec.builtins.openRouter.timeout: this is zero
      expected a duration above zero
    tools.yaml:4:96: spec.builtins.openRouter.responseBytes: this is too small
      expected a size of 65536 or more
    tools.yaml:4:114: spec.builtins.openRouter.concurrent: this number is out of range
      expected a whole number from 1 to 1000000000
    "
    );
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
      expected one of auto, all, search, code
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
      expected one of workers, requestBodyBytes, responseBytes, bytesInFlight, headerBytes, connections, connectionsPerAddress, sessions, sessionsPerOwner, concurrentCalls, concurrentCallsPerHandler, queuedCalls, queuedNotices, parkedCalls, tasks, replayBytes, listPage, queuedRecords, queuedRecordBytes, toolsPerHandler, jsonDepth, toolDescription, argumentDescription, exampleBytes, processes, lanesPerHandler, laneListBytes, processMemoryBytes, metricLabels, queuedSpans, storeQueue, storeConnections
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
      expected one of listen, grpc, console, tls, proxyProtocol, allowUnauthenticated, unauthenticatedAdmin, allowedHosts, allowedOrigins, secretsDir, store, cluster, bus, a2a, audit, sandbox, programs, functions, builtins, llm, limits, timeouts, telemetry, logs
      hint: did you mean `allowedHosts`?
    tools.yaml:8:5: spec.limits.conections: unknown field
      expected one of workers, requestBodyBytes, responseBytes, bytesInFlight, headerBytes, connections, connectionsPerAddress, sessions, sessionsPerOwner, concurrentCalls, concurrentCallsPerHandler, queuedCalls, queuedNotices, parkedCalls, tasks, replayBytes, listPage, queuedRecords, queuedRecordBytes, toolsPerHandler, jsonDepth, toolDescription, argumentDescription, exampleBytes, processes, lanesPerHandler, laneListBytes, processMemoryBytes, metricLabels, queuedSpans, storeQueue, storeConnections
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

#[test]
fn web_is_enabled_by_its_section_only() {
    let web = |fields: &str| valid(&toolyard(fields)).process.builtins.and_then(|builtins| builtins.web);
    assert_eq!(web("builtins: {}"), None);
    assert_eq!(web("builtins: {web: {enabled: false}}"), None);
    assert!(web("builtins: {web: {}}").is_some_and(|web| web.search_key().is_none()));
    assert!(web("builtins: {web: {apiKeyEnvVar: UNSET}}").is_some_and(|web| web.search_key().is_none()));
    let key = web("builtins: {web: {apiKeyEnvVar: TOKEN}}").and_then(|web| web.search_key().cloned());
    assert_eq!(key, Some(SecretString::new(super::SECRET_VALUE)));
}

#[test]
fn bus() {
    assert_snapshot!(problems(&toolyard("bus: {url: 'amqp://me:hunter2@', redeliveries: 101, exchange: a.b}")), @"
    tools.yaml:4:14: spec.bus.url: this is not the URL of a message broker
      expected a URL such as amqp://broker.example.com:5672 (RabbitMQ) or nats://broker.example.com:4222 (NATS)
    tools.yaml:4:50: spec.bus.redeliveries: this number is out of range
      expected a whole number from 0 to 100
    tools.yaml:4:65: spec.bus.exchange: `a.b` is not a name on a message bus
      expected at most 64 letters, digits, `-` and `_`, such as rockbot
    ");
    assert_snapshot!(problems(&toolyard("bus: {url: 'http://a', worker: {acknowledge: never, tools: ['a b']}}")), @"
    tools.yaml:4:14: spec.bus.url: this is not the URL of a message broker
      expected a URL such as amqp://broker.example.com:5672 (RabbitMQ) or nats://broker.example.com:4222 (NATS)
      hint: the scheme is one of amqp, amqps, nats, tls
    tools.yaml:4:48: spec.bus.worker.acknowledge: `never` is not a known time of an acknowledgement
      expected one of auto, before, after
    tools.yaml:4:63: spec.bus.worker.tools[0]: `a b` is not a pattern of tools
      expected `NAME` or `HANDLER/NAME`, where `*` stands for any characters
    ");
    assert_snapshot!(problems(&toolyard("bus: {worker: {key: abc, tools: [weather]}}")), @"
    tools.yaml:4:17: spec.bus.worker: `key` already decides the caller and its tools
      hint: remove `principal` and `tools`; `toolyard key create --scope` sets the tools
    ");
    let settings = valid(&toolyard("bus: {url: 'nats://me:hunter2@a:4222,nats://b'}")).process.bus;
    assert!(!format!("{settings:?}").contains("hunter2"));
}
