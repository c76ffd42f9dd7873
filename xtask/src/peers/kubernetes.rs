//! The API server and the controller manager of Kubernetes, and kubectl. No registry has these programs, so they are built
//! from Debian's source package with Debian's Go: once per machine, in some minutes, and cached outside of the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use xtask_support::process;

use super::debian;

/// The version in Debian 12, which the server also reports.
const VERSION: &str = "1.20.2";

const PROGRAMS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kubectl"];

/// The Go for this version, and a library whose vendored copy does not work with this Go: the server would crash at the
/// first custom resource.
const PACKAGES: [&str; 3] = ["golang-1.19-go", "golang-1.19-src", "golang-github-modern-go-reflect2-dev"];
const LIBRARY: &str = "github.com/modern-go/reflect2";

/// Installs the programs among the peers.
pub(super) fn install(peers: &Path) -> anyhow::Result<()> {
    let links = peers.join("kubernetes");
    if PROGRAMS.iter().all(|program| links.join(program).exists()) {
        return Ok(());
    }
    let cache = cache(peers);
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| !cache.join(program).exists()).collect();
    if !missing.is_empty() {
        std::fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
        build(&cache, &missing).with_context(|| {
            format!(
                "build {} {VERSION} from Debian's source package; alternatively, put the programs into {}",
                missing.join(", "),
                cache.display()
            )
        })?;
    }
    std::fs::create_dir_all(&links).context("create a folder")?;
    PROGRAMS.iter().try_for_each(|program| replace_link(&cache.join(program), &links.join(program)))
}

fn replace_link(program: &Path, link: &Path) -> anyhow::Result<()> {
    // A dangling link may exist.
    std::fs::remove_file(link).ok();
    std::os::unix::fs::symlink(program, link).with_context(|| format!("link {}", link.display()))
}

/// A folder that outlives checkouts.
fn cache(peers: &Path) -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let cache = user.map_or_else(|| peers.join("cache"), |user| user.join("toolyard"));
    cache.join("kubernetes").join(VERSION)
}

fn build(cache: &Path, programs: &[&str]) -> anyhow::Result<()> {
    println!("building {} {VERSION}: some minutes, once per machine", programs.join(", "));
    // On the file system of the cache, so that the programs can be moved there atomically.
    let folder = TempDir::new_in(cache).context("create a folder for the build")?;
    let folder = folder.path();
    debian::unpack(&PACKAGES, folder)?;
    let source = fetch_source(folder)?;
    replace_library(folder, &source)?;
    process::run(&mut make(folder, &source, programs)?)?;
    for program in programs {
        let built = source.join("_output/bin").join(program);
        std::fs::rename(&built, cache.join(program)).with_context(|| format!("move {}", built.display()))?;
    }
    Ok(())
}

/// Fetches and unpacks the sources. The system's own package lists stay unchanged.
fn fetch_source(folder: &Path) -> anyhow::Result<PathBuf> {
    let sources = folder.join("apt/sources");
    std::fs::create_dir_all(&sources).context("create a folder")?;
    std::fs::create_dir_all(folder.join("apt/lists/partial")).context("create a folder")?;
    std::fs::create_dir_all(folder.join("apt/cache/archives/partial")).context("create a folder")?;
    write_sources(Path::new("/etc/apt"), &sources)?;

    // A third-party repository without source packages is no error.
    let update = apt_get(folder).arg("update").status().context("start apt-get")?;
    process::run(apt_get(folder).current_dir(folder).args(["source", "--download-only", "kubernetes"]))
        .with_context(|| format!("fetch the source package (apt-get update ended with {update})"))?;
    let description = debian::find_by_extension(folder, "dsc")?;
    ensure!(
        description.to_string_lossy().contains(VERSION),
        "the system has another version: {}",
        description.display()
    );
    let source = folder.join("source");
    process::run(
        Command::new("dpkg-source").args(["--no-check", "--extract"]).arg(description).arg(&source),
    )?;
    Ok(source)
}

