use super::*;

fn project() -> Project {
    Project::of_source(Kind::Mcp, Language::Lua, "function cortexone_handler() end")
}

#[test]
fn what_is_no_function_says_why() {
    let check = |change: &dyn Fn(&mut Project), expected: &str| {
        let mut project = project();
        change(&mut project);
        assert_eq!(project.check().unwrap_err().to_string(), expected);
    };
    let file =
        |name: &'static str| move |project: &mut Project| project.files.push((name.into(), Bytes::new()));
    project().check().unwrap();
    check(
        &|project| project.language = Language::Python,
        "a function in this language has its handler in cortexone_function.py, which is not there",
    );
    for name in ["/etc/passwd", "../x", "a/../b", "a//b", "", "./a", "a\\b", "c:a", "a\nb"] {
        let expected = format!(
            "{name:?} is no name for a file of a function: relative, without `..`, and of at most 200 bytes"
        );
        check(&file(name), &expected);
    }
    check(&file("cortexone_function.lua"), "there are two files called \"cortexone_function.lua\"");
    let both = |first: &'static str, second: &'static str| {
        move |project: &mut Project| {
            project.files.extend([first, second].map(|name| (name.into(), Bytes::new())))
        }
    };
    for (first, second) in [("a", "a/b"), ("a/b/c/d", "a")] {
        check(&both(first, second), "\"a\" cannot be both a file of a function and a folder of it");
    }
    let mut fine = project();
    both("a/b", "a.b")(&mut fine);
    fine.check().unwrap();
    check(
        &|project| project.files.extend((0..200).map(|number| (format!("{number}"), Bytes::new()))),
        "a function has at most 200 files: this one has 201",
    );
    check(
        &|project| project.files.push(("data".into(), vec![0; MOST_BYTES].into())),
        "a function has at most 10485760 bytes in its files: this one has 10485792",
    );
    check(
        &|project| project.limits.wall = Duration::ZERO,
        "the time in seconds of a function is between 1 and 900: 0 is not",
    );
    check(
        &|project| project.limits.memory_bytes = u64::MAX,
        "the memory in MiB of a function is between 16 and 4096: 17592186044415 is not",
    );
    check(
        &|project| project.limits.concurrent = 0,
        "the number of calls at a time of a function is between 1 and 256: 0 is not",
    );
    for name in ["", "1A", "A-B", "LD_PRELOAD", "PYTHONPATH", "A=B", "Ä"] {
        let expected = format!(
            "{name:?} cannot be the name of a function's variable: letters, digits and `_`, and none that loaders read"
        );
        check(&|project| drop(project.environment.insert(name.into(), String::new())), &expected);
    }
}

#[test]
fn a_reply_contains_what_is_expected() {
    let check = |reply: &'static str, expect: &'static str, expected: bool| {
        let expect = Some(Json::parse(expect).unwrap());
        let test = TestCase { name: "test".into(), event: Json::null(), expect };
        assert_eq!(
            test.is_met_by(&Json::parse(reply).unwrap()),
            expected,
            "{expect:?} of {reply}",
            expect = test.expect
        );
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
    assert!(any.is_met_by(&Json::null()));
}

#[test]
fn no_secret_is_shown() {
    let mut project = project();
    project.environment.insert("TOKEN".into(), "hunter2".into());
    let shown = format!("{project:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
}
