//! Packages of scripts, with the real pip and packages from a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::machine::{ALL, TestUser, process, run, run_script};

/// Builds a wheel, as build tools do, whose module has its version.
const WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
folder, name, version, size = sys.argv[1:]
info = f"{name}-{version}.dist-info"
record = f"{info}/RECORD,,\n"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in [
        (f"{name}.py", f"VERSION = '{version}'\n"),
        (f"{name}_more.py", "MORE = 'more'\n"),
        (f"{name}.dat", "x" * int(size)),
        (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
        (f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
    ]:
        wheel.writestr(path, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(text)}\n"
    wheel.writestr(f"{info}/RECORD", record)
"#;

/// Creates a folder that all users can enter.
pub(crate) fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Builds a wheel in a folder.
pub(crate) fn wheel(folder: &Path, name: &str, version: &str, size: usize) {
    let status = process("/usr/bin/python3")
        .args(["-c", WHEEL])
        .arg(folder)
        .args([name, version, &size.to_string()])
        .status();
    assert!(status.unwrap().success());
}

fn wheels() -> TempDir {
    let folder = open_folder();
    wheel(folder.path(), "yardstick", "1.5", 10);
    folder
}

fn with(cache: &Path, index: [(&str, &str); 2]) -> Value {
    let config = ("PIP_CONFIG_FILE", "/dev/null");
    json!({"packages": cache, "pip": [index[0], index[1], config]})
}

fn asking(packages: &[&str]) -> Value {
    let source = "import yardstick, yardstick_more; print(yardstick.VERSION, yardstick_more.MORE)";
    json!({"source": source, "packages": packages})
}

#[test]
fn packages_are_installed_once_and_read_only() {
    let (shop, gone) = (wheels(), open_folder());
    for user in ALL {
        let cache = open_folder();
        let links = shop.path().to_str().unwrap();
        let mut request = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", links)]);
        let write = "import yardstick, os\ntry: open(os.path.dirname(yardstick.__file__) + '/x', 'w')\nexcept OSError: print('read-only')";
        request["scripts"] = json!([
            asking(&["yardstick>=1", ""]),
            asking(&["yardstick>=1"]),
            {"source": write, "packages": ["yardstick>=1"]},
            {"source": "import yardstick"},
        ]);
        let result = run(user, request);
        assert_eq!(result[0]["output"], "1.5 more\n", "{user:?} {result:?}");
        assert_eq!(result[1]["output"], "1.5 more\n", "{user:?} {result:?}");
        if user != TestUser::Unprotected {
            assert_eq!(result[2]["output"], "read-only\n", "{user:?} {result:?}");
        }
        assert_eq!(result[3]["exit_code"], 1, "{user:?} {result:?}");

        // Another gateway finds the packages, although there is no source to install them from.
        let links = gone.path().to_str().unwrap();
        let offline = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", links)]);
        let result = run_script(user, asking(&["yardstick>=1"]), offline);
        assert_eq!(result["output"], "1.5 more\n", "{user:?} {result}");
    }
}

#[test]
fn installation_does_not_count_as_script_time() {
    let (shop, cache) = (wheels(), open_folder());
    let links = shop.path().to_str().unwrap();
    let request = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", links)]);
    let mut script = asking(&["yardstick"]);
    script["timeout_ms"] = json!(5000);
    let result = run_script(TestUser::Root, script, request);
    assert_eq!(result["output"], "1.5 more\n", "{result}");
    assert!(result["elapsed_ms"].as_f64().unwrap() < 5000.0, "{result}");
}

#[test]
fn invalid_requirements_are_refused() {
    let cache = open_folder();
    let request = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/nowhere")]);
    for line in [
        "--index-url=http://127.0.0.1:1/simple",
        "-r /etc/passwd",
        "-e .",
        "git+https://127.0.0.1/x",
        "x @ file:///etc/passwd",
        "./x.whl",
        "/etc/passwd",
        "x --pre",
        "x\n--pre",
        "x\\\n--pre",
        "$(id)",
    ] {
        let refused =
            run_script(TestUser::Root, json!({"source": "print(1)", "packages": [line]}), request.clone());
        assert_eq!(refused["code"], "invalid_arguments", "{line:?} {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(" of the packages, "), "{message}");
    }
}

#[test]
fn installation_error_omits_the_credentials_of_the_index() {
    let cache = open_folder();
    let none = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/nowhere")]);
    let index = [("PIP_INDEX_URL", "http://user:s3cret@127.0.0.1:1/simple"), ("PIP_RETRIES", "0")];
    for request in [none, with(cache.path(), index)] {
        let refused = run_script(TestUser::Root, asking(&["no-such-package"]), request);
        assert_eq!(refused["code"], "execution_failed", "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("No matching distribution found for no-such-package"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[test]
fn packages_without_an_installer_are_refused() {
    let refused = run_script(TestUser::Root, asking(&["six"]), json!({}));
    let message = "No packages are installed for scripts here: use the standard library alone";
    assert_eq!(refused, json!({"code": "invalid_arguments", "message": message}));
    let result = run_script(TestUser::Root, json!({"source": "print(1)", "packages": ["", " "]}), json!({}));
    assert_eq!(result["output"], "1\n", "{result}");
}
