use super::*;

fn project() -> FunctionProject {
    FunctionProject::from_source(FunctionKind::Mcp, SourceLanguage::Lua, "function cortexone_handler() end")
}

#[test]
fn invalid_project_is_refused() {
    let check = |change: &dyn Fn(&mut FunctionProject), expected: &str| {
        let mut project = project();
        change(&mut project);
        assert_eq!(project.check().unwrap_err().to_string(), expected);
    };
    let file = |name: &'static str| {
        move |project: &mut FunctionProject| project.files.push((name.into(), Bytes::new()))
    };
    project().check().unwrap();
    check(
        &|project| project.language = SourceLanguage::Python,
        "missing file cortexone_function.py with the handler",
    );
    for name in ["/etc/passwd", "../x", "a/../b", "a//b", "", "./a", "a\\b", "c:a", "a\nb"] {
        let expected =
            format!("invalid file name {name:?}: must be relative, without `..`, and at most 200 bytes long");
        check(&file(name), &expected);
    }
    check(&file("cortexone_function.lua"), "duplicate file \"cortexone_function.lua\"");
    let both = |first: &'static str, second: &'static str| {
        move |project: &mut FunctionProject| {
            project.files.extend([first, second].map(|name| (name.into(), Bytes::new())))
        }
    };
    for (first, second) in [("a", "a/b"), ("a/b/c/d", "a")] {
        check(&both(first, second), "\"a\" is both a file and a folder");
    }
    let mut fine = project();
    both("a/b", "a.b")(&mut fine);
    fine.check().unwrap();
    check(
        &|project| project.files.extend((0..200).map(|number| (format!("{number}"), Bytes::new()))),
        "too many files: 201, the maximum is 200",
    );
    check(
        &|project| project.files.push(("data".into(), vec![0; MAX_BYTES].into())),
        "too many bytes in its files: 10485792, the maximum is 10485760",
    );
    check(
        &|project| project.limits.time_limit = Duration::ZERO,
        "the time in seconds must be between 1 and 900, not 0",
    );
    check(
        &|project| project.limits.memory_bytes = u64::MAX,
        "the memory in MiB must be between 16 and 4096, not 17592186044415",
    );
    check(
        &|project| project.limits.max_concurrent = 0,
        "the number of concurrent calls must be between 1 and 256, not 0",
    );
    for name in ["", "1A", "A-B", "LD_PRELOAD", "PYTHONPATH", "A=B", "Ä"] {
        let expected = format!(
            "invalid variable name {name:?}: letters, digits and `_`, and no variable of loaders or interpreters"
        );
        check(&|project| drop(project.environment.insert(name.into(), String::new())), &expected);
    }
}

#[test]
fn expected_values_are_found_in_replies() {
    let check = |reply: &'static str, expect: &'static str, expected: bool| {
        let expect = Some(Json::parse(expect).unwrap());
        let test = TestCase { name: "test".into(), event: Json::null(), expect };
        let difference = test.difference(&Json::parse(reply).unwrap());
        assert_eq!(difference.is_none(), expected, "{expect:?} of {reply}", expect = test.expect);
    };
    check(r#"{"a":1,"b":{"c":[1,{"d":2,"e":3}]}}"#, r#"{"b":{"c":[1,{"e":3}]}}"#, true);
    check(r#"{"a":1.0}"#, r#"{"a":1}"#, true);
    check(r#"{"a":1}"#, r#"{"a":2}"#, false);
    check(r#"{"a":1}"#, r#"{"a":"1"}"#, false);
    check(r#"{"a":null}"#, r#"{"a":null}"#, true);
    check("{}", r#"{"a":null}"#, false);
    check("[1,2]", "[1]", false);
    check("[2,1]", "[1,2]", false);
    check(r#"{"a":[]}"#, r#"{"a":{}}"#, false);
    let any = TestCase { name: "any".into(), event: Json::null(), expect: None };
    assert_eq!(any.difference(&Json::null()), None);
}

#[test]
fn debug_output_omits_secrets() {
    let mut project = project();
    project.environment.insert("TOKEN".into(), "hunter2".into());
    let text = format!("{project:?}");
    assert!(text.contains("TOKEN") && !text.contains("hunter2"), "{text}");
}
