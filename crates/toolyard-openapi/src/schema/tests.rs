use serde_json::Value;

use super::*;
use crate::document::SpecNode;

/// Checks the converted schema `root`, with its definitions.
#[track_caller]
fn check(direction: SchemaDirection, dialect: SchemaDialect, document: &str, expected: &str) {
    let files = [("/openapi.yaml", SpecNode::parse(document).unwrap())];
    let files = SpecFiles::new(&files);
    let mut schemas = SchemaRegistry::new(&files, dialect, direction);
    let mut root = RootSchema::default();
    let value = schemas.write(files.root().get("root").unwrap(), true, &mut root);
    let definitions = schemas.definitions(&root.references, 1000);
    let mut text = value.to_string();
    if !definitions.text.is_empty() {
        text = format!("{text} {}", definitions.text);
    }
    assert_eq!(text, expected, "{document}");
}

#[track_caller]
fn old(document: &str, expected: &str) {
    check(SchemaDirection::Request, SchemaDialect::Old, document, expected);
}

#[track_caller]
fn new(document: &str, expected: &str) {
    check(SchemaDirection::Request, SchemaDialect::New, document, expected);
}

#[test]
fn keywords_are_converted_to_2020_12() {
    old(
        "root: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false}",
        r#"{"type":"integer","exclusiveMinimum":1,"maximum":5}"#,
    );
    old("root: {type: string, nullable: true, enum: [a]}", r#"{"type":["string","null"],"enum":["a",null]}"#);
    old("root: {type: string, x-nullable: true}", r#"{"type":["string","null"]}"#);
    old("root: {type: file}", r#"{"type":"string"}"#);
    old("root: {type: any, example: x, xml: {name: y}, x-z: 1}", r#"{"examples":["x"]}"#);
    old(
        "root: {type: string, format: date, pattern: '^a', minLength: 1.0, maxLength: -1, default: b}",
        r#"{"type":"string","format":"date","pattern":"^a","minLength":1,"default":"b"}"#,
    );
    old(
        "root: {type: object, required: true, properties: {a: {required: true}}}",
        r#"{"type":"object","properties":{"a":{}}}"#,
    );
    old("root: {allOf: [], oneOf: [], enum: []}", "{}");
    old(
        "root: {type: array, items: [{type: string}]}",
        r#"{"type":"array","prefixItems":[{"type":"string"}]}"#,
    );
    old("root: {const: a, if: {type: string}}", "{}");
    new("root: {const: a, if: {type: string}}", r#"{"const":"a","if":{"type":"string"}}"#);
    new(
        "root: {type: [string, 'null'], examples: [a], $comment: b, $id: c}",
        r#"{"type":["string","null"],"examples":["a"]}"#,
    );
    new("root: true", "{}");
    new("root: {properties: {a: false}}", r#"{"properties":{"a":{"not":{}}}}"#);
    new("root: {type: number, exclusiveMinimum: 3}", r#"{"type":"number","exclusiveMinimum":3}"#);
}

#[test]
fn patterns_of_other_notations_become_ecmascript() {
    let check = |pattern: &str, expected: Option<&str>| {
        let document = format!("root: {{type: string, pattern: {}}}", serde_json::json!(pattern));
        let pattern = expected.map(|it| format!(r#","pattern":{}"#, serde_json::json!(it)));
        old(&document, &format!(r#"{{"type":"string"{}}}"#, pattern.unwrap_or_default()));
    };
    check("^a/b$", Some("^a/b$"));
    check("/a/", Some("/a/"));
    check(r"^\d\\A$", Some(r"^\d\\A$"));
    check(r"\A[a-z]+\z", Some("^[a-z]+$"));
    check(r"\A[\A\-a]\Z", Some(r"^[\A\-a]$"));
    check("/^[a-z]+$/", Some("^[a-z]+$"));
    check(r"/^a\/b$/u", Some(r"^a\/b$"));
    // A schema cannot ignore case.
    check("/^[a-z]+$/i", None);
    check("(", None);
    check("[a", None);
    old("root: {patternProperties: {'[': {}, '^a': {}}}", r#"{"patternProperties":{"^a":{}}}"#);
}

#[test]
fn reference_targets_become_definitions() {
    old(
        "root: {$ref: '#/a/Pet'}\na: {Pet: {type: object, properties: {mate: {$ref: '#/a/Pet'}}}}",
        r##"{"$ref":"#/$defs/Pet"} "Pet":{"type":"object","properties":{"mate":{"$ref":"#/$defs/Pet"}}}"##,
    );
    old(
        "root: {items: {$ref: '#/a/X'}, not: {$ref: '#/b/X'}}\na: {X: {type: string}}\nb: {X: {type: integer}}",
        r##"{"items":{"$ref":"#/$defs/X"},"not":{"$ref":"#/$defs/X_2"}} "X":{"type":"string"},"X_2":{"type":"integer"}"##,
    );
    old("root: {$ref: '#/nowhere'}", "{}");
    old("root: {$ref: '#/root'}", "{}");
    old(
        "root: {$ref: '#/a/«b~1c»', description: d}\na: {«b/c»: {type: string}}",
        r##"{"$ref":"#/$defs/_b_1c_","description":"d"} "_b_1c_":{"type":"string"}"##,
    );
    old(
        "root: {$ref: '#/a', minLength: 1}\na: {type: string}",
        r##"{"$ref":"#/$defs/a"} "a":{"type":"string"}"##,
    );
    new(
        "root: {$ref: '#/a', minLength: 1}\na: {type: string}",
        r##"{"$ref":"#/$defs/a","minLength":1} "a":{"type":"string"}"##,
    );
    old(
        "root: {$ref: '#/a', example: text, default: '{}'}\na: {type: object}",
        r##"{"$ref":"#/$defs/a","default":{}} "a":{"type":"object"}"##,
    );
    old(
        "root: {allOf: [{$ref: '#/a'}], nullable: true, description: d}\na: {type: string}",
        r##"{"description":"d","anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]} "a":{"type":"string"}"##,
    );
}

#[test]
fn equivalent_all_of_is_merged() {
    old(
        "root: {allOf: [{$ref: '#/a'}, {type: object, properties: {y: {}}, required: [y]}], description: d}\n\
         a: {type: object, description: e, properties: {x: {}}, required: [x]}",
        r#"{"description":"d","type":"object","properties":{"x":{},"y":{}},"required":["x","y"]}"#,
    );
    let unmerged =
        r#"{"allOf":[{"properties":{"x":{"type":"string"}}},{"properties":{"x":{"minLength":1}}}]}"#;
    old("root: {allOf: [{properties: {x: {type: string}}}, {properties: {x: {minLength: 1}}}]}", unmerged);
    old(
        "root: {allOf: [{properties: {x: {}}}, {minProperties: 2}]}",
        r#"{"allOf":[{"properties":{"x":{}}},{"minProperties":2}]}"#,
    );
    old(
        "root: {allOf: [{properties: {x: {}}, additionalProperties: false}, {properties: {y: {}}}]}",
        r#"{"additionalProperties":false,"properties":{"x":{},"y":{}}}"#,
    );
    old(
        "root: {allOf: [{$ref: '#/root'}, {properties: {y: {}}}]}",
        r##"{"allOf":[{"$ref":"#/$defs/root"},{"properties":{"y":{}}}]} "root":{"allOf":[{"$ref":"#/$defs/root"},{"properties":{"y":{}}}]}"##,
    );
}

#[test]
fn discriminators_become_constants() {
    old(
        "root: {oneOf: [{$ref: '#/a/Cat'}, {$ref: '#/a/Dog'}], discriminator: {propertyName: kind, mapping: {dog: '#/a/Dog'}}}\n\
         a: {Cat: {type: object}, Dog: {type: object, properties: {kind: {type: string}}}}",
        r##"{"oneOf":[{"$ref":"#/$defs/Cat","properties":{"kind":{"const":"Cat"}},"required":["kind"]},{"$ref":"#/$defs/Dog","properties":{"kind":{"const":"dog"}},"required":["kind"]}]} "Cat":{"type":"object"},"Dog":{"type":"object","properties":{"kind":{"type":"string"}}}"##,
    );
    old(
        "root: {oneOf: [{$ref: '#/a'}], discriminator: {propertyName: kind}}\na: {properties: {kind: {enum: [b]}}}",
        r##"{"oneOf":[{"$ref":"#/$defs/a"}]} "a":{"properties":{"kind":{"enum":["b"]}}}"##,
    );
}

/// The values of a document take precedence over the names of its schemas, wherever they are.
#[test]
fn discriminator_respects_enumerations() {
    let check = |cat: &str, dog: &str, expected: [&str; 2]| {
        let document = format!(
            "root: {{oneOf: [{{$ref: '#/a/Cat'}}, {{$ref: '#/a/Dog'}}], discriminator: {{propertyName: kind}}}}\n\
             kinds: {{enum: [cat, Dog]}}\na: {{Cat: {cat}, Dog: {dog}, Base: {{properties: {{kind: {{$ref: '#/kinds'}}}}}}}}"
        );
        let files = [("/openapi.yaml", SpecNode::parse(&document).unwrap())];
        let files = SpecFiles::new(&files);
        let mut schemas = SchemaRegistry::new(&files, SchemaDialect::Old, SchemaDirection::Request);
        let value = schemas.write(files.root().get("root").unwrap(), true, &mut RootSchema::default());
        let all = value.get("oneOf").or(value.get("anyOf")).unwrap();
        let branches = [0, 1].map(|branch| all[branch]["properties"]["kind"].to_string());
        assert_eq!(branches, expected, "{document}");
    };
    let (none, dog) = ("null", r#"{"const":"Dog"}"#);
    let kind = "{properties: {kind: {$ref: '#/kinds'}}}";
    check(kind, kind, [none, dog]);
    let with_base = "{allOf: [{$ref: '#/a/Base'}, {minProperties: 1}]}";
    check(with_base, with_base, [none, dog]);
    let nested = "{oneOf: [{properties: {kind: {enum: [tom]}}}, {properties: {kind: {enum: [mog]}}}]}";
    check(nested, "{}", [none, dog]);
    let nested = "{oneOf: [{$ref: '#/a/Base'}], discriminator: {propertyName: kind}}";
    check("{properties: {kind: {type: string}}}", nested, [r#"{"const":"Cat"}"#, dog]);
}

#[test]
fn alternatives_that_readonly_distinguishes_are_merged() {
    let root = "root: {oneOf: [{$ref: '#/a/A'}, {$ref: '#/a/B'}]}";
    old(
        &format!(
            "{root}\na: {{A: {{title: a, properties: {{x: {{}}, id: {{readOnly: true}}}}, required: [x, id]}}, B: {{title: b, properties: {{x: {{}}}}, required: [x]}}}}"
        ),
        r##"{"anyOf":[{"$ref":"#/$defs/A"}]} "A":{"title":"a","properties":{"x":{}},"required":["x"]}"##,
    );
    old(
        &format!(
            "{root}\na: {{A: {{properties: {{x: {{}}, id: {{readOnly: true}}}}}}, B: {{properties: {{x: {{}}, y: {{}}}}}}}}"
        ),
        r##"{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]} "A":{"properties":{"x":{}}},"B":{"properties":{"x":{},"y":{}}}"##,
    );
    old(
        &format!("{root}\na: {{A: {{type: string, format: uuid}}, B: {{type: string, format: email}}}}"),
        r##"{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]} "A":{"type":"string","format":"uuid"},"B":{"type":"string","format":"email"}"##,
    );
    let nested = |word: &str| format!("{{items: {{properties: {{p: {{}}, q: {{{word}}}}}}}}}");
    old(
        &format!("root: {{oneOf: [{}, {}]}}", nested("readOnly: true"), "{items: {properties: {p: {}}}}"),
        r#"{"oneOf":[{"items":{"properties":{"p":{}}}}]}"#,
    );
    old(
        &format!("root: {{oneOf: [{}, {{type: string}}]}}", nested("")),
        r#"{"oneOf":[{"items":{"properties":{"p":{},"q":{}}}},{"type":"string"}]}"#,
    );
}

#[test]
fn branches_that_cover_others_are_any_of() {
    let check = |branches: &str, keyword: &str| {
        let document = format!(
            "root: {{oneOf: [{branches}], discriminator: {{propertyName: kind}}}}\n\
             kinds: {{type: string, enum: [CAT, DOG]}}\n\
             Base: {{type: object, required: [kind], properties: {{kind: {{$ref: '#/kinds'}}}}}}\n\
             Cat: {{allOf: [{{$ref: '#/Base'}}, {{properties: {{m: {{}}}}}}]}}\n\
             Dog: {{allOf: [{{$ref: '#/Base'}}, {{properties: {{w: {{}}}}}}]}}\n\
             Cow: {{allOf: [{{$ref: '#/Base'}}, {{properties: {{kind: {{enum: [DOG]}}}}}}]}}\n\
             Open: {{properties: {{kind: {{$ref: '#/kinds'}}}}}}\n"
        );
        let files = [("/openapi.yaml", SpecNode::parse(&document).unwrap())];
        let files = SpecFiles::new(&files);
        let mut schemas = SchemaRegistry::new(&files, SchemaDialect::New, SchemaDirection::Request);
        let value = schemas.write(files.root().get("root").unwrap(), true, &mut RootSchema::default());
        let keywords: Vec<_> =
            ["oneOf", "anyOf"].into_iter().filter(|word| value[*word].is_array()).collect();
        assert_eq!(keywords, [keyword], "{branches}: {value}");
    };
    let any = |branches: &str| check(branches, "anyOf");
    let one = |branches: &str| check(branches, "oneOf");
    any("{$ref: '#/Cat'}, {$ref: '#/Dog'}");
    any("{$ref: '#/Cat'}, {$ref: '#/Cow'}");
    any("{$ref: '#/Open'}, {$ref: '#/Cat'}");
    any("{properties: {a: {}}}, {properties: {b: {}}}");
    any("{required: [a]}, {required: [a, b]}");
    any("{properties: {a: {type: integer}}}, {properties: {a: {type: number}}}");
    any("{type: integer}, {type: number}");
    any("{type: string}, {enum: [a], type: string}");
    any("{enum: [a]}, {enum: [a, b]}");
    any("{type: array, items: {type: integer}}, {type: array, items: {type: number}}");
    any("{type: string}, {}");
    any("{type: string}, {anyOf: [{type: string}, {type: integer}]}");
    any("{properties: {a: {}}}, {properties: {a: {}, b: {}}, additionalProperties: false}");
    one("{properties: {a: {}}, required: [a]}, {properties: {b: {}}, required: [b]}");
    one("{properties: {a: {}, b: {}}, required: [a]}, {properties: {a: {}, b: {}}, required: [b]}");
    one("{properties: {a: {const: x}}}, {properties: {a: {const: y}}}");
    one("{properties: {a: {enum: [x, y]}}}, {properties: {a: {enum: [y, z]}}}");
    one("{properties: {a: {type: string}}}, {properties: {a: {type: object}}}");
    one("{properties: {a: {properties: {b: {const: x}}}}}, {properties: {a: {properties: {b: {const: y}}}}}");
    one("{type: object}, {type: array}, {type: 'null'}");
    one("{items: {properties: {a: {}}}}, {type: string}");
    one("{type: string, pattern: ^a}, {type: string, pattern: ^b}");
    one(
        "{properties: {a: {}}, additionalProperties: false}, {properties: {b: {}}, additionalProperties: false}",
    );
    one("{$ref: '#/Cat', required: [m]}, {$ref: '#/Cat', required: [w]}");
    one("{type: string}, false");
}

/// Services such as PagerDuty's refer to their objects in this way.
#[test]
fn reference_keeps_its_identifier() {
    old(
        "root: {$ref: '#/Reference'}\n\
         Tag: {type: object, properties: {id: {type: string, readOnly: true}, type: {type: string}, self: {readOnly: true}}}\n\
         Reference: {type: object, required: [id, type], allOf: [{$ref: '#/Tag'}]}",
        r##"{"$ref":"#/$defs/Reference"} "Reference":{"type":"object","properties":{"id":{"type":"string"},"type":{"type":"string"}},"required":["type"]}"##,
    );
    old(
        "root: {allOf: [{$ref: '#/Tag'}, {required: [id, a]}]}\n\
         Tag: {properties: {id: {readOnly: true}, a: {}, b: {}, c: {}}}",
        r#"{"properties":{"id":{},"a":{},"b":{},"c":{}},"required":["a"]}"#,
    );
}

#[test]
fn properties_of_the_other_direction_are_omitted() {
    let document = "root: {type: object, required: [a, b, c], properties: {a: {readOnly: true}, b: {writeOnly: true}, \
                    c: {$ref: '#/c'}, d: {type: string, format: date}}}\nc: {type: string, readOnly: true}";
    old(
        document,
        r#"{"type":"object","properties":{"b":{},"d":{"type":"string","format":"date"}},"required":["b"]}"#,
    );
    check(
        SchemaDirection::Response,
        SchemaDialect::Old,
        document,
        r##"{"type":["object","null"],"properties":{"a":{},"c":{"$ref":"#/$defs/c"},"d":{"type":["string","number","boolean","null"]}}} "c":{"type":["string","number","boolean","null"]}"##,
    );
}

/// A chain of definitions that do not all fit into 1000 bytes.
#[test]
fn optional_and_deep_definitions_are_pruned_first() {
    let link = |from: &str, to: &str, required: &str| {
        let text = "x".repeat(300);
        format!(
            "  {from}: {{type: object, description: {text}, required: [{required}], properties: {{next: {{$ref: '#/s/{to}'}}}}}}\n"
        )
    };
    let pruned = |document: &str| {
        let files = [("/openapi.yaml", SpecNode::parse(document).unwrap())];
        let files = SpecFiles::new(&files);
        let mut schemas = SchemaRegistry::new(&files, SchemaDialect::Old, SchemaDirection::Request);
        let mut root = RootSchema::default();
        schemas.write(files.root().get("root").unwrap(), true, &mut root);
        let definitions = schemas.definitions(&root.references, 1000);
        assert!(definitions.text.len() <= 1000);
        let value: Value = serde_json::from_str(&format!("{{{}}}", definitions.text)).unwrap();
        let names = value.as_object().unwrap().iter();
        let names = names.map(|(name, schema)| match schema.get("properties") {
            Some(_) => name.clone(),
            None => format!("({name})"),
        });
        names.collect::<Vec<_>>().join(" ")
    };
    let deep = [link("A", "B", ""), link("B", "C", ""), link("C", "D", ""), link("D", "E", "")].concat();
    assert_eq!(pruned(&format!("root: {{$ref: '#/s/A'}}\ns:\n{deep}  E: {{type: object}}\n")), "A B (C)");
    let required = [link("X", "Y", "next"), link("Y", "Z", "next"), link("A", "Y", "")].concat();
    let document = format!(
        "root: {{properties: {{a: {{$ref: '#/s/A'}}, x: {{$ref: '#/s/X'}}}}, required: [x]}}\ns:\n{required}  Z: {{type: object, properties: {{q: {{}}}}}}\n"
    );
    assert_eq!(pruned(&document), "(A) X Y Z");
}

/// Open definitions count against the limit as well.
#[test]
fn open_definitions_fit_as_well() {
    let text = "x".repeat(100);
    let name = |number| format!("Referred{number:02}");
    let all: String = (0..40).map(|it| format!("{}: {{$ref: '#/s/{0}'}}, ", name(it))).collect();
    let each: String =
        (0..40).map(|it| format!("  {}: {{type: object, description: {text}}}\n", name(it))).collect();
    let document = format!("root: {{$ref: '#/s/All'}}\ns:\n  All: {{properties: {{{all}}}}}\n{each}");
    let files = [("/openapi.yaml", SpecNode::parse(&document).unwrap())];
    let files = SpecFiles::new(&files);
    let mut schemas = SchemaRegistry::new(&files, SchemaDialect::Old, SchemaDirection::Request);
    let mut root = RootSchema::default();
    schemas.write(files.root().get("root").unwrap(), true, &mut root);
    let check = |schemas: &mut SchemaRegistry<'_>, room: usize| {
        let definitions = schemas.definitions(&root.references, room);
        assert!(definitions.text.len() <= room, "{} in {room}", definitions.text.len());
        assert!(definitions.is_pruned);
    };
    // As open objects they take 1400 bytes, in full 5700.
    [2500, 3500, 5000].into_iter().for_each(|room| check(&mut schemas, room));
}

/// Parts that many objects share are not copied into all of them without limit.
#[test]
fn merging_is_limited() {
    let part = |name: &str, properties: usize| {
        let properties = (0..properties).map(|at| format!("{name}{at}: {{}}"));
        format!("{name}: {{properties: {{{}}}}}", properties.collect::<Vec<_>>().join(", "))
    };
    let is_merged = |parts: &[(&str, usize)], before: usize| {
        let refs: Vec<_> = parts.iter().map(|(name, _)| format!("{{$ref: '#/{name}'}}")).collect();
        let mut lines = vec![format!("root: {{properties: {{own: {{}}}}, allOf: [{}]}}", refs.join(", "))];
        lines.extend(parts.iter().map(|(name, properties)| part(name, *properties)));
        lines.dedup();
        let text = lines.join("\n");
        let files = [("/openapi.yaml", SpecNode::parse(&text).unwrap())];
        let files = SpecFiles::new(&files);
        files.charge_merge(before);
        let root = files.root().get("root").unwrap();
        flatten(&files, root).keyword("allOf").is_none()
    };
    assert!(is_merged(&[("a", 100), ("b", 100)], 0));
    assert!(is_merged(&[("a", 1000); 200], 0), "one part, however often it is named");
    assert!(!is_merged(&[("a", 1500), ("b", 1500)], 0), "too many properties");
    assert!(!is_merged(&[("a", 100)], 2_000_000 - 50), "too many in all objects together");
}

/// Schemas that lead to each other many times over: the searches have a budget.
#[test]
fn searches_of_recursive_alternatives_end() {
    let check = |root: &str, others: &str| {
        let document = format!("root: {{oneOf: [{root}]}}\n{others}");
        let files = [("/openapi.yaml", SpecNode::parse(&document).unwrap())];
        let files = SpecFiles::new(&files);
        let mut schemas = SchemaRegistry::new(&files, SchemaDialect::New, SchemaDirection::Request);
        let value = schemas.write(files.root().get("root").unwrap(), true, &mut RootSchema::default());
        assert!(value["oneOf"].is_array(), "{value}");
    };
    let discriminator = "discriminator: {propertyName: kind}";
    let branches = vec!["{$ref: '#/loop'}"; 60].join(", ");
    let looping = format!("loop: {{{discriminator}, oneOf: [{branches}]}}\n");
    check(&format!("{{{discriminator}, oneOf: [{{$ref: '#/loop'}}]}}"), &looping);

    // Two schemas that differ in their last part only.
    let chain = (0..7).flat_map(|at| {
        ["l", "r"].map(|side| {
            let members = (0..20).map(|member| format!("p{member}: {{$ref: '#/{side}{}'}}", at + 1));
            format!("{side}{at}: {{properties: {{{}}}}}\n", members.collect::<Vec<_>>().join(", "))
        })
    });
    let chain: String = chain.collect();
    let ends = "l7: {properties: {a: {type: string}}}\nr7: {properties: {a: {type: string}}}\n";
    check("{$ref: '#/l0'}, {$ref: '#/r0'}", &format!("{chain}{ends}"));
}
