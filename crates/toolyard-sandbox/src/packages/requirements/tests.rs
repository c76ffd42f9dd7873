use super::*;

const SHA256: &str = "--hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn parsed_list_is_normalized() {
    let check = |list: &str, expected: &str| {
        let read = RequirementList::parse(list).unwrap_or_else(|error| panic!("{list:?}: {error}"));
        assert_eq!(read.text(), expected, "{list:?}");
        assert_eq!(RequirementList::parse(expected).unwrap(), read, "{list:?}");
    };
    check("", "");
    check("# nothing\n\n  # at all", "");
    check("requests\r\nnumpy == 1.2  # fast\n\tx\t# tab", "requests\nnumpy==1.2\nx");
    check("Zope.Interface", "zope-interface");
    check("a__-.b", "a-b");
    check("a[]", "a");
    check("a [ B_x , c ] >= 1 , < 2", "a[b-x,c]>=1,<2");
    check("a==1.*", "a==1.*");
    check("a (>=1)", "a>=1");
    check("a~=1.4.2rc1", "a~=1.4.2rc1");
    check("a==1!2.0+local.1", "a==1!2.0+local.1");
    check("a;python_version<'3.12'", "a ; python_version < '3.12'");
    check(
        "a>1; (sys_platform == \"linux\" or os_name in 'nt posix') and '3' not  in python_version",
        "a>1 ; (sys_platform == \"linux\" or os_name in 'nt posix') and '3' not in python_version",
    );
    check(&format!("a==1 \\\n  {SHA256} \\\n  {SHA256}"), &format!("a==1 {SHA256} {SHA256}"));
    check(&format!("a; extra == 'x' {SHA256}"), &format!("a ; extra == 'x' {SHA256}"));
}

#[test]
fn invalid_dependency_specifiers_are_refused() {
    for line in [
        "--index-url=http://evil",
        "-r other.txt",
        "-e .",
        SHA256,
        "git+https://example.com/x",
        "a @ https://example.com/a.whl",
        "a@file:///etc/passwd",
        "./a.whl",
        "/etc/passwd",
        "../a",
        "file:a",
        "a --global-option=x",
        "a==1.0 --no-binary=a",
        "a==1.0 --no-binary a",
        "a==1.0 --only-binary=:none:",
        "a==1.0 --install-option=x",
        "a==1.0 --config-settings=x=y",
        "a==1.0\t--no-binary=:all:",
        "a --pre",
        "a==1 --hash=sha256:abc",
        "a==1 --hash=md5:d41d8cd98f00b204e9800998ecf8427e",
        "a==1 --hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 --no-binary=a",
        "a==1--hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "a b",
        "a==",
        "a==1 2",
        "a>=1,",
        "a>=x",
        "a=1",
        "a\u{0}",
        "ä",
        ".",
        "a-",
        "a[",
        "a[b",
        "a[b;c]",
        "a(>=1",
        "$(touch x)",
        "a==${SECRET}",
        "a;`x`",
        "a;",
        "a; os_name",
        "a; os_name == 'x",
        "a; os_name == 'x' or",
        "a; os_name == 'x' and os_name",
        "a; who == 'x'",
        "a; os_name == '${SECRET}'",
        "a; os_name == 'x --index-url=http://evil'",
        "a; os_name == 'x --no-binary'",
        "a; os_name == 'x' --no-binary=a",
        "a; (os_name == 'x'",
    ] {
        let refused = RequirementList::parse(&format!("fine\n{line}")).unwrap_err();
        assert!(matches!(refused, PackageError::InvalidLine { number: 2, .. }), "{line:?}: {refused:?}");
    }
}

#[test]
fn lists_and_markers_have_maximum_sizes() {
    assert!(RequirementList::parse(&"a\n".repeat(200)).is_ok());
    assert_eq!(RequirementList::parse(&"a\n".repeat(201)), Err(PackageError::TooLong(200)));
    assert_eq!(RequirementList::parse(&"#".repeat(65537)), Err(PackageError::TooLong(200)));
    let marker = |count: usize| format!("a; {}", vec!["os_name == 'x'"; count].join(" or "));
    assert!(RequirementList::parse(&marker(32)).is_ok());
    assert!(RequirementList::parse(&marker(33)).is_err());
    let nested = |depth: usize| format!("a; {}os_name == 'x'{}", "(".repeat(depth), ")".repeat(depth));
    assert!(RequirementList::parse(&nested(8)).is_ok());
    assert!(RequirementList::parse(&nested(9)).is_err());
    assert!(RequirementList::parse(&"(".repeat(60_000)).is_err());
}

#[test]
fn error_has_the_line_number_of_the_list() {
    let refused = RequirementList::parse("a \\\n  ==1\n\nb b").unwrap_err();
    assert!(matches!(refused, PackageError::InvalidLine { number: 4, .. }), "{refused:?}");
}
