use proptest::prelude::*;
use serde_json::Value;

use super::*;

const GUID: &str = "0123456789abcdef0123456789abcdef";

fn script() -> PythonScript {
    PythonScript {
        call_id: "Call_4711-äb".to_owned(),
        source: "print('$(HOME) costs 5$$')".to_owned(),
        input: Some("{\"a\": 1}".to_owned()),
        timeout: Duration::from_millis(29_500),
        packages: Vec::new(),
        trace_parent: None,
    }
}

fn with_packages() -> PythonScript {
    PythonScript { packages: vec!["numpy".to_owned(), "requests>=2".to_owned()], ..script() }
}

/// Formats the request with the names of embedded files, and short values on one line.
fn format_json(sent: &Value) -> String {
    let mut text = String::new();
    write(&mut text, sent, 0);
    text
}

fn write(text: &mut String, value: &Value, depth: usize) {
    let line = [(NETWORK_FILTER, "\"<network_filter.py>\""), (PIP_WHEELS_ONLY, "\"<wheels.py>\"")]
        .into_iter()
        .fold(value.to_string(), |line, (file, name)| {
            line.replace(&serde_json::to_string(file).unwrap(), name)
        });
    if line.len() <= 90 || !(value.is_object() || value.is_array()) {
        return text.push_str(&line);
    }
    let items: Vec<_> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (format!("{name:?}: "), value)).collect()
        }
        _ => value.as_array().unwrap().iter().map(|value| (String::new(), value)).collect(),
    };
    text.push_str(if value.is_object() { "{" } else { "[" });
    for (name, value) in items {
        text.push_str(&format!("\n{}{name}", "  ".repeat(depth + 1)));
        write(text, value, depth + 1);
    }
    text.push_str(&format!("\n{}{}", "  ".repeat(depth), if value.is_object() { "}" } else { "]" }));
}

fn sent(script: &PythonScript, options: &PodOptions) -> Value {
    serde_json::to_value(pod(script, options, GUID)).unwrap()
}

