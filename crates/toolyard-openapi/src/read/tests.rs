mod callable;
mod texts;

use insta::assert_snapshot;

use super::*;
use crate::operation::OpenApiOperation;

fn described(document: &str) -> ServiceDescription {
    read(&DescriptionSources::new("https://docs.example/api/openapi.yaml", document), &ReadOptions::default())
        .unwrap()
}

/// A summary of a document: each operation with its arguments, and the faults.
fn summary(document: &str) -> String {
    let description = described(document);
    let mut lines = Vec::new();
    for DescribedOperation { operation, definition, .. } in &description.operations {
        let OpenApiOperation { name, method, server, path, .. } = operation;
        lines.push(format!("{name}: {method} {server}{path}"));
        for (member, value) in definition.iter() {
            lines.push(format!("  {member}: {}", value.as_text()));
        }
        for parameter in &operation.parameters {
            lines.push(format!("  {} = {:?} {}", parameter.argument, parameter.location, parameter.name));
        }
        if let Some(body) = &operation.body {
            lines.push(format!("  {} {:?}", body.media_type, body.content));
        }
    }
    lines.extend(description.faults.iter().map(|fault| format!("{} {}", fault.location, fault.problem)));
    lines.join("\n")
}

/// A document of OpenAPI 3.0 with one operation.
fn operation(text: &str) -> String {
    let text = text.replace('\n', "\n      ");
    format!(
        "openapi: 3.0.3\nservers: [{{url: /v1}}]\npaths:\n  /pets/{{id}}:\n    post:\n      operationId: op\n      {text}\n"
    )
}

#[test]
fn parameters_and_body_are_one_object() {
    assert_snapshot!(summary(&operation(
        "summary: Change a pet
description: All of it.
parameters:
- {name: id, in: path, required: true, schema: {type: integer}, description: Which}
- {name: id, in: query, schema: {type: string}}
- {name: X-Trace, in: header, schema: {type: string}}
- {name: Accept, in: header, schema: {type: string}}
- {name: who, in: cookie, content: {application/json: {schema: {type: object}}}}
requestBody:
  required: true
  content:
    application/xml: {schema: {type: string}}
    application/json:
      schema: {type: object, required: [name, at], properties: {name: {type: string}, id: {type: integer}, at: {type: string, readOnly: true}}}
responses: {'200': {content: {application/json: {schema: {type: array, items: {type: string}}}}}}"
    )));
}

