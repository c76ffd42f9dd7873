//! Handlers of the type `bus`.

use insta::{assert_debug_snapshot, assert_snapshot};

use super::{problems, registry, toolyard, valid};
use crate::{BusHandler, HandlerKind};

const BROKER: &str = "bus: {url: 'nats://me:hunter2@broker.example.com'}";

/// Returns a registry with one handler of the type `bus`, whose further fields begin on line 8.
fn workers(fields: &str) -> String {
    registry(&format!("  - name: workers\n    type: bus\n{fields}"))
}

#[track_caller]
fn handler(fields: &str) -> (BusHandler, String) {
    let manifest = valid(&format!("{}---\n{}", workers(fields), toolyard(BROKER)));
    let handler = manifest.handlers[0].clone();
    let endpoint = handler.endpoint();
    let HandlerKind::Bus(bus) = handler.kind else { panic!("another type") };
    (*bus, endpoint)
}

#[test]
fn groups_and_limits_have_defaults() {
    let (all, endpoint) = handler("");
    assert_eq!((all, &*endpoint), (BusHandler::default(), "bus://*"));
    let (some, endpoint) =
        handler("    busConfig: {groups: [east, west], missedAnnouncements: 5, maxWorkers: 10}\n");
    assert_debug_snapshot!((endpoint, some.groups, some.missed_announcements, some.max_workers), @r#"
    (
        "bus://east,west",
        [
            "east",
            "west",
        ],
        5,
        10,
    )
    "#);
}

#[test]
fn handler_without_a_broker_is_refused() {
    assert_snapshot!(problems(&workers("")), @"
    tools.yaml:6:5: spec.handlers[0]: `bus.url` is not set
      hint: set `bus.url` in the Toolyard document to the broker of the workers, such as nats://broker.example.com:4222
    ");
}

#[test]
fn fields_of_other_types_are_refused() {
    let check = |fields: &str| problems(&format!("{}---\n{}", workers(fields), toolyard(BROKER)));
    assert_snapshot!(check("    retries: 2\n    auth: {type: none}\n    tool: {}\n    endpoint: {}\n"), @"
    tools.yaml:8:5: spec.handlers[0].retries: `retries` does not belong here
      hint: the bus delivers a call again, `bus.redeliveries` times
    tools.yaml:9:5: spec.handlers[0].auth: `auth` does not belong here
      hint: `bus.url` has the credentials of the broker
    tools.yaml:10:5: spec.handlers[0].tool: `tool` does not belong here
      hint: it belongs to the types `http`, `grpc`, `function` and `cortexone`
    tools.yaml:11:5: spec.handlers[0].endpoint: `endpoint` does not belong here
      hint: it belongs to the types `http` and `grpc`
    ");
    assert_snapshot!(check("    busConfig: {groups: [], group: a, missedAnnouncements: 0, maxWorkers: 0}\n"), @"
    tools.yaml:8:25: spec.handlers[0].busConfig.groups: this list is empty
      expected at least one item
    tools.yaml:8:29: spec.handlers[0].busConfig.group: unknown field
      expected one of groups, missedAnnouncements, maxWorkers
      hint: did you mean `groups`?
    tools.yaml:8:60: spec.handlers[0].busConfig.missedAnnouncements: this number is out of range
      expected a whole number from 1 to 100
    tools.yaml:8:75: spec.handlers[0].busConfig.maxWorkers: this number is out of range
      expected a whole number from 1 to 1000000000
    ");
    assert_snapshot!(check("    busConfig: {groups: [a.b]}\n"), @"
    tools.yaml:8:26: spec.handlers[0].busConfig.groups[0]: `a.b` is not a name on a message bus
      expected at most 64 letters, digits, `-` and `_`, such as rockbot
    ");
}
