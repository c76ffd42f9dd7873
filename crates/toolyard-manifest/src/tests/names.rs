//! `prefix`, `pin` and `overrides`.

use insta::{assert_debug_snapshot, assert_snapshot};
use serde_json::json;

use super::{SECRET_VALUE, handler, problems, registry, valid};
use crate::{ArgumentOverride, DefinitionPin, ToolOverride};

/// The fields of a handler that uses all of them.
pub(super) const ALL_FIELDS: &str = "prefix: always
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
    let manifest = valid(&handler(ALL_FIELDS));
    let handler = &manifest.handlers[0];
    let ToolOverride::Change(change) = &handler.overrides[0].1 else { panic!("{handler:?}") };
    let when = ArgumentOverride::Show {
        default: Some(json!(["now", 1.5])),
        description: Some("The time.".to_owned()),
    };
    let arguments =
        [("zone".to_owned(), ArgumentOverride::Pin(json!(SECRET_VALUE))), ("when".to_owned(), when)];
    assert_eq!(change.arguments, arguments);
    // Pinned values may be secret.
    assert_debug_snapshot!((handler.prefix, &handler.overrides), @r#"
    (
        Always,
        [
            (
                "convert_time",
                Change(
                    ToolModification {
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
                        chunking: ChunkingPolicy {
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
fn handler_without_overrides_changes_nothing() {
    let manifest = valid(&handler("overrides: {a: {hide: false, name: b}}"));
    assert_debug_snapshot!((manifest.handlers[0].prefix, &manifest.handlers[0].overrides), @r#"
    (
        OnClash,
        [
            (
                "a",
                Change(
                    ToolModification {
                        name: Some(
                            "b",
                        ),
                        title: None,
                        description: None,
                        arguments: [],
                        price: None,
                        chunking: ChunkingPolicy {
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
fn pins() {
    let pin = |fields: &str| valid(&handler(fields)).handlers[0].pin;
    assert_eq!(
        [pin(""), pin("pin: warn"), pin("pin: hold")],
        [DefinitionPin::Warn, DefinitionPin::Warn, DefinitionPin::Hold]
    );
    assert_snapshot!(problems(&handler("pin: on")), @"
    tools.yaml:9:10: spec.handlers[0].pin: `on` is not a known pin
      expected one of warn, hold
    ");
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
    tools.yaml:9:20: spec.handlers[0].overrides.a: this override changes nothing
    tools.yaml:9:39: spec.handlers[0].overrides.b.arguments: this override changes nothing
    tools.yaml:9:63: spec.handlers[0].overrides.c.arguments.x: this override changes nothing
    tools.yaml:9:72: spec.handlers[0].overrides.d: this override changes nothing
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
      hint: write true or false, without quotes
    tools.yaml:9:50: spec.handlers[0].overrides.b.description: found a number
      expected a string
      hint: put it in quotes
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {hide: true}, a: {name: b}}")), @"
    tools.yaml:9:34: spec.handlers[0].overrides.a: duplicate field `a`
      hint: first defined at 9:17
    ");
}

#[test]
fn hide_excludes_other_fields() {
    assert_snapshot!(problems(&handler("overrides: {a: {hide: true, name: b, arguments: {x: {pin: 1}}, colour: 1}}")), @"
    tools.yaml:9:33: spec.handlers[0].overrides.a.name: `name` does not belong here
      hint: it has no effect on a hidden tool
    tools.yaml:9:42: spec.handlers[0].overrides.a.arguments: `arguments` does not belong here
      hint: it has no effect on a hidden tool
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
    tools.yaml:9:41: spec.handlers[0].overrides.b.name: duplicate tool name in this handler
      hint: first defined at tools.yaml:9:27: spec.handlers[0].overrides.a.name
    ");
    // In two handlers it is an ordinary clash, which the order of the manifest decides.
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
      hint: a pinned argument is hidden from callers
    tools.yaml:9:57: spec.handlers[0].overrides.a.arguments.x.description: `description` does not belong here
      hint: a pinned argument is hidden from callers
    ");
    assert_snapshot!(problems(&handler("overrides: {a: {arguments: {x: {default: .inf, pinn: 2}, y: 1, z: {pin: ~}}}}")), @"
    tools.yaml:9:46: spec.handlers[0].overrides.a.arguments.x.default: JSON has no such number
      expected a finite decimal number
    tools.yaml:9:52: spec.handlers[0].overrides.a.arguments.x.pinn: unknown field
      expected one of pin, default, description
      hint: did you mean `pin`?
    tools.yaml:9:65: spec.handlers[0].overrides.a.arguments.y: found a number
      expected an object
    tools.yaml:9:71: spec.handlers[0].overrides.a.arguments.z: this override changes nothing
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