/// Some documents require members that they describe nowhere; the services validate them all the same.
#[test]
fn required_member_without_schema_is_an_argument() {
    let summary = summary(&operation(
        "requestBody:
  required: true
  content:
    application/json: {schema: {type: object, required: [name, at], properties: {Name: {type: string}, at: {readOnly: true}}}}
responses: {}",
    ));
    let schema = r#""Name":{"type":"string"},"name":{}},"required":["id","name"]}"#;
    assert!(summary.contains(schema), "{summary}");
    assert!(summary.contains(r#"named: [("Name", "Name"), ("name", "name")]"#), "{summary}");
}

#[test]
fn body_that_is_not_a_plain_object_is_one_argument() {
    let body =
        |content: &str| summary(&operation(&format!("requestBody: {{content: {content}}}\nresponses: {{}}")));
    assert_snapshot!([
        body("{application/json: {schema: {type: array, items: {type: string}}}}"),
        body("{application/json: {schema: {oneOf: [{type: string}, {type: integer}]}}}"),
        body("{application/json: {}}"),
        body("{image/png: {}}"),
        body("{text/plain: {schema: {type: string, description: Words}}}"),
        body("{application/json: {schema: {type: object, properties: {a: {}, b: {}}, required: [a], additionalProperties: {type: integer}}}}"),
        body("{application/x-www-form-urlencoded: {schema: {type: object, properties: {a: {type: string}}, additionalProperties: false}}}"),
        body("{application/x-www-form-urlencoded: {schema: {properties: {f: {type: string, format: binary}}}}, multipart/form-data: {schema: {properties: {f: {type: string, format: binary}}}}}"),
    ]
    .join("\n"));
}

#[test]
fn swagger_2_is_supported() {
    assert_snapshot!(summary(
        "swagger: '2.0'
host: api.example
basePath: /v2
schemes: [http, https]
consumes: [application/json]
produces: [application/json]
parameters: {limit: {name: limit, in: query, type: integer, collectionFormat: csv}}
definitions: {Pet: {type: object, required: [name], properties: {name: {type: string}}}}
paths:
  /pets:
    parameters: [{$ref: '#/parameters/limit'}]
    get: {responses: {'200': {schema: {$ref: '#/definitions/Pet'}}}}
    post: {operationId: addPet, parameters: [{name: pet, in: body, required: true, schema: {$ref: '#/definitions/Pet'}}], responses: {'201': {description: Made}}}
  /pets/photo:
    put: {consumes: [multipart/form-data], parameters: [{name: photo, in: formData, type: file, required: true}, {name: note, in: formData, type: string}], responses: {}}"
    ));
}

#[test]
fn fault_affects_only_its_operation() {
    assert_snapshot!(summary(
        "openapi: 3.1.0
paths:
  /a/{x}/{?y}:
    parameters: [{$ref: '#/components/parameters/nowhere'}, {name: z, in: path, required: true, schema: {}}, {in: query}]
    get: {responses: {}}
    post: {requestBody: {$ref: '#/nowhere'}, responses: {}}
    put: nonsense
  /b: {$ref: 'elsewhere.yaml'}
  /c: {delete: {operationId: a b/c, requestBody: {content: {application/json: {schema: {$ref: '#/nowhere'}}}}, responses: {}}}"
    ));
}

#[test]
fn other_documents_are_refused() {
    let refused = |text: &str| {
        read(&DescriptionSources::new("a.yaml", text), &ReadOptions::default()).unwrap_err().to_string()
    };
    assert_snapshot!(
        [
            refused("openapi: 3.0.0\npaths: ["),
            refused("{}"),
            refused("[1]"),
            refused("<html></html>"),
            refused("openapi: 4.0.0\npaths: {}"),
            refused("swagger: 1.2\npaths: {}"),
            refused("openapi: 3.0.0\npaths: []"),
        ]
        .join("\n")
    );
    assert_eq!(described("openapi: 3.1.0\nwebhooks: {}").operations.len(), 0);
    assert_eq!(described("swagger: 2.0\npaths: {}").format, "OpenAPI 2.0");
}

#[test]
fn innermost_server_applies() {
    let check = |document: &str, expected: &str| {
        let variables = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
        let options = ReadOptions { server_variables: variables, ..ReadOptions::default() };
        let sources = DescriptionSources::new("https://docs.example/api/openapi.yaml", document);
        let description = read(&sources, &options).unwrap();
        assert_eq!(description.operations[0].operation.server, expected, "{document}");
    };
    let with = |root: &str, path: &str, operation: &str| {
        format!("openapi: 3.0.0\n{root}\npaths: {{/a: {{{path} get: {{{operation} responses: {{}}}}}}}}")
    };
    check(&with("", "", ""), "https://docs.example");
    check(&with("servers: [{url: 'https://a.b/c/'}]", "", ""), "https://a.b/c");
    check(&with("servers: [{url: v1}]", "", ""), "https://docs.example/api/v1");
    check(&with("servers: [{url: 'https://a.b'}]", "servers: [{url: 'https://c.d'}],", ""), "https://c.d");
    check(&with("", "servers: [{url: 'https://c.d'}],", "servers: [{url: 'https://e.f'}],"), "https://e.f");
    let variables = "servers: [{url: 'https://{region}.{host}:{port}', variables: {region: {default: us}, host: {default: a.b}, port: {enum: [8443]}}}]";
    check(&with(variables, "", ""), "https://eu.a.b:8443");
    check("swagger: '2.0'\npaths: {/a: {get: {}}}", "https://docs.example");
    check(
        "swagger: '2.0'\nhost: a.b\nbasePath: /c/\nschemes: [http]\npaths: {/a: {get: {}}}",
        "http://a.b/c",
    );
}

#[test]
fn filter_selects_operations() {
    let document = "openapi: 3.0.0\npaths:\n  /pets:\n    get: {operationId: listPets, tags: [read]}\n    post: {operationId: addPet, tags: [write]}\n  /toys: {get: {tags: [read]}}";
    let check = |filter: OperationSelector, expected: &str| {
        let options = ReadOptions { filter, ..ReadOptions::default() };
        let description = read(&DescriptionSources::new("a.yaml", document), &options).unwrap();
        let names: Vec<&str> = description.operations.iter().map(|it| &*it.operation.name).collect();
        assert_eq!(names.join(" "), expected);
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    check(OperationSelector::default(), "listPets addPet get_toys");
    check(
        OperationSelector { operations: texts(&["addPet", "get_toys"]), ..OperationSelector::default() },
        "addPet get_toys",
    );
    check(OperationSelector { tags: texts(&["read"]), ..OperationSelector::default() }, "listPets get_toys");
    check(
        OperationSelector { tags: texts(&["read"]), paths: texts(&["/p*"]), ..OperationSelector::default() },
        "listPets",
    );
    check(OperationSelector { methods: vec![http::Method::POST], ..OperationSelector::default() }, "addPet");
}

#[test]
fn security_schemes_and_requirements() {
    let description = described(
        "openapi: 3.0.0
components: {securitySchemes: {key: {type: apiKey, in: query, name: k}, basic: {type: http, scheme: Basic}, token: {type: http, scheme: bearer}, oauth: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://a.b/t', scopes: {}}}}, mtls: {type: mutualTLS}}}
security: [{key: []}, {oauth: [read], basic: []}]
paths: {/a: {get: {}, put: {security: []}}}",
    );
    assert_snapshot!(format!(
        "{:#?}\n{:?}\n{:?}",
        description.schemes, description.operations[0].security, description.operations[1].security
    ));
}

#[test]
fn large_schema_is_pruned_with_a_note() {
    let many = |count: usize| {
        (0..count)
            .map(|index| format!("p{index}: {{type: string, description: {}}}", "x".repeat(90)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let document = operation(&format!(
        "requestBody: {{required: true, content: {{application/json: {{schema: {{type: object, required: [p0], properties: {{{}}}}}}}}}}}\nresponses: {{}}",
        many(1000)
    ));
    let description = described(&document);
    let definition = &description.operations[0].definition;
    let schema = definition.get("inputSchema").unwrap();
    assert!(schema.as_bytes().len() <= input::MAX_INPUT_BYTES, "{}", schema.as_bytes().len());
    assert!(definition.get_str("description").unwrap().contains("cut for size"));
    let schema = schema.to_value();
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1001);
    assert_eq!(schema["properties"]["p0"]["type"], "string");
    assert_eq!(schema["properties"]["p999"], serde_json::json!({}));
}

#[test]
fn required_members_survive_pruning() {
    let values = (0..8000).map(|index| format!("value{index}")).collect::<Vec<_>>().join(", ");
    let input = |document: &str| {
        let description = described(document);
        let definition = &description.operations[0].definition;
        assert!(definition.get_str("description").unwrap().contains("cut for size"));
        let schema = definition.get("inputSchema").unwrap();
        assert!(schema.as_bytes().len() <= input::MAX_INPUT_BYTES);
        schema.to_value()
    };
    let query = operation(&format!(
        "parameters: [{{name: q, in: query, required: true, schema: {{type: string, enum: [{values}]}}}}]\nresponses: {{}}"
    ));
    assert_eq!(input(&query)["properties"]["q"], serde_json::json!({"type": "string"}));
    let nested = operation(
        "requestBody: {required: true, content: {application/json: {schema: {required: [a], properties: {a: {$ref: '#/components/schemas/A'}}}}}}\nresponses: {}",
    );
    let nested = format!(
        "{nested}components: {{schemas: {{A: {{type: object, required: [v, w], properties: {{v: {{type: string, enum: [{values}]}}, w: {{type: integer}}}}}}}}}}"
    );
    let schema = input(&nested);
    assert_eq!(schema["$defs"]["A"], serde_json::json!({"type": "object", "required": ["v", "w"]}));
}

#[test]
fn duplicate_parameter_is_merged() {
    let check = |second: &str, arguments: &[&str], faults: &[&str]| {
        let id = "{name: id, in: path, required: true, schema: {type: string}}";
        let description = described(&operation(&format!("parameters: [{id}, {second}]")));
        let parameters = &description.operations[0].operation.parameters;
        let seen: Vec<_> = parameters.iter().map(|parameter| &*parameter.argument).collect();
        assert_eq!(seen, arguments, "{second}");
        let seen: Vec<_> = description.faults.iter().map(|fault| &*fault.problem).collect();
        assert_eq!(seen, faults, "{second}");
    };
    check(
        "{name: id, in: path, required: true, schema: {type: integer}}",
        &["id"],
        &["duplicate parameter `id`: the last one is used"],
    );
    check("{name: id, in: query, schema: {type: string}}", &["id", "id_query"], &[]);
}

/// Each of these once exhausted the stack, or took too much time.
#[test]
fn recursive_documents_are_read() {
    let body = |media: &str, schemas: &str| {
        let document = format!(
            "openapi: 3.1.0\npaths: {{/a: {{post: {{requestBody: {{content: {{{media}: {{schema: {{$ref: '#/components/schemas/A0'}}}}}}}}, responses: {{}}}}}}}}\ncomponents: {{schemas: {{{schemas}}}}}"
        );
        described(&document).operations.len()
    };
    let form = "A0: {type: object, properties: {f: {$ref: '#/components/schemas/L'}}}, L: {type: array, items: {$ref: '#/components/schemas/L'}}";
    assert_eq!(body("multipart/form-data", form), 1);
    let alternatives = "A0: {type: object, properties: {f: {$ref: '#/components/schemas/L'}}}, L: {anyOf: [{$ref: '#/components/schemas/L'}]}";
    assert_eq!(body("multipart/form-data", alternatives), 1);
    let layer = |level: usize| {
        let branches = vec![format!("{{$ref: '#/components/schemas/A{}'}}", level + 1); 8].join(", ");
        format!("A{level}: {{allOf: [{branches}]}}, ")
    };
    let dag: String = (0..14).map(layer).collect();
    assert_eq!(body("application/json", &format!("{dag}A14: {{type: object}}")), 1);
    assert_eq!(body("application/json", "A0: {allOf: [{$ref: '#/components/schemas/A0'}]}"), 1);
}

#[test]
fn files_are_found_in_all_notations() {
    let kind = |part: &str, encoding: &str| {
        let document = operation(&format!(
            "requestBody: {{content: {{multipart/form-data: {{schema: {{type: object, properties: {{f: {part}}}}}, encoding: {{f: {encoding}}}}}}}}}\nresponses: {{}}"
        ));
        let body = described(&document).operations[0].operation.body.clone().unwrap();
        match body.kind {
            crate::operation::BodyKind::Multipart(parts) => format!("{:?}", parts[0].kind),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(kind("{type: string, format: binary}", "{}"), "File");
    assert_eq!(kind("{anyOf: [{type: string, format: binary}, {type: 'null'}]}", "{}"), "File");
    assert_eq!(kind("{type: array, items: {type: string, format: binary}}", "{}"), "File");
    assert_eq!(kind("{}", "{contentType: 'image/png, image/jpeg'}"), "File");
    assert_eq!(kind("{type: string}", "{}"), "Text");
    assert_eq!(kind("{type: object}", "{}"), "Json");
}

/// Sends the arguments to the only operation with this body, and returns the body.
fn sent(content: &str, arguments: &str) -> String {
    let document =
        operation(&format!("requestBody: {{required: true, content: {content}}}\nresponses: {{}}"));
    let described = described(&document).operations.remove(0);
    let arguments = toolyard_core::Json::parse(arguments.to_owned()).unwrap();
    let schema = described.definition.get("inputSchema").unwrap();
    let compiled = toolyard_core::schema::CompiledSchema::compile(&schema.to_value()).unwrap();
    compiled.check(&arguments.to_value(), &toolyard_core::schema::ValidationBudget::brief()).unwrap();
    let request = described.operation.request(Some(&arguments), Some("https://a.b")).unwrap();
    String::from_utf8_lossy(request.body()).into_owned()
}

/// No argument of these could be sent.
#[test]
fn form_that_is_not_an_object_can_be_sent() {
    let file = r#"{"id":"1","file":"aGVsbG8="}"#;
    let body = sent("{multipart/form-data: {schema: {type: string, format: binary}}}", file);
    assert!(
        body.contains("name=\"file\"; filename=\"file\"") && body.contains("\r\n\r\nhello\r\n"),
        "{body}"
    );
    let files = "{multipart/form-data: {schema: {type: array, items: {type: string, format: binary}}}}";
    let body = sent(files, r#"{"id":"1","file":["aGVsbG8=","aGVsbG8="]}"#);
    assert_eq!(body.matches("\r\n\r\nhello\r\n").count(), 2, "{body}");
    let body = sent(
        "{application/x-www-form-urlencoded: {schema: {type: string}}}",
        r#"{"id":"1","body":"a=1&b=2"}"#,
    );
    assert_eq!(body, "a=1&b=2");
}

#[test]
fn body_encoding_follows_the_schema() {
    let kind = |media: &str, schema: &str| {
        let document = operation(&format!(
            "requestBody: {{content: {{{media}: {{schema: {schema}}}}}}}\nresponses: {{}}"
        ));
        format!("{:?}", described(&document).operations[0].operation.body.clone().unwrap().kind)
    };
    assert_eq!(kind("application/sql", "{type: string}"), "Text");
    assert_eq!(kind("application/octet-stream", "{type: string}"), "Bytes");
    assert_eq!(kind("application/pdf", "{type: string, format: binary}"), "Bytes");
    assert_eq!(kind("application/vnd.thing", "{type: object, properties: {a: {}}}"), "Json");
    let patch = "requestBody: {content: {application/json-patch+json: {}, application/merge-patch+json: {schema: {type: object}}}}\nresponses: {}";
    let body = described(&operation(patch)).operations[0].operation.body.clone().unwrap();
    assert_eq!(body.media_type, "application/merge-patch+json");
}

#[test]
fn operations_with_the_same_name_get_suffixes() {
    let names = |paths: &str| {
        let description = described(&format!("openapi: 3.0.0\npaths: {{{paths}}}"));
        description.operations.iter().map(|it| it.operation.name.clone()).collect::<Vec<_>>()
    };
    let (z, new) = ("/z: {delete: {operationId: remove}}", "/new: {delete: {operationId: remove}}");
    let before = names(&format!("{z}, {new}"));
    let mut after = names(&format!("{new}, {z}"));
    after.reverse();
    assert_eq!(before, after);
    assert!(before.iter().all(|name| name.starts_with("remove_")), "{before:?}");
}

#[test]
fn result_schemas_are_lenient() {
    let document = operation(
        "responses: {'200': {content: {application/json: {schema: {type: object, properties: {pet: {oneOf: [{required: [a]}, {required: [b]}]}}}}}}}",
    );
    let description = described(&document);
    let output = description.operations[0].definition.get("outputSchema").unwrap();
    assert_eq!(
        output.as_text(),
        r#"{"type":"object","properties":{"pet":{"anyOf":[{"anyOf":[{},{}]},{"type":"null"}]}}}"#
    );
}

/// Headers of the connection are set by HTTP itself.
#[test]
fn headers_of_http_are_not_arguments() {
    let headers = ["Content-Length", "host", "Transfer-Encoding", "Connection", "Accept-Encoding", "X-Own"];
    let headers = headers.map(|name| format!("{{name: {name}, in: header, required: true, schema: {{}}}}"));
    let description =
        described(&operation(&format!("parameters: [{}]\nresponses: {{}}", headers.join(", "))));
    let schema = description.operations[0].definition.get("inputSchema").unwrap().to_value();
    assert_eq!(schema["required"], serde_json::json!(["X-Own", "id"]));
}

#[test]
fn required_members_of_an_optional_body_are_described() {
    let body = |text: &str| {
        let document = operation(&format!("summary: Create\nrequestBody: {text}\nresponses: {{}}"));
        let description = described(&document);
        description.operations[0].definition.get_str("description").unwrap().into_owned()
    };
    let schema =
        "{type: object, required: [name, id, at], properties: {name: {}, id: {}, at: {readOnly: true}}}";
    let json = |schema: &str| format!("{{content: {{application/json: {{schema: {schema}}}}}}}");
    assert_eq!(body(&json(schema)), "Create\n\nThe body needs `name` and `id_body`.");
    assert_eq!(body(&json("{type: object, properties: {a: {}}}")), "Create");
    let whole = "{oneOf: [{type: object}], required: [a, b, c], properties: {a: {}}}";
    assert_eq!(body(&json(whole)), "Create\n\n`body` needs the members `a`, `b` and `c`.");
    assert_eq!(body(&json(schema).replacen('{', "{required: true, ", 1)), "Create");
    let alternatives = |branches: &[&str]| {
        let branch = |names: &&str| format!("{{required: [{names}], properties: {{r: {{readOnly: true}}}}}}");
        let branches: Vec<_> = branches.iter().map(branch).collect();
        let body = body(&json(&format!("{{oneOf: [{}]}}", branches.join(", "))));
        body.strip_prefix("Create").unwrap().trim_start().to_owned()
    };
    assert_eq!(alternatives(&["p, r", "q, s"]), "`body` needs one of: `p`; `q` and `s`.");
    assert_eq!(alternatives(&["a, p", "q, a"]), "`body` needs the members `a`, and one of: `p`; `q`.");
    assert_eq!(alternatives(&["a, p", "a"]), "`body` needs the members `a`.");
    assert_eq!(alternatives(&["p", ""]), "");
    assert_eq!(alternatives(&["p", "q", "p"]), "`body` needs one of: `p`; `q`.");
    assert_eq!(alternatives(&["a, p", "a, q", "a, s", "a, t", "a, u"]), "`body` needs the members `a`.");
}
