//! Cache of packages, with the real pip in a sandbox and packages from a folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::packages::{PackageInstaller, PackageOptions};
use toolyard_sandbox::{Sandbox, SandboxOptions};

use crate::machine::{BINARY, InstallerKind};
use crate::packages::{open_folder, wheel};

struct Shop {
    folder: TempDir,
}

impl Shop {
    fn new() -> Self {
        let folder = open_folder();
        fs::create_dir(folder.path().join("wheels")).unwrap();
        Self { folder }
    }

    fn sell(&self, name: &str, size: usize) {
        wheel(&self.folder.path().join("wheels"), name, "1.0", size);
    }

    fn options(&self) -> PackageOptions {
        let env = [
            ("PIP_NO_INDEX", "1".into()),
            ("PIP_CONFIG_FILE", "/dev/null".into()),
            ("PIP_FIND_LINKS", self.folder.path().join("wheels").into_os_string()),
        ];
        let processes = ProcessTable::new(ProcessSpawner::supervised_by(BINARY), 8);
        let sandbox = SandboxOptions { binary: BINARY.into(), ..SandboxOptions::new(processes) };
        PackageOptions {
            uv: None,
            env: env.map(|(name, value): (&str, OsString)| (name.into(), value)).to_vec(),
            ..PackageOptions::new(Sandbox::new(sandbox), self.cache())
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
async fn concurrent_requests_install_a_list_once() {
    let shop = Shop::new();
    shop.sell("yardstick", 10);
    let packages = PackageInstaller::new(shop.options());
    let installations = (0..10).map(|number| {
        let (packages, list) = (packages.clone(), format!("# {number}\nYardstick == 1.0\n"));
        async move { packages.environment(&list).await.unwrap() }
    });
    let environments = futures_util::future::join_all(installations).await;
    for environment in &environments {
        assert_eq!(environment.path(), environments[0].path());
        assert_eq!(version_of(environment.path(), "yardstick"), "VERSION = '1.0'\n");
    }
    assert_eq!(shop.cached().len(), 1);

    // Another gateway finds the packages and needs no pip.
    fs::remove_dir_all(shop.folder.path().join("wheels")).unwrap();
    let other = PackageInstaller::new(shop.options());
    let environment = other.environment("yardstick==1.0").await.unwrap();
    assert_eq!(environment.path(), environments[0].path());
}

#[tokio::test]
async fn compiled_modules_match_their_sources() {
    for installer in InstallerKind::BOTH {
        let shop = Shop::new();
        shop.sell("yardstick", 10);
        let options = PackageOptions { uv: installer.uv(), ..shop.options() };
        let environment = PackageInstaller::new(options).environment("yardstick").await.unwrap();
        let compiled = environment.path().join("__pycache__");
        let compiled = fs::read_dir(compiled).unwrap().flatten().next().unwrap();
        let compiled = fs::read(compiled.path()).unwrap();
        let source = fs::metadata(environment.path().join("yardstick.py")).unwrap();
        let modified = source.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        // The header of a compiled module: magic number, no flags, time of the source.
        assert_eq!(compiled[8..12], u32::try_from(modified).unwrap().to_le_bytes(), "{installer:?}");
    }
}

#[tokio::test]
async fn uv_checks_digests_and_reports_errors() {
    let shop = Shop::new();
    shop.sell("yardstick", 10);
    let packages = PackageInstaller::new(PackageOptions { uv: InstallerKind::Uv.uv(), ..shop.options() });
    let check = async |list: &str, expected: &str| {
        let refused = packages.environment(list).await.unwrap_err().to_string();
        assert!(refused.starts_with("uv cannot install the packages: error: "), "{refused}");
        assert!(refused.contains(expected), "{refused}");
        assert_eq!(shop.cached(), Vec::<String>::new());
    };
    check("absent", "absent was not found").await;
    let digest = "0".repeat(64);
    check(&format!("yardstick==1.0 --hash=sha256:{digest}"), "Hash mismatch").await;
    // With one digest, all requirements need one, as with pip.
    shop.sell("other", 10);
    check(&format!("yardstick==1.0 --hash=sha256:{digest}\nother==1.0"), "--require-hashes").await;
}

#[tokio::test]
async fn pip_replaces_an_unusable_uv() {
    let shop = Shop::new();
    shop.sell("yardstick", 10);
    let options = PackageOptions { uv: Some("/usr/bin/true".into()), ..shop.options() };
    let environment = PackageInstaller::new(options).environment("yardstick").await.unwrap();
    assert_eq!(version_of(environment.path(), "yardstick"), "VERSION = '1.0'\n");
}

#[tokio::test]
async fn failed_installation_reports_the_reason_and_leaves_nothing() {
    let shop = Shop::new();
    shop.sell("heavy", 3 << 20);
    let check = async |options: PackageOptions, list: &str| {
        let refused = PackageInstaller::new(options).environment(list).await.unwrap_err();
        assert_eq!(shop.cached(), Vec::<String>::new());
        refused.to_string()
    };
    let missing = check(shop.options(), "absent").await;
    assert!(missing.contains("No matching distribution found for absent"), "{missing}");
    let large = check(PackageOptions { max_bytes: 1 << 20, ..shop.options() }, "heavy").await;
    assert_eq!(large, "the packages exceed 1048576 bytes");
    let late = check(PackageOptions { timeout: Duration::from_millis(1), ..shop.options() }, "heavy").await;
    assert_eq!(late, "the packages were not installed within 0 s");
    let python = check(PackageOptions { python: "no-such-python".into(), ..shop.options() }, "heavy").await;
    assert!(python.starts_with("no Python with pip: cannot start"), "{python}");
}

#[tokio::test]
async fn empty_list_needs_no_installation() {
    let shop = Shop::new();
    let environment = PackageInstaller::new(shop.options()).environment("# nothing\n").await.unwrap();
    assert_eq!(fs::read_dir(environment.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn unfinished_folders_of_a_dead_gateway_are_removed_at_the_next_start() {
    let shop = Shop::new();
    let unfinished = shop.cache().join("unfinished-1-0-x");
    fs::create_dir_all(unfinished.join("packages")).unwrap();
    fs::write(unfinished.join("lock"), "").unwrap();
    let _packages = PackageInstaller::new(shop.options());
    let removal = async {
        while unfinished.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), removal).await.unwrap();
}
