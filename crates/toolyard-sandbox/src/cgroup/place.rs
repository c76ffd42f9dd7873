//! Where groups can be made: read from what the system says of the gateway itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Controller, write};

/// What the names of our groups begin with; the process id of the gateway and its start follow.
pub(super) const PREFIX: &str = "toolyard-";

/// The group that a gateway goes to where groups with children may have no processes (version 2).
const LEAF: &str = "toolyard.gateway";

/// For each controller, where groups can be made, or why not.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) memory: Result<Place, String>,
    pub(crate) cpu: Result<Place, String>,
    pub(crate) pids: Result<Place, String>,
}

/// A group in which others can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    /// Whether it is of version 2.
    pub(crate) unified: bool,
}

/// What the system says.
pub(crate) struct Sources {
    /// `/proc/self/cgroup`
    pub(crate) own: String,
    /// `/proc/self/mountinfo`
    pub(crate) mounts: String,
}

impl Sources {
    pub(crate) fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { own: read("/proc/self/cgroup"), mounts: read("/proc/self/mountinfo") }
    }
}

impl Places {
    /// Finds them, and tries whether groups can be made there. `root` is a group to make them in instead of
    /// the one that the gateway is in: a path in its hierarchy, or one from the gateway's own group.
    pub(crate) fn find(sources: &Sources, root: Option<&Path>) -> Self {
        let find = |controller| {
            let place = place(sources, controller, root)?;
            try_out(&place, controller).map_err(|error| error.to_string())?;
            Ok(place)
        };
        Self { memory: find(Controller::Memory), cpu: find(Controller::Cpu), pids: find(Controller::Pids) }
    }

    pub(crate) fn none(why: &str) -> Self {
        let none = || Err(why.to_owned());
        Self { memory: none(), cpu: none(), pids: none() }
    }

    pub(crate) const fn of(&self, controller: Controller) -> &Result<Place, String> {
        match controller {
            Controller::Memory => &self.memory,
            Controller::Cpu => &self.cpu,
            Controller::Pids => &self.pids,
        }
    }

    pub(super) fn parents(&self) -> Vec<&Path> {
        let places = Controller::ALL.iter().filter_map(|controller| self.of(*controller).as_ref().ok());
        let mut parents: Vec<&Path> = places.map(|place| &*place.folder).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

pub(super) fn place(sources: &Sources, controller: Controller, root: Option<&Path>) -> Result<Place, String> {
    let name = controller.name();
    let missing = || format!("no cgroup controller {name:?} is mounted");
    let (mount, unified) = mounted(&sources.mounts, name)
        .map(|mount| (mount, false))
        .or_else(|| mounted(&sources.mounts, "").map(|mount| (mount, true)))
        .ok_or_else(missing)?;
    let own = own(&sources.own, if unified { "" } else { name }).ok_or_else(missing)?;
    let within = match root.map(|root| (root, root.strip_prefix("/"))) {
        Some((_, Ok(absolute))) => absolute.to_owned(),
        Some((relative, Err(_))) => own.join(relative),
        None => own,
    };
    // Where only a part of the hierarchy is mounted, that is where its paths begin.
    let shown = within.strip_prefix(&mount.root).map_or_else(|_| within.clone(), Path::to_owned);
    let mut folder: PathBuf = mount.folder.join(shown).components().collect();
    if folder.file_name().is_some_and(|name| name == LEAF) {
        folder.pop();
    }
    if unified && !words(&folder.join("cgroup.controllers")).iter().any(|word| word == name) {
        return Err(format!("the cgroup of this process was not given the controller {name:?}"));
    }
    Ok(Place { folder, unified })
}

struct Mounted {
    /// Which group is mounted, without its first `/`.
    root: PathBuf,
    folder: PathBuf,
}

/// Where a controller of version 1 is mounted, or, by the empty name, version 2.
fn mounted(mounts: &str, controller: &str) -> Option<Mounted> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, folder) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let kind = system.next()?;
        let options = system.nth(1)?;
        let here = match kind {
            "cgroup" => !controller.is_empty() && options.split(',').any(|option| option == controller),
            "cgroup2" => controller.is_empty(),
            _ => false,
        };
        let root = PathBuf::from(root.trim_start_matches('/'));
        here.then(|| Mounted { root, folder: PathBuf::from(folder) })
    })
}

/// The group that this process is in, without its first `/`.
fn own(groups: &str, controller: &str) -> Option<PathBuf> {
    groups.lines().find_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let here = controllers.split(',').any(|name| name == controller);
        here.then(|| PathBuf::from(path.trim_start_matches('/')))
    })
}

fn words(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Makes a group, sees whether it has what the controller needs, and removes it.
fn try_out(place: &Place, controller: Controller) -> io::Result<()> {
    if place.unified {
        hand_down(&place.folder, controller)?;
    }
    let folder = place.folder.join(format!("{PREFIX}{}-try-{}", owner(), controller.name()));
    let said = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot make a cgroup in {}: {error}", place.folder.display()))
    };
    fs::create_dir(&folder).map_err(said)?;
    // In version 2, who moves a process must be able to write where it was as well as where it goes, or above both.
    let procs = if place.unified { &place.folder } else { &folder }.join("cgroup.procs");
    let open = fs::File::options().write(true).open(procs);
    fs::remove_dir(&folder)?;
    open.map(drop).map_err(said)
}

/// Has children of a group limit what the group can. One with processes of its own cannot do so, except the root
/// of all: so this process goes to a child of its own first.
fn hand_down(folder: &Path, controller: Controller) -> io::Result<()> {
    let control = folder.join("cgroup.subtree_control");
    if words(&control).iter().any(|word| word == controller.name()) {
        return Ok(());
    }
    let enable = format!("+{}", controller.name());
    if write(&control, &enable).is_ok() {
        return Ok(());
    }
    let leaf = folder.join(LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => write(&leaf.join("cgroup.procs"), std::process::id().to_string())?,
    }
    write(&control, &enable).inspect_err(|_| {
        // Others are in the group, which is not ours alone then.
        let _back = write(&folder.join("cgroup.procs"), std::process::id().to_string());
        let _gone = fs::remove_dir(&leaf);
    })
}

/// Who we are: a process id, which another process may have later, and when it started.
pub(super) fn owner() -> String {
    let id = std::process::id();
    format!("{id}-{}", started(id).unwrap_or_default())
}

/// When a process started, in ticks since the machine did.
fn started(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of its program may have blanks and brackets in it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a group of this name belongs to a gateway that has ended.
pub(super) fn is_left_over(name: &str) -> bool {
    let Some(name) = name.strip_prefix(PREFIX) else { return false };
    let mut parts = name.split('-');
    let (Some(Ok(id)), Some(Ok(start))) = (parts.next().map(str::parse), parts.next().map(str::parse)) else {
        return false;
    };
    started(id) != Some(start)
}