/// The system's apt, with package lists, a cache and sources of its own.
fn apt_get(folder: &Path) -> Command {
    let option_path = |option: &str, path: &str| {
        let mut setting = OsString::from(format!("{option}="));
        setting.push(folder.join(path));
        setting
    };
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "APT::Sandbox::User="]);
    for (option, path) in [
        ("Dir::Etc::sourceparts", "apt/sources"),
        ("Dir::State::lists", "apt/lists"),
        ("Dir::Cache", "apt/cache"),
    ] {
        apt.arg("-o").arg(option_path(option, path));
    }
    apt
}

/// Writes the system's package sources as sources of source packages.
fn write_sources(apt: &Path, to: &Path) -> anyhow::Result<()> {
    let parts = std::fs::read_dir(apt.join("sources.list.d")).into_iter().flatten();
    let parts = parts.filter_map(|entry| Some(entry.ok()?.path()));
    for file in parts.chain([apt.join("sources.list")]) {
        let is_read = file.extension().is_some_and(|end| end == "list" || end == "sources");
        let (Some(name), Ok(text)) = (file.file_name(), std::fs::read_to_string(&file)) else { continue };
        if is_read {
            std::fs::write(to.join(name), as_source_lists(&text)).context("write a list of sources")?;
        }
    }
    Ok(())
}

/// Converts both formats of apt: one line per source, and paragraphs.
fn as_source_lists(text: &str) -> String {
    let line = |line: &str| match line.split_once(char::is_whitespace) {
        Some(("deb", rest)) => format!("deb-src {rest}\n"),
        Some(("Types:", _)) => "Types: deb-src\n".to_owned(),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn replace_library(folder: &Path, source: &Path) -> anyhow::Result<()> {
    let vendored = source.join("vendor").join(LIBRARY);
    let packaged = folder.join("usr/share/gocode/src").join(LIBRARY);
    std::fs::remove_dir_all(&vendored).with_context(|| format!("remove {}", vendored.display()))?;
    std::fs::rename(&packaged, &vendored).with_context(|| format!("replace {}", vendored.display()))
}

/// The build of the package's own rules, which expects its sources at a certain place in a Go folder.
fn make(folder: &Path, source: &Path, programs: &[&str]) -> anyhow::Result<Command> {
    let build_path = source.join(".go/src/k8s.io");
    std::fs::create_dir_all(&build_path).with_context(|| format!("create {}", build_path.display()))?;
    std::os::unix::fs::symlink("../../..", build_path.join("kubernetes")).context("link the sources")?;
    let go = folder.join("usr/lib/go-1.19");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([go.join("bin")].into_iter().chain(std::env::split_paths(&path)))?;
    // Leave the processor to other processes first.
    let mut make = Command::new("nice");
    let programs: Vec<_> = programs.iter().map(|program| format!("cmd/{program}")).collect();
    make.args(["make", "--silent", &format!("WHAT={}", programs.join(" "))]).current_dir(source);
    make.env("PATH", path).env("GOROOT", go).env("GOPATH", source.join(".go"));
    make.env("GOCACHE", folder.join("go-cache")).env("GOENV", "off").env_remove("GOFLAGS");
    make.env("GO111MODULE", "off").env("CGO_ENABLED", "0").env("KUBE_GIT_VERSION", format!("v{VERSION}"));
    Ok(make)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_sources_become_source_package_sources() {
        let check = |text, expected| assert_eq!(as_source_lists(text), expected, "{text}");
        check("deb http://a/debian bookworm main\n", "deb-src http://a/debian bookworm main\n");
        check("deb\t[x=y] http://a b c\n# deb d", "deb-src [x=y] http://a b c\n# deb d\n");
        check("deb-src http://a b c\n", "deb-src http://a b c\n");
        check(
            "Types: deb\nURIs: http://a\n\nTypes: deb deb-src\n",
            "Types: deb-src\nURIs: http://a\n\nTypes: deb-src\n",
        );
    }
}
