//! `prefix` and `overrides`.

use insta::{assert_debug_snapshot, assert_snapshot};
use serde_json::json;

use super::{SECRET, handler, problems, registry, valid};
use crate::{Argument, Override};

/// The fields of a handler that uses all of them.
pub(super) const EVERYTHING: &str = "prefix: always
    overrides:
      convert_time:
        name: to_my_time
        title: My time
        description: What time it is here.
        arguments:
          zone: {pin: \"${TOKEN}\"}
          when: {default: [now, 1.5], description: The time.}
      fs.delete: {hide: true}";

#[test]
fn everything() {
    let manifest = valid(&handler(EVERYTHING));
    let handler = &manifest.handlers[0];
    let Override::Change(change) = &handler.overrides[0].1 else { panic!("{handler:?}") };
    let when =
        Argument::Show { default: Some(json!(["now", 1.5])), description: Some("The time.".to_owned()) };
    let arguments = [("zone".to_owned(), Argument::Pin(json!(SECRET))), ("when".to_owned(), when)];
    assert_eq!(change.arguments, arguments);
    // What is pinned may be secret.
    assert_debug_snapshot!((handler.prefix, &handler.overrides), @r#"
    (
        Always,
        [
            (
                "convert_time",
                Change(
                    Change {
                        name: Some(
                            "to_my_time",
                        ),
                        title: Some(
                            "My time",
                        ),
                        description: Some(
                            "What time it is here.",
                        ),
                        arguments: [
                            (
                                "zone",
                                Pin,
                            ),
                            (
                                "when",
                                Show,
                            ),
                        ],
                        price: None,
                        chunking: Chunking {
                            structured: None,
                            threshold: None,
                        },
                    },
                ),
            ),
            (
                "fs.delete",
                Hide,
            ),
        ],
    )
    "#);
}

#[test]
fn a_handler_changes_nothing_unless_it_says_so() {
    let manifest = valid(&handler("overrides: {a: {hide: false, name: b}}"));
    assert_debug_snapshot!((manifest.handlers[0].prefix, &manifest.handlers[0].overrides), @r#"
    (
        OnClash,
        [
            (
                "a",
                Change(
                    Change {
                        name: Some(
                            "b",
                        ),
                        title: None,
                        description: None,
                        arguments: [],
                        price: None,
                        chunking: Chunking {
                            structured: None,
                            threshold: None,
                        },
                    },
                ),
            ),
        ],
    )
    "#);
    assert_eq!(valid(&handler("prefix: ~\n    overrides: ~")), valid(&handler("")));
}

#[test]
fn prefixes() {
    assert_snapshot!(problems(&handler("prefix: allways")), @"
    tools.yaml:9:13: spec.handlers[0].prefix: `allways` is not a known prefix
      expected one of on-clash, always, never
      hint: did you mean `always`?
    ");
    assert_snapshot!(problems(&handler("prefix: false")), @"
    tools.yaml:9:13: spec.handlers[0].prefix: found a boolean
      expected a string
      hint: put it in quotes
    ");
}

#[test]
fn overrides() {
    assert_snapshot!(problems(&handler("overrides: [a]")), @"
    tools.yaml:9:16: spec.handlers[0].overrides: found a list
      expected an object
    ");
    assert_snapshot!(problems(&handler("overrides: {a: b, c: ~, '': {hide: true}}")), @r#"
    tools.yaml:9:20: spec.handlers[0].overrides.a: found a string
      expected an object
    tools.yaml:9:26: spec.handlers[0].overrides.c: found nothing (null)
      expected an object
    tools.yaml:9:29: spec.handlers[0].overrides[""]: `` is not the name of a tool or of an argument
      expected at least one character
    "#);
    assert_snapshot!(problems(&handler("overrides: {a: {}, b: {arguments: {}}, c: {arguments: {x: {}}}, d: {name: ~}}")), @"
    tools.yaml:9:20: spec.handlers[0].overrides.a: this changes nothing
    tools.yaml:9:39: spec.handlers[0].overrides.b.arguments: this changes nothing
    tools.yaml:9:63: spec.handlers[0].overrides.c.arguments.x: this changes nothing
    tools.yaml:9:72: spec.handlers[0].overrides.d: this changes nothing
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {nam: b, hidden: true}}")), @"
    tools.yaml:9:21: spec.handlers[0].overrides.a.nam: unknown field
      expected one of hide, name, title, description, arguments, price, chunk, chunkThreshold
      hint: did you mean `name`?
    tools.yaml:9:29: spec.handlers[0].overrides.a.hidden: unknown field
      expected one of hide, name, title, description, arguments, price, chunk, chunkThreshold
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {hide: yes}, b: {description: 7}}")), @"
    tools.yaml:9:27: spec.handlers[0].overrides.a.hide: found a string
      expected true or false
      hint: a boolean has no quotes, and `yes` is not one
    tools.yaml:9:50: spec.handlers[0].overrides.b.description: found a number
      expected a string
      hint: put it in quotes
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {hide: true}, a: {name: b}}")), @"
    tools.yaml:9:34: spec.handlers[0].overrides.a: `a` is given twice
      hint: it was first given at 9:17
    ");
}

#[test]
fn hide_stands_alone() {
    assert_snapshot!(problems(&handler("overrides: {a: {hide: true, name: b, arguments: {x: {pin: 1}}, colour: 1}}")), @"
    tools.yaml:9:33: spec.handlers[0].overrides.a.name: `name` does not belong here
      hint: nobody sees this of a hidden tool
    tools.yaml:9:42: spec.handlers[0].overrides.a.arguments: `arguments` does not belong here
      hint: nobody sees this of a hidden tool
    tools.yaml:9:68: spec.handlers[0].overrides.a.colour: unknown field
      expected hide
    ");
}

#[test]
fn names() {
    assert_snapshot!(problems(&handler("overrides: {a: {name: fs.read}, b: {name: ''}, c: {name: '${TOKEN}ü'}}")), @"
    tools.yaml:9:27: spec.handlers[0].overrides.a.name: `fs.read` is not a name that models can call
      expected at most 64 letters, digits, `_` and `-`, such as get_user
    tools.yaml:9:47: spec.handlers[0].overrides.b.name: `` is not a name that models can call
      expected at most 64 letters, digits, `_` and `-`, such as get_user
    tools.yaml:9:62: spec.handlers[0].overrides.c.name: `${TOKEN}ü` is not a name that models can call
      expected at most 64 letters, digits, `_` and `-`, such as get_user
    ");
    let long = "a".repeat(65);
    assert_snapshot!(problems(&handler(&format!("overrides: {{a: {{name: {long}}}}}"))), @"
    tools.yaml:9:27: spec.handlers[0].overrides.a.name: `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a name that models can call
      expected at most 64 letters, digits, `_` and `-`, such as get_user
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {name: x}, b: {name: x}, c: {name: y}}")), @"
    tools.yaml:9:41: spec.handlers[0].overrides.b.name: a second tool of this name in this handler
      hint: the first one is at tools.yaml:9:27: spec.handlers[0].overrides.a.name
    ");
    // In two handlers it is a clash like others, which the order of the manifest decides.
    let entry = |name: &str| {
        format!(
            "  - {{name: {name}, type: mcp, mcpConfig: {{transport: stdio, command: x}}, overrides: {{a: {{name: x}}}}}}\n"
        )
    };
    valid(&registry(&(entry("one") + &entry("two"))));
}

#[test]
fn arguments() {
    assert_snapshot!(problems(&handler("overrides: {a: {arguments: {x: {pin: 1, default: 2, description: y}}}}")), @"
    tools.yaml:9:45: spec.handlers[0].overrides.a.arguments.x.default: `default` does not belong here
      hint: callers do not see an argument that has a `pin`
    tools.yaml:9:57: spec.handlers[0].overrides.a.arguments.x.description: `description` does not belong here
      hint: callers do not see an argument that has a `pin`
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {arguments: {x: {default: .inf, pinn: 2}, y: 1, z: {pin: ~}}}}")), @"
    tools.yaml:9:46: spec.handlers[0].overrides.a.arguments.x.default: JSON has no such number
      expected a finite decimal number
    tools.yaml:9:52: spec.handlers[0].overrides.a.arguments.x.pinn: unknown field
      expected one of pin, default, description
      hint: did you mean `pin`?
    tools.yaml:9:65: spec.handlers[0].overrides.a.arguments.y: found a number
      expected an object
    tools.yaml:9:71: spec.handlers[0].overrides.a.arguments.z: this changes nothing
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {arguments: {x: {pin: '${MISSING}'}}}}")), @"
    tools.yaml:9:42: spec.handlers[0].overrides.a.arguments.x.pin: the environment variable `MISSING` is not set
      hint: `${NAME}` stands for an environment variable, and `$${` for the characters `${`
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {arguments: [x]}}")), @"
    tools.yaml:9:32: spec.handlers[0].overrides.a.arguments: found a list
      expected an object
    ");
}
