//! Machines of newcomers: Debian with Node.js, Python, uv and the gateway, and an empty home.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::podman::Podman;
use crate::release_files::{file, printed};

/// Path of the home on the machine.
const HOME: &str = "/home/newcomer";

/// The user of a session.
#[derive(Clone, Copy)]
pub(crate) enum SessionUser {
    /// The user of the image, an ordinary one.
    Newcomer,
    /// The administrator, as needed for a complete sandbox without systemd.
    Root,
}

impl SessionUser {
    const fn id(self) -> &'static str {
        match self {
            Self::Newcomer => "65532",
            Self::Root => "0",
        }
    }
}

/// Enters a root, `$1`, with a home, `$2`, and runs the rest. The root has Python, but no `umount`.
const ENTER: &str = r#"set -e
cd "$1"
mount --bind . .
cd "$1"
mkdir -p home/newcomer
touch etc/resolv.conf
mount --bind "$2" home/newcomer
mount --bind /etc/resolv.conf etc/resolv.conf
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
mount -t tmpfs tmpfs tmp
pivot_root . mnt
python3 -c 'import ctypes; ctypes.CDLL(None).umount2(b"/mnt", 2)'
cd /
shift 2
exec "$@"
"#;

/// Variables about registries and proxies, which a newcomer has as well, in lower case.
const NETWORK_VARIABLES: [&str; 7] = [
    "npm_config_registry",
    "pip_index_url",
    "uv_default_index",
    "uv_index_url",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables with the path of a file of certificates.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];

/// A machine. Its files and programs go with this value.
pub(crate) struct Machine {
    kind: MachineKind,
    home: TempDir,
}

enum MachineKind {
    /// A root of Debian, entered in a namespace of mounts.
    Root(TempDir),
    /// The image with runtimes.
    Container(Podman),
}

impl Machine {
    /// Unpacks the root below the image with runtimes, and installs the package there.
    pub(crate) fn with_package(release: &TempDir) -> Self {
        let (image, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        unpack(&file(release, "-image-runtimes-amd64.tar"), image.path(), &[]);
        let blob = |digest: &Value| {
            let (_, digest) = digest.as_str().unwrap().split_once(':').unwrap();
            image.path().join("blobs/sha256").join(digest)
        };
        let index = json(&image.path().join("index.json"));
        let manifest = json(&blob(&index["manifests"][0]["digest"]));
        unpack(&blob(&manifest["layers"][0]["digest"]), root.path(), &["--gzip"]);
        printed(Command::new("chmod").arg("755").arg(root.path()));
        std::fs::copy(file(release, ".deb"), root.path().join("toolyard.deb")).unwrap();
        for path in certificates() {
            let to = root.path().join(path.strip_prefix("/").unwrap());
            printed(Command::new("install").args(["-D", "--mode=644"]).arg(&path).arg(to));
        }
        let machine = Self { kind: MachineKind::Root(root), home: TempDir::new().unwrap() };
        printed(machine.entered().args(["dpkg", "--install", "/toolyard.deb"]));
        machine
    }

    /// Loads the image with runtimes.
    pub(crate) fn with_image(release: &TempDir) -> Self {
        let podman = Podman::with_image(&file(release, "-image-runtimes-amd64.tar"));
        Self { kind: MachineKind::Container(podman), home: TempDir::new().unwrap() }
    }

    /// Returns the path of the home on the machine of the tests.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns a command that runs a script with Bash as this user. The home is a folder in that of the newcomer, and
    /// the script begins there.
    pub(crate) fn shell(&self, user: SessionUser, home: &str, script: &str) -> Command {
        // The tests write files as well. Programs of the newcomer may remove others meanwhile.
        let user = user.id();
        let owner = format!("{user}:{user}");
        Command::new("chown").args(["--recursive", "--silent", &owner]).arg(self.home()).status().unwrap();
        let home = format!("{HOME}/{home}");
        let path = "/usr/local/bin:/usr/bin:/bin";
        let mut variables = network_variables();
        variables.push(format!("HOME={home}"));
        variables.push(format!("PATH={path}"));
        match &self.kind {
            MachineKind::Root(_) => {
                let mut shell = self.entered();
                shell.args(["setpriv", "--clear-groups"]);
                shell.args([format!("--reuid={user}"), format!("--regid={user}")]);
                shell.args(["env", "-i"]).arg(format!("--chdir={home}")).args(variables);
                shell.args(["bash", "-c", script]);
                shell
            }
            MachineKind::Container(podman) => {
                let volume = |from: &Path, to: &Path, mode: &str| {
                    format!("--volume={}:{}{mode}", from.display(), to.display())
                };
                let mut options = vec![volume(self.home(), Path::new(HOME), "")];
                options.extend(certificates().iter().map(|path| volume(path, path, ":ro")));
                options.extend(variables.iter().map(|variable| format!("--env={variable}")));
                // The state of an image is in a volume, which is another one for every container.
                options.push(format!("--env=TOOLYARD_STATE_DIR={home}/state"));
                options.push(format!("--workdir={home}"));
                options.extend([format!("--user={user}"), "--entrypoint=bash".to_owned()]);
                let options: Vec<_> = options.iter().map(String::as_str).collect();
                let image = concat!("localhost/toolyard:", env!("CARGO_PKG_VERSION"), "-runtimes");
                let mut shell = podman.run(&options, image);
                shell.args(["-c", script]);
                shell
            }
        }
    }

    /// Returns the beginning of a command that root runs on the machine.
    fn entered(&self) -> Command {
        let MachineKind::Root(root) = &self.kind else { panic!("an image has no root") };
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "enter"]);
        command.arg(root.path()).arg(self.home());
        command
    }
}

fn unpack(archive: &Path, to: &Path, options: &[&str]) {
    let mut tar = Command::new("tar");
    tar.args(options).arg("--extract").arg("--file").arg(archive).arg("--directory").arg(to);
    printed(&mut tar);
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns the files of certificates that the variables of this machine name.
fn certificates() -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        CERTIFICATE_VARIABLES.iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    paths.dedup();
    paths
}

/// Returns the variables of this machine by which the newcomer reaches the registries.
fn network_variables() -> Vec<String> {
    let is_network = |name: &str| {
        CERTIFICATE_VARIABLES.contains(&name) || NETWORK_VARIABLES.contains(&&*name.to_lowercase())
    };
    let variables = std::env::vars().filter(|(name, _)| is_network(name));
    let mut variables: Vec<_> = variables.map(|(name, value)| format!("{name}={value}")).collect();
    // The index of pip is that of uv, too.
    if let (Ok(index), Err(_)) = (std::env::var("PIP_INDEX_URL"), std::env::var("UV_DEFAULT_INDEX")) {
        variables.push(format!("UV_DEFAULT_INDEX={index}"));
    }
    variables
}
