use sha2::{Digest, Sha256};

use super::*;

/// Checks installed files with these contents.
fn checked(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let contents: BTreeMap<&str, &str> = files.iter().copied().collect();
    let installed =
        |text: &str| InstalledFile { sha256: Sha256::digest(text).into(), bytes: text.len() as u64 };
    let files: InstalledFiles =
        files.iter().map(|(path, text)| ((*path).to_owned(), installed(text))).collect();
    let left_out = check(&files, |path| Ok(contents[path].to_owned())).map_err(|fault| fault.to_string())?;
    Ok(left_out.into_iter().map(str::to_owned).collect())
}

/// Digest of "x".
const X: &str = "sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE";

#[test]
fn files_listed_in_a_record_are_kept() {
    let check = |files: &[(&str, &str)], left_out: &[&str]| {
        assert_eq!(
            checked(files).unwrap_or_else(|fault| panic!("{files:?}: {fault}")),
            left_out,
            "{files:?}"
        );
    };
    check(&[], &[]);
    let record = format!("a.py,{X},1\na-1.dist-info/RECORD,,\n");
    check(&[("a-1.dist-info/RECORD", &record), ("a.py", "x")], &[]);
    check(&[("a-1.dist-info/RECORD", &record), ("a.py", "x"), ("__pycache__/a.cpython-311.pyc", "y")], &[]);
    // A listed file may be missing.
    check(&[("a-1.dist-info/RECORD", &record)], &[]);
    let padded = format!("a.py,{X}=,\r\n");
    check(&[("a-1.dist-info/RECORD", &padded), ("a.py", "x")], &[]);
    let program = format!("../../bin/a,{X},1\n");
    check(&[("a-1.dist-info/RECORD", &program), ("bin/a", "x")], &[]);
    let quoted = format!("\"a,\"\"b.py\",{X},1\n");
    check(&[("a-1.dist-info/RECORD", &quoted), ("a,\"b.py", "x")], &[]);
    let weights = format!("a/weights.pth,{X},1\n");
    check(&[("a-1.dist-info/RECORD", &weights), ("a/weights.pth", "x")], &[]);
    // The file belongs to the package that was installed last.
    let other = "a.py,sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,7\n";
    check(&[("a-1.dist-info/RECORD", &record), ("b-1.dist-info/RECORD", other), ("a.py", "x")], &[]);
    let setuptools = format!("distutils-precedence.pth,{X},1\nz-1-py3.7-nspkg.pth,{X},1\n");
    check(
        &[
            ("s-1.dist-info/RECORD", &setuptools),
            ("distutils-precedence.pth", "x"),
            ("z-1-py3.7-nspkg.pth", "x"),
        ],
        &["distutils-precedence.pth", "z-1-py3.7-nspkg.pth"],
    );
}

#[test]
fn forbidden_file_is_refused_with_its_path() {
    let check = |files: &[(&str, &str)], expected: &str| {
        assert_eq!(checked(files).unwrap_err(), expected, "{files:?}");
    };
    let record = format!(
        "a.py,{X},1\na.pth,{X},1\na/site-packages/b.PTH,{X},1\na-1.dist-info/direct_url.json,{X},1\n"
    );
    let with = |path: &'static str, text: &'static str, expected: &str| {
        check(&[("a-1.dist-info/RECORD", &record), (path, text)], expected);
    };
    with("a.py", "y", "a.py: content differs from the RECORD of its package");
    with("b.py", "x", "b.py: not listed in the RECORD of any package");
    with("a.pth", "x", "a.pth: a path file runs code when an interpreter starts");
    with(
        "a/site-packages/b.PTH",
        "x",
        "a/site-packages/b.PTH: a path file runs code when an interpreter starts",
    );
    with(
        "a-1.dist-info/direct_url.json",
        "x",
        "a-1.dist-info/direct_url.json: the package came from a URL, not from the index",
    );
    // A RECORD in another folder is ignored.
    check(
        &[("x/a-1.dist-info/RECORD", &record)],
        "x/a-1.dist-info/RECORD: not listed in the RECORD of any package",
    );
    let check_record = |text: &str, why: &str| {
        check(&[("a-1.dist-info/RECORD", text), ("a.py", "x")], why);
    };
    check_record("a.py,,\n", "a.py: no SHA-256 digest in the RECORD of its package");
    check_record("a.py\n", "a-1.dist-info/RECORD: a line of the RECORD does not have three fields");
    check_record("\"a.py,,\n", "a-1.dist-info/RECORD: a line of the RECORD does not have three fields");
    check_record("a.py,md5=AAAA,1\n", "a-1.dist-info/RECORD: the RECORD has a digest other than SHA-256");
    check_record("a.py,sha256=!,1\n", "a-1.dist-info/RECORD: the RECORD has a malformed digest");
}