#[test]
fn pod_of_a_script() {
    insta::assert_snapshot!(format_json(&sent(&script(), &PodOptions::default())), @r#"
    {
      "apiVersion": "v1"
      "kind": "Pod"
      "metadata": {
        "labels": {
          "app": "rockbot-script"
          "app.kubernetes.io/managed-by": "toolyard"
          "rockbot.dev/tool-call-id": "Call_4711--b"
          "toolyard.dev/gateway": "toolyard"
          "toolyard.dev/network": "none"
        }
        "name": "rockbot-script-call-471-0123456789abcdef0123456789abcdef"
        "namespace": "rockbot-scripts"
      }
      "spec": {
        "activeDeadlineSeconds": 30
        "automountServiceAccountToken": false
        "containers": [
          {
            "command": ["python","-I","-c","<network_filter.py>"]
            "env": [
              {"name":"HOME","value":"/tmp"}
              {"name":"PYTHONDONTWRITEBYTECODE","value":"1"}
              {"name":"PYTHONUNBUFFERED","value":"1"}
              {"name":"ROCKBOT_SCRIPT","value":"print('$$(HOME) costs 5$$$$')"}
              {"name":"ROCKBOT_INPUT","value":"{\"a\": 1}"}
              {"name":"TOOLYARD_INPUT","value":"{\"a\": 1}"}
            ]
            "image": "python:3.12-slim"
            "name": "script"
            "resources": {"limits":{"cpu":"500m","ephemeral-storage":"1Gi","memory":"256Mi"}}
            "securityContext": {
              "allowPrivilegeEscalation": false
              "capabilities": {"drop":["ALL"]}
              "readOnlyRootFilesystem": true
            }
            "volumeMounts": [{"mountPath":"/tmp","name":"scratch"}]
          }
        ]
        "enableServiceLinks": false
        "restartPolicy": "Never"
        "securityContext": {
          "runAsGroup": 1000
          "runAsNonRoot": true
          "runAsUser": 1000
          "seccompProfile": {"type":"RuntimeDefault"}
        }
        "terminationGracePeriodSeconds": 1
        "volumes": [{"emptyDir":{"sizeLimit":"64Mi"},"name":"scratch"}]
      }
    }
    "#);
}

#[test]
fn package_container_has_no_script() {
    let sent = sent(&with_packages(), &PodOptions::default());
    let installer = &sent["spec"]["initContainers"][0];
    insta::assert_snapshot!(format_json(installer), @r#"
    {
      "command": [
        "python"
        "-I"
        "-c"
        "<wheels.py>"
        "install"
        "--no-input"
        "--no-cache-dir"
        "--disable-pip-version-check"
        "--only-binary=:all:"
        "--progress-bar"
        "off"
        "--target"
        "/tmp/pypackages"
        "--"
        "numpy"
        "requests>=2"
      ]
      "env": [{"name":"HOME","value":"/tmp"},{"name":"PYTHONDONTWRITEBYTECODE","value":"1"}]
      "image": "python:3.12-slim"
      "name": "packages"
      "resources": {"limits":{"cpu":"500m","ephemeral-storage":"1Gi","memory":"256Mi"}}
      "securityContext": {
        "allowPrivilegeEscalation": false
        "capabilities": {"drop":["ALL"]}
        "readOnlyRootFilesystem": true
      }
      "volumeMounts": [{"mountPath":"/tmp","name":"scratch"},{"mountPath":"/tmp/pypackages","name":"packages"}]
    }
    "#);
    let container = &sent["spec"]["containers"][0];
    let part = serde_json::json!({
        "labels": sent["metadata"]["labels"],
        "deadline": sent["spec"]["activeDeadlineSeconds"],
        "env": container["env"],
        "mounts": container["volumeMounts"],
        "volumes": sent["spec"]["volumes"],
    });
    insta::assert_snapshot!(format_json(&part), @r#"
    {
      "labels": {
        "app": "rockbot-script"
        "app.kubernetes.io/managed-by": "toolyard"
        "rockbot.dev/tool-call-id": "Call_4711--b"
        "toolyard.dev/gateway": "toolyard"
        "toolyard.dev/network": "egress"
      }
      "deadline": 330
      "env": [
        {"name":"HOME","value":"/tmp"}
        {"name":"PYTHONDONTWRITEBYTECODE","value":"1"}
        {"name":"PYTHONUNBUFFERED","value":"1"}
        {"name":"ROCKBOT_SCRIPT","value":"print('$$(HOME) costs 5$$$$')"}
        {"name":"ROCKBOT_INPUT","value":"{\"a\": 1}"}
        {"name":"TOOLYARD_INPUT","value":"{\"a\": 1}"}
        {"name":"PYTHONPATH","value":"/tmp/pypackages"}
      ]
      "mounts": [
        {"mountPath":"/tmp","name":"scratch"}
        {"mountPath":"/tmp/pypackages","name":"packages","readOnly":true}
      ]
      "volumes": [
        {"emptyDir":{"sizeLimit":"64Mi"},"name":"scratch"}
        {"emptyDir":{"sizeLimit":"512Mi"},"name":"packages"}
      ]
    }
    "#);
}

#[test]
fn options_appear_in_the_pod() {
    let options = PodOptions {
        namespace: "scripts".to_owned(),
        prefix: "yard".to_owned(),
        call_label: "example.com/call".to_owned(),
        gateway: "second".to_owned(),
        image: "registry.example/python:3".to_owned(),
        image_pull_secret: Some("pull".to_owned()),
        runtime_class: Some("gvisor".to_owned()),
        cpu: "1".to_owned(),
        memory: "1Gi".to_owned(),
        scratch: "1Mi".to_owned(),
        packages: "2Mi".to_owned(),
        disk: "3Mi".to_owned(),
        allow_network: true,
        package_index: Some("https://packages.example/simple".to_owned()),
        install_time: Duration::from_secs(10),
        start_time: Duration::from_secs(7),
        ..PodOptions::default()
    };
    let usual = format_json(&sent(&with_packages(), &PodOptions::default()));
    let changed = format_json(&sent(&with_packages(), &options));
    let changed: Vec<_> = changed.lines().filter(|line| !usual.contains(line)).map(str::trim).collect();
    insta::assert_snapshot!(changed.join("\n"), @r#"
    "app": "yard"
    "example.com/call": "Call_4711--b"
    "toolyard.dev/gateway": "second"
    "name": "yard-call-471-0123456789abcdef0123456789abcdef"
    "namespace": "scripts"
    "activeDeadlineSeconds": 47
    "command": ["sh","-c","exec python -c \"$$ROCKBOT_SCRIPT\""]
    "image": "registry.example/python:3"
    "resources": {"limits":{"cpu":"1","ephemeral-storage":"3Mi","memory":"1Gi"}}
    "imagePullSecrets": [{"name":"pull"}]
    {"name":"PIP_INDEX_URL","value":"https://packages.example/simple"}
    "image": "registry.example/python:3"
    "resources": {"limits":{"cpu":"1","ephemeral-storage":"3Mi","memory":"1Gi"}}
    "runtimeClassName": "gvisor"
    {"emptyDir":{"sizeLimit":"1Mi"},"name":"scratch"}
    {"emptyDir":{"sizeLimit":"2Mi"},"name":"packages"}
    "#);
}

#[test]
fn packages_are_built_if_permitted() {
    let options = PodOptions { build_from_source: true, ..PodOptions::default() };
    let sent = sent(&with_packages(), &options);
    let command = &sent["spec"]["initContainers"][0]["command"];
    let expected =
        ["python", "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"];
    assert_eq!(command.as_array().unwrap()[..7], expected);
    assert!(!command.to_string().contains("--only-binary"), "{command}");
}

#[test]
fn names_and_labels_are_valid() {
    let check = |call_id: &str, name: &str, label: &str| {
        let pod =
            pod(&PythonScript { call_id: call_id.to_owned(), ..script() }, &PodOptions::default(), GUID);
        assert_eq!(pod.metadata.name.unwrap(), format!("rockbot-script-{name}-{GUID}"), "{call_id}");
        assert_eq!(pod.metadata.labels.unwrap()["rockbot.dev/tool-call-id"], label, "{call_id}");
    };
    check("call_4711", "call-471", "call_4711");
    check("ABC", "abc", "ABC");
    check("", "", "");
    check("--__--", "------", "");
    check("../../x y", "------x-", "x-y");
    check(&"é1".repeat(50), "-1-1-1-1", &"1-".repeat(31)[..61]);
}

#[test]
fn longest_prefix_leaves_room_for_the_number() {
    let options = PodOptions { prefix: "p".repeat(21), ..PodOptions::default() };
    options.check().unwrap();
    let name = pod(&script(), &options, GUID).metadata.name.unwrap();
    assert_eq!(name.len(), 63);
    assert!(name.ends_with(GUID), "{name}");
}

#[test]
fn invalid_name_options_are_refused() {
    let check = |prefix: &str| {
        let options = PodOptions { prefix: prefix.to_owned(), ..PodOptions::default() };
        assert!(options.check().is_err(), "{prefix}");
    };
    for prefix in ["", "A", "1a", "a-", "a_b", "a.b", &"p".repeat(22)] {
        check(prefix);
    }
    let silent = [
        PodOptions { concurrent: 0, ..PodOptions::default() },
        PodOptions { concurrent: usize::MAX, ..PodOptions::default() },
        PodOptions { output_bytes: 0, ..PodOptions::default() },
    ];
    for options in silent {
        assert!(options.check().is_err(), "{options:?}");
    }
}

#[test]
fn deadline_is_rounded_up_and_at_most_a_day() {
    let check = |millis, seconds| {
        let script = PythonScript { timeout: Duration::from_millis(millis), ..script() };
        assert_eq!(deadline(&script, &PodOptions::default()).as_secs(), seconds, "{millis} ms");
    };
    check(0, 1);
    check(1, 1);
    check(1000, 1);
    check(1001, 2);
    check(300_000, 300);
    check(u64::MAX, 24 * 60 * 60);
}

#[test]
fn script_unfit_for_a_pod_is_refused() {
    let check = |script: PythonScript, expected: &str| {
        let message = super::check(&script).map_or_else(|error| error.to_string(), |()| "fine".to_owned());
        assert_eq!(message, expected);
    };
    let text = |length| "x".repeat(length);
    check(script(), "fine");
    check(with_packages(), "fine");
    check(PythonScript { source: text(131_056), ..script() }, "fine");
    check(PythonScript { source: text(131_057), ..script() }, "The script is longer than 131056 bytes");
    check(PythonScript { input: Some(text(131_057)), ..script() }, "The input is longer than 131056 bytes");
    check(PythonScript { source: "a\0".to_owned(), ..script() }, "The script has a zero character");
    check(PythonScript { input: Some("\0".to_owned()), ..script() }, "The input has a zero character");
    let package = |package: &str| PythonScript { packages: vec![package.to_owned()], ..script() };
    check(package("--index-url=http://x"), "Invalid requirement: --index-url=http://x");
    check(package(" -r/etc/passwd"), "Invalid requirement:  -r/etc/passwd");
    check(package("./x"), "Invalid requirement: ./x");
    check(package(""), "Invalid requirement: ");
    check(package("a\nb"), "Invalid requirement: a\\nb");
    check(package("a --pre"), "Invalid requirement: a --pre");
    check(package("a @ http://x"), "Invalid requirement: a @ http://x");
    check(package("a/b.whl"), "Invalid requirement: a/b.whl");
    check(package("a\\b"), "Invalid requirement: a\\\\b");
    check(package("a[b]>=1,<2 ; os_name == '/@'"), "fine");
    let many = PythonScript { packages: vec!["a".to_owned(); 101], ..script() };
    check(many, "A script has at most 100 packages");
}

/// Expands a value as a kubelet does, according to the documentation of Kubernetes.
fn expanded(value: &str, variables: &[(&str, &str)]) -> String {
    let (mut rest, mut text) = (value, String::new());
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        rest = match (after.strip_prefix('$'), after.strip_prefix('(').and_then(|name| name.split_once(')')))
        {
            (Some(escaped), _) => {
                text.push('$');
                escaped
            }
            (None, Some((name, behind))) => {
                let variable = variables.iter().find(|(known, _)| *known == name);
                text.push_str(
                    &variable.map_or_else(|| format!("$({name})"), |(_, value)| (*value).to_owned()),
                );
                behind
            }
            (None, None) => {
                text.push('$');
                after
            }
        };
    }
    text + rest
}

fn value_of(pod: &Pod, name: &str) -> String {
    let env = pod.spec.as_ref().unwrap().containers[0].env.as_ref().unwrap();
    env.iter().find(|variable| variable.name == name).unwrap().value.clone().unwrap()
}

#[test]
fn unescaped_script_would_be_expanded() {
    assert_eq!(expanded("$(HOME) $$ $(X) $x $", &[("HOME", "/tmp")]), "/tmp $ $(X) $x $");
}

proptest! {
    #[test]
    fn script_and_input_are_preserved(text in r"([$()]|HOME|ROCKBOT_SCRIPT|\PC){0,40}") {
        let script = PythonScript { source: text.clone(), input: Some(text.clone()), ..script() };
        let pod = pod(&script, &PodOptions::default(), GUID);
        let variables = [("HOME", "/tmp"), ("ROCKBOT_SCRIPT", "secret")];
        for name in ["ROCKBOT_SCRIPT", "ROCKBOT_INPUT", "TOOLYARD_INPUT"] {
            prop_assert_eq!(expanded(&value_of(&pod, name), &variables), text.as_str());
        }
    }

    #[test]
    fn any_call_id_gives_a_valid_name_and_label(call_id in r"\PC{0,80}") {
        let pod = pod(&PythonScript { call_id, ..script() }, &PodOptions::default(), GUID);
        let name = pod.metadata.name.unwrap();
        let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        prop_assert!(name.len() <= 63 && name.bytes().all(is_name) && !name.ends_with('-'), "{}", name);
        let label = &pod.metadata.labels.unwrap()["rockbot.dev/tool-call-id"];
        let is_label = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let ends = [label.bytes().next(), label.bytes().last()];
        let ends_well = ends.into_iter().flatten().all(|b| b.is_ascii_alphanumeric());
        prop_assert!(label.len() <= 63 && label.bytes().all(is_label) && ends_well, "{}", label);
    }
}

#[test]
fn commands_contain_no_variable_references() {
    for command in [NETWORK_FILTER, PIP_WHEELS_ONLY, UNFILTERED_COMMAND] {
        assert_eq!(expanded(&literal(command), &[("ROCKBOT_SCRIPT", "x")]), command);
    }
}

#[test]
fn variables_are_empty_without_input() {
    let pod = pod(&PythonScript { input: None, ..script() }, &PodOptions::default(), GUID);
    let value: Value = serde_json::to_value(&pod).unwrap();
    let env = value["spec"]["containers"][0]["env"].as_array().unwrap();
    let inputs: Vec<_> =
        env.iter().filter(|variable| variable["name"].as_str().unwrap().ends_with("_INPUT")).collect();
    assert_eq!(inputs.len(), 2);
    assert!(inputs.iter().all(|variable| variable["value"] == ""));
}
