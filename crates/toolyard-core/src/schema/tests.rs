use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Result of a check within the budget of the value.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Refused(TooCostly),
    Fits,
    Faults,
    OutOfSteps,
}

/// Runs a check on a thread with a small stack, and counts its steps.
#[track_caller]
fn check(name: &str, schema: Value, value: Value, expected: End) {
    let check = move || {
        let schema = match CompiledSchema::compile(&schema) {
            Ok(schema) => schema,
            Err(InvalidSchema::TooCostly(reason)) => return End::Refused(reason),
            Err(error) => panic!("{error}"),
        };
        let budget = ValidationBudget::of(value.to_string().len());
        let (checked, steps) = schema.check_counting(&value, &budget);
        assert!(steps <= budget.most_steps(), "{steps} of {budget:?}");
        match checked {
            Ok(()) => End::Fits,
            Err(SchemaMismatch::OutOfSteps) => End::OutOfSteps,
            Err(SchemaMismatch::Faults(text)) => {
                assert!(text.len() <= MAX_TEXT && !text.is_empty(), "{text}");
                End::Faults
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap();
    assert_eq!(thread.join().unwrap(), expected, "{name}");
}

fn reference(number: usize) -> Value {
    json!({"$ref": format!("#/$defs/d{number}")})
}

/// Returns definitions that each refer to the next one; the last one is `last`.
fn chain(length: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
    let links = (0..length).map(|at| (format!("d{at}"), link(reference(at + 1))));
    let defs: Value = links.chain([(format!("d{length}"), last)]).collect();
    json!({"$defs": defs, "$ref": "#/$defs/d0"})
}

fn nested(depth: usize, mut inner: Value, outer: impl Fn(Value) -> Value) -> Value {
    for _ in 0..depth {
        inner = outer(inner);
    }
    inner
}

#[test]
fn schemas_that_multiply_are_refused() {
    for branches in ["anyOf", "allOf", "oneOf"] {
        for last in [json!({"type": "string"}), json!(true), json!(false), json!({})] {
            let schema = chain(31, |next| json!({branches: [next, next]}), last);
            check(branches, schema, json!({}), End::Refused(TooCostly::Branches));
        }
    }
    let conditional = chain(31, |next| json!({"if": next, "then": next, "else": next}), json!(true));
    check("if", conditional, json!({}), End::Refused(TooCostly::Branches));
    let dependent = chain(31, |next| json!({"dependentSchemas": {"a": next, "b": next}}), json!(true));
    check("dependentSchemas", dependent, json!({"a": 1, "b": 1}), End::Refused(TooCostly::Branches));
    for (id, reference) in
        [("urn:a:d", "urn:a:d"), ("http://a/d", "d"), ("http://a.b/c/../d", "/d"), ("d", "json-schema:///d")]
    {
        let part = |at: usize| {
            let next = json!({"$ref": format!("{reference}{}", at + 1)});
            (format!("d{at}"), json!({"$id": format!("{id}{at}"), "anyOf": [next, next]}))
        };
        let mut defs: serde_json::Map<_, _> = (0..31).map(part).collect();
        defs.insert("d31".to_owned(), json!({"$id": format!("{id}31")}));
        let schema = json!({"$defs": defs, "$ref": format!("{reference}0")});
        check(reference, schema, json!({}), End::Refused(TooCostly::Branches));
    }
    let dynamic = |at: usize| {
        let next = json!({"$dynamicRef": format!("#d{}", at + 1)});
        (format!("d{at}"), json!({"$dynamicAnchor": format!("d{at}"), "anyOf": [next, next]}))
    };
    let dynamic: Value =
        (0..31).map(dynamic).chain([("d31".to_owned(), json!({"$dynamicAnchor": "d31"}))]).collect();
    let dynamic = json!({"$defs": dynamic, "$dynamicRef": "#d0"});
    check("dynamic references", dynamic, json!({}), End::Refused(TooCostly::Branches));
    let unevaluated = chain(12, |next| json!({"allOf": [next], "unevaluatedProperties": false}), json!({}));
    check("unevaluated, referred to", unevaluated, json!({"a": 1}), End::Refused(TooCostly::Branches));
    let unevaluated = |inner| json!({"allOf": [inner], "unevaluatedProperties": false});
    check("unevaluated", nested(20, json!({}), unevaluated), json!({}), End::Refused(TooCostly::Branches));
    let below = |inner| json!({"additionalProperties": inner, "unevaluatedProperties": false});
    check("unevaluated below", nested(20, json!({}), below), json!({}), End::Refused(TooCostly::Parts));
    let cycle: Value = (0..9)
        .map(|at| (format!("d{at}"), json!({"allOf": (0..9).map(reference).collect::<Vec<_>>()})))
        .collect();
    let cycle = json!({"$defs": cycle, "$ref": "#/$defs/d0"});
    check("a cycle", cycle, json!({}), End::Refused(TooCostly::BranchDepth));
    let anchors = json!({"$defs": {"a": {"$anchor": "a", "anyOf": [{"$ref": "#b"}]}, "b": {"$id": "#b", "$ref": "#a"}}, "$ref": "#a"});
    check("a cycle of anchors", anchors, json!({}), End::Refused(TooCostly::BranchDepth));
}

#[test]
fn schemas_that_fill_the_stack_are_refused() {
    let long = chain(20_000, |next| next, json!({"type": "string"}));
    check("a chain of references", long, json!({}), End::Refused(TooCostly::BranchDepth));
    let property = |inner| json!({"properties": {"a": inner}});
    let deep = chain(9, |next| nested(60, next, property), json!({}));
    check("references and properties", deep, json!({}), End::Refused(TooCostly::Depth));
    let less_deep = chain(9, |next| nested(30, next, property), json!({}));
    check("fewer of them", less_deep, json!({}), End::Fits);
    check("no references", nested(60, json!({}), property), json!({}), End::Fits);
}

#[test]
fn schemas_that_fill_the_memory_are_refused() {
    let properties: Value = (0..1000).map(|at| (format!("p{at}"), json!({}))).collect();
    let long = json!({"properties": {"a".repeat(100_000): {"properties": properties}}});
    check("long paths", long, json!({}), End::Refused(TooCostly::Paths));
    let many: Value = (0..60_000).map(|at| (format!("p{at}"), json!({}))).collect();
    check("many properties", json!({"properties": many}), json!({}), End::Refused(TooCostly::Parts));
    let ids: Value = (0..100).map(|at| (format!("p{at}"), json!({"$id": format!("urn:{at}")}))).collect();
    check("resources", json!({"$defs": ids}), json!({}), End::Refused(TooCostly::Resources));
    let patterns: Value = (0..100).map(|at| (format!("^p{at}[a-z]{{1,900}}$"), json!({}))).collect();
    check("patterns", json!({"patternProperties": patterns}), json!({}), End::Refused(TooCostly::Patterns));
}

#[test]
fn costly_pattern_leaves_its_own_value_unchecked() {
    let schema = |more: Value| {
        let text = json!({"type": "string", "pattern": "^.{0,262144}$"});
        let mut schema = json!({"properties": {"text": text, "copies": {"type": "integer"}, "code": {"pattern": "^[a-z]{2}$"}}});
        schema.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        schema
    };
    let only_text = schema(json!({}));
    check("any text", only_text.clone(), json!({"text": "a\n"}), End::Fits);
    check("a number", only_text.clone(), json!({"text": 1}), End::Faults);
    check("another argument", only_text.clone(), json!({"copies": "two"}), End::Faults);
    check("a small pattern", only_text, json!({"code": "abc"}), End::Faults);
    // Without its pattern the schema would refuse more.
    let negative = schema(json!({"not": {"properties": {"text": {"pattern": "^.{0,262144}$"}}}}));
    check("a negative pattern", negative, json!({}), End::Refused(TooCostly::Patterns));
    let many: Value =
        (0..30).map(|at| (format!("p{at}"), json!({"pattern": format!("^{at}[a-z]{{0,900}}$")}))).collect();
    check("the largest ones", json!({"properties": many}), json!({"p1": 1, "p29": "no"}), End::Faults);
}

#[test]
fn checks_that_multiply_end() {
    let forms: Vec<_> =
        (0..300).map(|at| json!({"type": "object", "required": [format!("r{at}")]})).collect();
    let items: Vec<_> = (0..500).map(|_| json!({})).collect();
    check("faults of many forms", json!({"items": {"anyOf": forms}}), json!(items), End::Faults);
    // Each level checks the next one twice.
    let twice = json!({"properties": {"a": {"allOf": [{"not": {"$ref": "#"}}, {"$ref": "#"}]}}});
    let inner = nested(40, json!(1), |inner| json!({"a": inner}));
    check("a recursion that branches", twice, inner, End::Faults);
    let schema = json!({"propertyNames": {"enum": (0..3000).map(|at| json!([at])).collect::<Vec<_>>()}});
    let names: Value = (0..500).map(|at| (format!("n{at}"), json!(1))).collect();
    check("names", schema, names, End::Faults);
    check("shapes", json!({"uniqueItems": true}), (0..2000).map(shape).collect(), End::Fits);
    let unique: Vec<_> = (0..2000).map(|at| json!({"id": at, "name": "n"})).collect();
    check("objects", json!({"uniqueItems": true}), json!(unique), End::Fits);
}

/// Returns a string of brackets from the bits of a number.
fn shape(number: usize) -> Value {
    (0..12).fold(
        json!([]),
        |inner, bit| if number >> bit & 1 == 1 { json!([inner, []]) } else { json!([inner]) },
    )
}

#[test]
fn patterns_that_backtrack_end() {
    let schema = json!({"pattern": "^(?=(a+)+$)(?:a|aa)+b$"});
    check("a short text", schema.clone(), json!("ab"), End::Faults);
    check("a long text", schema, json!("a".repeat(100_000)), End::OutOfSteps);
    let linear = json!({"pattern": "^[ab]*a[ab]{9000}$"});
    check("a text for a large pattern", linear.clone(), json!("ab".repeat(100)), End::Faults);
    check("a long text for a large pattern", linear, json!("ab".repeat(100_000)), End::OutOfSteps);
    let password = json!({"pattern": "^(?=.*[A-Z])(?=.*[0-9]).{8,64}$"});
    check("a password", password.clone(), json!("Passw0rdPassw0rd"), End::Fits);
    check("a bad password", password, json!("password"), End::Faults);
}

#[test]
fn common_large_values_are_checked() {
    let row = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 0},
            "name": {"type": "string", "maxLength": 200, "pattern": "^[^\\n]*$"},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true},
            "at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        },
        "required": ["id", "name"],
        "additionalProperties": false,
    });
    let rows: Vec<_> =
        (0..3000).map(|at| json!({"id": at, "name": "a name", "tags": ["a", "c"], "at": null})).collect();
    check("a table", json!({"type": "array", "items": row}), json!(rows), End::Fits);
    let filter = json!({
        "$defs": {"filter": {"oneOf": [
            {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["and"]},
            {"type": "object", "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["or"]},
            {"type": "object", "properties": {"not": {"$ref": "#/$defs/filter"}}, "required": ["not"]},
            {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]},
        ]}},
        "$ref": "#/$defs/filter",
    });
    let leaf = json!({"field": "a"});
    let value =
        nested(30, leaf, |inner| json!({"and": [{"or": [inner, {"field": "b"}]}, {"not": {"field": "c"}}]}));
    check("a filter", filter, value, End::Fits);
    let parts = json!({
        "$id": "http://a/tree",
        "$ref": "node",
        "$defs": {"node": {"$id": "node", "properties": {"children": {"items": {"$ref": "#"}}, "name": {"$ref": "name#"}}},
            "name": {"$id": "name", "type": "string"}},
    });
    check("parts with an id", parts, json!({"name": "a", "children": [{"name": "b"}]}), End::Fits);
    let text = json!({"properties": {"text": {"type": "string", "minLength": 1}}});
    check("a long text", text, json!({"text": "a".repeat(1 << 20)}), End::Fits);
    let meta = json!({"properties": {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}});
    check(
        "a schema",
        meta,
        json!({"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
        End::Fits,
    );
}

#[test]
fn a_value_that_nests_does_not_fill_the_stack() {
    let schema = chain(30, |next| json!({"anyOf": [next]}), json!({"properties": {"a": {"$ref": "#"}}}));
    let value = nested(120, json!(1), |inner| json!({"a": inner}));
    check("both", schema, value, End::OutOfSteps);
}

#[test]
fn numbers_of_one_hash_are_compared_by_the_step() {
    let schema = CompiledSchema::compile(&json!({"uniqueItems": true})).unwrap();
    let numbers = |spread: u64| (0..1000).map(|at| json!(u64::MAX - at * spread)).collect::<Value>();
    assert_eq!(schema.check(&numbers(1 << 40), &ValidationBudget::brief()), Ok(()));
    assert_eq!(schema.check(&numbers(1), &ValidationBudget::brief()), Err(SchemaMismatch::OutOfSteps));
}

#[test]
fn texts_are_cut() {
    let choices = json!({"oneOf": [{"const": "a".repeat(5000)}, {"const": "b"}]});
    let schema = CompiledSchema::compile(&choices).unwrap();
    let Err(SchemaMismatch::Faults(text)) = schema.check(&json!(1), &ValidationBudget::of(1)) else {
        panic!()
    };
    assert!(text.len() == MAX_TEXT && text.ends_with("..."), "{} bytes", text.len());
    let keys = json!({"additionalProperties": {"type": "null"}});
    let schema = CompiledSchema::compile(&keys).unwrap();
    let value = json!({"\u{e4}".repeat(5000): 1});
    let Err(SchemaMismatch::Faults(text)) = schema.check(&value, &ValidationBudget::of(10_000)) else {
        panic!()
    };
    assert!(text.len() <= MAX_TEXT && text.ends_with("..."), "{} bytes", text.len());
}

#[test]
fn a_check_that_is_stopped_ends() {
    let schema = CompiledSchema::compile(&json!({"type": "object"})).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let budget = ValidationBudget::of(2).until(stop.clone());
    assert_eq!(schema.check(&json!({}), &budget), Ok(()));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(schema.check(&json!({}), &budget), Err(SchemaMismatch::OutOfSteps));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..4_i64).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(1.5)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({"$ref": "#/$defs/a"})),
        prop::sample::select(vec!["null", "integer", "string", "array", "object"])
            .prop_map(|of| json!({"type": of})),
        values().prop_map(|value| json!({"const": value})),
        prop::collection::vec(values(), 1..3).prop_map(|values| json!({"enum": values})),
        (0..3).prop_map(
            |size| json!({"minLength": size, "minItems": size, "maxProperties": size, "minimum": size})
        ),
        "[a-c]".prop_map(|name| json!({"required": [name]})),
        Just(json!({"uniqueItems": true})),
        "[a-c]".prop_map(|pattern| json!({"pattern": pattern})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let keyword = |names: &[&'static str]| prop::sample::select(names.to_vec());
        let list = prop::collection::vec(inner.clone(), 1..3);
        let map = prop::collection::btree_map("[a-c]", inner.clone(), 1..3);
        let single = keyword(&[
            "not",
            "if",
            "items",
            "contains",
            "additionalProperties",
            "propertyNames",
            "unevaluatedProperties",
            "unevaluatedItems",
        ]);
        let part = prop_oneof![
            (single, inner).prop_map(|(keyword, schema)| json!({keyword: schema})),
            (keyword(&["anyOf", "allOf", "oneOf", "prefixItems"]), list)
                .prop_map(|(keyword, list)| json!({keyword: list})),
            (keyword(&["properties", "patternProperties", "dependentSchemas"]), map)
                .prop_map(|(keyword, map)| json!({keyword: map})),
        ];
        prop::collection::vec(part, 1..3).prop_map(|parts| {
            let members = parts.iter().filter_map(Value::as_object).flatten();
            members.map(|(name, value)| (name.clone(), value.clone())).collect()
        })
    })
}

