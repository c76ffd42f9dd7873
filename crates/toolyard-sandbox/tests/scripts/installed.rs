//! Packages of scripts, which the real pip finds in a folder and nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::machine::{ALL, Who, once, process, run};

/// Makes a wheel as build tools do, whose module says its version, and whose `.pth` file is read.
const WHEEL: &str = r#"
import sys, zipfile
folder, name, version = sys.argv[1:]
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", f"VERSION = '{version}'\n")
    wheel.writestr(f"more/{name}_more.py", "MORE = 'more'\n")
    wheel.writestr(f"{name}.pth", "more\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

/// A folder that all users may enter.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn wheels() -> TempDir {
    let folder = open_folder();
    let made = process("/usr/bin/python3")
        .args(["-c", WHEEL])
        .arg(folder.path())
        .args(["yardstick", "1.5"])
        .status();
    assert!(made.unwrap().success());
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
fn packages_are_installed_once_and_are_read_only() {
    let (shop, gone) = (wheels(), open_folder());
    for who in ALL {
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
        let ended = run(who, request);
        assert_eq!(ended[0]["output"], "1.5 more\n", "{who:?} {ended:?}");
        assert_eq!(ended[1]["output"], "1.5 more\n", "{who:?} {ended:?}");
        if who != Who::Unprotected {
            assert_eq!(ended[2]["output"], "read-only\n", "{who:?} {ended:?}");
        }
        assert_eq!(ended[3]["exit_code"], 1, "{who:?} {ended:?}");

        // Another gateway finds them where there is nothing to install them from.
        let links = gone.path().to_str().unwrap();
        let offline = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", links)]);
        let ended = once(who, asking(&["yardstick>=1"]), offline);
        assert_eq!(ended["output"], "1.5 more\n", "{who:?} {ended}");
    }
}

#[test]
fn the_time_of_a_script_is_its_own() {
    let (shop, cache) = (wheels(), open_folder());
    let links = shop.path().to_str().unwrap();
    let request = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", links)]);
    let mut script = asking(&["yardstick"]);
    script["timeout_ms"] = json!(5000);
    let ended = once(Who::Root, script, request);
    assert_eq!(ended["output"], "1.5 more\n", "{ended}");
    assert!(ended["elapsed_ms"].as_f64().unwrap() < 5000.0, "{ended}");
}

#[test]
fn what_is_no_package_is_refused() {
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
        let refused = once(Who::Root, json!({"source": "print(1)", "packages": [line]}), request.clone());
        assert_eq!(refused["code"], "invalid_arguments", "{line:?} {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(" of the packages, "), "{message}");
    }
}

#[test]
fn what_cannot_be_installed_says_why_without_the_credentials_of_the_index() {
    let cache = open_folder();
    let none = with(cache.path(), [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/nowhere")]);
    let index = [("PIP_INDEX_URL", "http://user:s3cret@127.0.0.1:1/simple"), ("PIP_RETRIES", "0")];
    for request in [none, with(cache.path(), index)] {
        let refused = once(Who::Root, asking(&["no-such-package"]), request);
        assert_eq!(refused["code"], "execution_failed", "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("No matching distribution found for no-such-package"), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[test]
fn where_no_packages_are_installed_scripts_that_want_some_are_refused() {
    let refused = once(Who::Root, asking(&["six"]), json!({}));
    let message = "No packages are installed for scripts here: use the standard library alone";
    assert_eq!(refused, json!({"code": "invalid_arguments", "message": message}));
    let ended = once(Who::Root, json!({"source": "print(1)", "packages": ["", " "]}), json!({}));
    assert_eq!(ended["output"], "1\n", "{ended}");
}
