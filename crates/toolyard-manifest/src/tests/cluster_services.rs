//! Services of a cluster as handlers.

use std::fmt::Write;

use insta::assert_snapshot;
use serde_json::json;

use super::{handler, registry, valid};
use crate::{ClusterService, GrpcToolSettings, HandlerKind, SelectedServices, ServicePort};

/// A Service in the namespace `tools`: its name, labels, annotations and ports, as in `weather team=a path=/v1 http:80`.
fn service(text: &str) -> ClusterService {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap().to_owned();
    let mut service = ClusterService { name, namespace: "tools".to_owned(), ..ClusterService::default() };
    for word in words {
        if let Some((annotation, value)) = word.split_once("->") {
            let name = format!("omnia.altairalabs.ai/tool-{annotation}");
            service.annotations.insert(name, value.replace('+', " "));
        } else if let Some((label, value)) = word.split_once('=') {
            service.labels.insert(label.to_owned(), value.to_owned());
        } else {
            let (name, port) = word.split_once(':').unwrap();
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            service.ports.push(ServicePort { name, port: port.parse().unwrap() });
        }
    }
    service
}

/// Shows the handlers of these Services, and the notes.
fn select(selector: &str, services: &[&str]) -> String {
    let text = format!("  - name: platform-tools\n    timeout: 5s\n    selector: {selector}\n");
    let text = registry(&text).replace("name: agent-tools", "name: agent-tools, namespace: tools");
    let handler = valid(&text).handlers.remove(0);
    let services: Vec<_> = services.iter().map(|text| service(text)).collect();
    let SelectedServices { handlers, notes } = handler.select_services(&services).unwrap();
    let mut shown = String::new();
    for handler in handlers {
        let tool = match &handler.kind {
            HandlerKind::Http(http) => &http.tool,
            HandlerKind::Grpc(grpc) => match &grpc.tools {
                GrpcToolSettings::Defined(tool) => tool,
                GrpcToolSettings::Discovered(_) => panic!("no tool"),
            },
            _ => panic!("another kind"),
        };
        assert_eq!(tool.input_schema, json!({"type": "object"}));
        assert_eq!(handler.timeout.as_secs(), 5);
        let (kind, endpoint) = (handler.kind.name(), handler.endpoint());
        writeln!(shown, "{} {kind} {endpoint} {} {:?}", handler.name, tool.name, tool.description).unwrap();
    }
    for note in notes {
        writeln!(shown, "note: {note}").unwrap();
    }
    shown
}

const TEAM: &str = "{matchLabels: {team: platform}}";

#[test]
fn service_of_the_documentation_is_a_tool() {
    let labels = r#"{matchLabels: {omnia.altairalabs.ai/tool: "true"}}"#;
    let service = "weather-api omnia.altairalabs.ai/tool=true path->/v1/weather description->Get+weather+forecasts http:80";
    assert_snapshot!(select(labels, &[service]), @r#"platform-tools-weather-api http http://weather-api.tools.svc.cluster.local:80/v1/weather weather_api "Get weather forecasts""#);
}

#[test]
fn annotations_have_defaults() {
    assert_snapshot!(select(TEAM, &[
        "bare team=platform :80",
        "empty team=platform path-> description-> type-> :80",
        "typed team=platform type->http path->/a?b=c :81",
        "user-grpc team=platform type->grpc path->/ignored description->Users :50051",
    ]), @r#"
    platform-tools-bare http http://bare.tools.svc.cluster.local:80/ bare "bare"
    platform-tools-empty http http://empty.tools.svc.cluster.local:80/ empty "empty"
    platform-tools-typed http http://typed.tools.svc.cluster.local:81/a typed "typed"
    platform-tools-user-grpc grpc user-grpc.tools.svc.cluster.local:50051 user_grpc "Users"
    "#);
}

#[test]
fn labels_and_namespaces_decide() {
    let two = "{matchLabels: {team: platform, tier: gold}}";
    let services = [
        "a team=platform tier=gold :1",
        "b team=platform :1",
        "c tier=gold :1",
        "d team=platforms tier=gold :1",
    ];
    assert_snapshot!(select(two, &services), @r#"platform-tools-a http http://a.tools.svc.cluster.local:1/ a "a""#);
    assert_snapshot!(select("{matchLabels: {team: platform}, namespace: other}", &["a team=platform :1"]), @"");
    assert_snapshot!(select(TEAM, &[]), @"");
}

#[test]
fn several_services_are_several_tools() {
    assert_snapshot!(select(TEAM, &["c team=platform :3", "a team=platform :1", "b team=platform type->grpc :2"]), @r#"
    platform-tools-a http http://a.tools.svc.cluster.local:1/ a "a"
    platform-tools-b grpc b.tools.svc.cluster.local:2 b "b"
    platform-tools-c http http://c.tools.svc.cluster.local:3/ c "c"
    "#);
}

#[test]
fn ports_are_the_first_or_named() {
    let services = [
        "one team=platform http:80 admin:9000",
        "two team=platform admin:9001",
        "none team=platform",
        "bare team=platform :80",
    ];
    assert_snapshot!(select(TEAM, &services), @r#"
    platform-tools-bare http http://bare.tools.svc.cluster.local:80/ bare "bare"
    platform-tools-one http http://one.tools.svc.cluster.local:80/ one "one"
    platform-tools-two http http://two.tools.svc.cluster.local:9001/ two "two"
    note: the Service none: it has no port
    "#);
    assert_snapshot!(select("{matchLabels: {team: platform}, port: admin}", &services), @r#"
    platform-tools-one http http://one.tools.svc.cluster.local:9000/ one "one"
    platform-tools-two http http://two.tools.svc.cluster.local:9001/ two "two"
    note: the Service bare: it has no port of the name `admin`
    note: the Service none: it has no port of the name `admin`
    "#);
}

#[test]
fn unusable_services_are_noted() {
    let long = format!("{} team=platform :80", "a".repeat(63));
    let other_end = format!("{}b team=platform :80", "a".repeat(62));
    assert_snapshot!(select(TEAM, &[
        "a team=platform path->v1/weather :80",
        "b team=platform path->/v1#top :80",
        "c team=platform type->mcp :80",
        "d team=platform type->GRPC :80",
        "e team=platform path->/{arg}/${HOME} :80",
        "F_g team=platform :80",
        &long,
        &other_end,
    ]), @r#"
    platform-tools-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa http http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.tools.svc.cluster.local:80/ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    platform-tools-e http http://e.tools.svc.cluster.local:80/{arg}/${HOME} e "e"
    note: the Service F_g: the name `F_g` cannot be used: this is not the name of a service: expected at most 63 lower-case letters, digits and `-`, such as code-tools
    note: the Service a: the annotation omnia.altairalabs.ai/tool-path is `v1/weather`: begin it with `/`
    note: the Service aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab: another Service has a name that differs only in its end
    note: the Service b: the annotation omnia.altairalabs.ai/tool-path is `/v1#top`, which is no path of a URL
    note: the Service c: the annotation omnia.altairalabs.ai/tool-type is `mcp`: use `http` or `grpc`
    note: the Service d: the annotation omnia.altairalabs.ai/tool-type is `GRPC`: use `http` or `grpc`
    "#);
}

#[test]
fn handler_without_selector_selects_nothing() {
    let handler = valid(&handler("")).handlers.remove(0);
    assert_eq!(handler.select_services(&[service("a team=platform :80")]), None);
}