/// Counts the schemas that apply to a value over all branches, or returns `None` if their number is unlimited.
fn evaluated(root: &Value, schema: &Value, depth: usize) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    let lists =
        ["anyOf", "allOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
    let maps =
        schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|map| map.values());
    let single = ["not", "if"].into_iter().filter_map(|name| schema.get(name));
    let target = schema.get("$ref").and_then(|_| root.pointer("/$defs/a"));
    let mut branches =
        lists.chain(maps).chain(single).chain(target).map(|branch| evaluated(root, branch, depth));
    branches.try_fold(1, |sum: u64, branch| sum.checked_add(branch?))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// A metered check has the result of an unmetered one, in a deterministic number of steps.
    #[test]
    fn metering_changes_no_answer(a in schemas(), schema in schemas(), value in values()) {
        let schema = match schema {
            Value::Object(mut members) => {
                members.insert("$defs".to_owned(), json!({"a": a}));
                Value::Object(members)
            }
            other => other,
        };
        let end = evaluated(&schema, &schema, 100);
        match CompiledSchema::compile(&schema) {
            Ok(compiled) => {
                prop_assert!(end.is_some_and(|end| end <= 4096));
                let plain = jsonschema::validator_for(&schema).unwrap();
                let budget = ValidationBudget::of(value.to_string().len());
                let (checked, steps) = compiled.check_counting(&value, &budget);
                prop_assert_eq!(checked.is_ok(), plain.is_valid(&value), "{:?}", checked);
                prop_assert_eq!(compiled.check_counting(&value, &budget).1, steps);
            }
            Err(InvalidSchema::TooCostly(_)) => {}
            Err(InvalidSchema::Invalid(_)) => prop_assert!(jsonschema::validator_for(&schema).is_err()),
        }
    }
}
