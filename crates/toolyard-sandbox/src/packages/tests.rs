//! With the real pip, which finds the packages of these tests in a folder and nowhere else.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use toolyard_process::Spawner;

use super::*;

/// Makes a wheel as build tools do: a package of one module that says its version.
const WHEEL: &str = r#"
import sys, zipfile
folder, name, version, size = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}.py", f"VERSION = '{version}'\n")
    wheel.writestr(f"{name}.dat", b"x" * size)
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

struct Shop {
    folder: TempDir,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("wheels")).unwrap();
        Self { folder }
    }

    fn sell(&self, name: &str, version: &str, size: usize) {
        let wheels = self.folder.path().join("wheels");
        let made = Command::new("python3")
            .args(["-c", WHEEL])
            .arg(wheels)
            .args([name, version, &size.to_string()])
            .status();
        assert!(made.unwrap().success());
    }

    fn options(&self) -> PackageOptions {
        let env = [
            ("PIP_NO_INDEX", "1".into()),
            ("PIP_CONFIG_FILE", "/dev/null".into()),
            ("PIP_FIND_LINKS", self.folder.path().join("wheels").into_os_string()),
        ];
        PackageOptions {
            env: env.map(|(name, value): (&str, OsString)| (name.into(), value)).to_vec(),
            ..PackageOptions::new(Processes::new(Spawner::Direct, 8), self.cache())
        }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn cached(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

fn version_of(packages: &Path, name: &str) -> String {
    fs::read_to_string(packages.join(format!("{name}.py"))).unwrap()
}

#[tokio::test]
async fn a_list_is_installed_once_also_when_many_ask() {
    let shop = Shop::new();
    shop.sell("yardstick", "1.0", 10);
    let processes = Processes::new(Spawner::Direct, 8);
    let packages = Packages::new(PackageOptions { processes: processes.clone(), ..shop.options() });
    let asked = (0..10).map(|number| {
        let (packages, list) = (packages.clone(), format!("# {number}\nyardstick==1.0\n"));
        async move { packages.environment(&list).await.unwrap() }
    });
    let environments = futures_util::future::join_all(asked).await;
    for environment in &environments {
        assert_eq!(environment.path(), environments[0].path());
        assert_eq!(version_of(environment.path(), "yardstick"), "VERSION = '1.0'\n");
    }
    assert_eq!(shop.cached().len(), 1);

    // Another gateway finds it, and needs no pip for that.
    fs::remove_dir_all(shop.folder.path().join("wheels")).unwrap();
    let other = Packages::new(shop.options());
    let found = other.environment("yardstick==1.0").await.unwrap();
    assert_eq!(found.path(), environments[0].path());
}

#[tokio::test]
async fn what_cannot_be_installed_says_why_and_leaves_nothing() {
    let shop = Shop::new();
    shop.sell("heavy", "1.0", 3 << 20);
    let check = async |options: PackageOptions, list: &str| {
        let refused = Packages::new(options).environment(list).await.unwrap_err();
        assert_eq!(shop.cached(), Vec::<String>::new());
        refused.to_string()
    };
    let missing = check(shop.options(), "absent").await;
    assert!(missing.contains("No matching distribution found for absent"), "{missing}");
    let large = check(PackageOptions { most_bytes: 1 << 20, ..shop.options() }, "heavy").await;
    assert_eq!(large, "the packages take more than 1048576 bytes");
    let late = check(PackageOptions { time: Duration::from_millis(1), ..shop.options() }, "heavy").await;
    assert_eq!(late, "the packages were not installed within 0 s");
    let python = check(PackageOptions { python: "no-such-python".into(), ..shop.options() }, "heavy").await;
    assert!(python.starts_with("packages need Python with pip: cannot start"), "{python}");
}

#[tokio::test]
async fn code_of_packages_does_not_run_when_they_are_installed() {
    let shop = Shop::new();
    let source = shop.folder.path().join("source");
    let ran = shop.folder.path().join("ran");
    fs::create_dir(&source).unwrap();
    let setup = format!("open({:?}, 'w').close()\nimport setuptools\nsetuptools.setup(name='evil')\n", ran);
    fs::write(source.join("setup.py"), setup).unwrap();
    let archive = Command::new("tar")
        .arg("-czf")
        .arg(shop.folder.path().join("wheels/evil-1.0.tar.gz"))
        .args(["-C", shop.folder.path().to_str().unwrap(), "--transform", "s/source/evil-1.0/", "source"])
        .status();
    assert!(archive.unwrap().success());
    let refused = Packages::new(shop.options()).environment("evil").await.unwrap_err();
    assert!(refused.to_string().contains("No matching distribution found for evil"), "{refused}");
    assert!(!ran.exists());
}

#[tokio::test]
async fn what_was_used_longest_ago_goes_and_what_is_in_use_stays() {
    let shop = Shop::new();
    for name in ["first", "second", "third"] {
        shop.sell(name, "1.0", 1 << 20);
    }
    let packages = Packages::new(PackageOptions { cache_bytes: 3 << 19, ..shop.options() });
    let first = packages.environment("first").await.unwrap();
    drop(packages.environment("second").await.unwrap());
    drop(packages.environment("third").await.unwrap());
    fs::create_dir(shop.cache().join("unfinished-1-0-x")).unwrap();
    fs::write(shop.cache().join("unfinished-1-0-x/lock"), "").unwrap();
    packages.shared.work.cache.make_room(3 << 19).await;
    assert_eq!(version_of(first.path(), "first"), "VERSION = '1.0'\n");
    assert_eq!(shop.cached().len(), 2, "{:?}", shop.cached());
    assert!(packages.shared.work.cache.find(&digest_of(&packages, "second").await).await.is_none());
    drop(first);
    packages.shared.work.cache.make_room(0).await;
    assert_eq!(shop.cached(), Vec::<String>::new());
}

async fn digest_of(packages: &Packages, list: &str) -> String {
    packages.shared.work.digest(&Requirements::parse(list).unwrap()).await.unwrap()
}
