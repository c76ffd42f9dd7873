//! Detection of the groups in which new groups can be created.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{CgroupController, write};

/// Prefix of the group names; the process id of the gateway and its start time follow.
pub(super) const PREFIX: &str = "toolyard-";

/// Group into which the gateway moves if a group with children may not have processes (version 2).
const GATEWAY_GROUP: &str = "toolyard.gateway";

/// The parent group for each controller, or the reason why there is none.
#[derive(Clone, Debug)]
pub(crate) struct CgroupParents {
    pub(crate) memory: Result<CgroupParent, String>,
    pub(crate) cpu: Result<CgroupParent, String>,
    pub(crate) pids: Result<CgroupParent, String>,
}

/// A group in which other groups can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupParent {
    pub(crate) folder: PathBuf,
    /// True for version 2.
    pub(crate) is_v2: bool,
}

/// System files that describe the cgroups of this process.
pub(crate) struct CgroupSources {
    /// `/proc/self/cgroup`
    pub(crate) own_groups: String,
    /// `/proc/self/mountinfo`
    pub(crate) mounts: String,
}

impl CgroupSources {
    pub(crate) fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { own_groups: read("/proc/self/cgroup"), mounts: read("/proc/self/mountinfo") }
    }
}

impl CgroupParents {
    /// Finds the parent groups and tests whether groups can be created there. `root` replaces the gateway's own group:
    /// a path in the hierarchy, or a path relative to the gateway's own group.
    pub(crate) fn find(sources: &CgroupSources, root: Option<&Path>) -> Self {
        let find = |controller| {
            let place = find_parent(sources, controller, root)?;
            check_creation(&place, controller).map_err(|error| error.to_string())?;
            Ok(place)
        };
        Self {
            memory: find(CgroupController::Memory),
            cpu: find(CgroupController::Cpu),
            pids: find(CgroupController::Pids),
        }
    }

    pub(crate) fn unavailable(why: &str) -> Self {
        let none = || Err(why.to_owned());
        Self { memory: none(), cpu: none(), pids: none() }
    }

    pub(crate) const fn get(&self, controller: CgroupController) -> &Result<CgroupParent, String> {
        match controller {
            CgroupController::Memory => &self.memory,
            CgroupController::Cpu => &self.cpu,
            CgroupController::Pids => &self.pids,
        }
    }

    pub(super) fn folders(&self) -> Vec<&Path> {
        let places =
            CgroupController::ALL.iter().filter_map(|controller| self.get(*controller).as_ref().ok());
        let mut parents: Vec<&Path> = places.map(|place| &*place.folder).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

pub(super) fn find_parent(
    sources: &CgroupSources,
    controller: CgroupController,
    root: Option<&Path>,
) -> Result<CgroupParent, String> {
    let name = controller.name();
    let missing = || format!("no cgroup controller {name:?} is mounted");
    let (mount, unified) = find_mount(&sources.mounts, name)
        .map(|mount| (mount, false))
        .or_else(|| find_mount(&sources.mounts, "").map(|mount| (mount, true)))
        .ok_or_else(missing)?;
    let own = own_group(&sources.own_groups, if unified { "" } else { name }).ok_or_else(missing)?;
    let within = match root.map(|root| (root, root.strip_prefix("/"))) {
        Some((_, Ok(absolute))) => absolute.to_owned(),
        Some((relative, Err(_))) => own.join(relative),
        None => own,
    };
    // If only a part of the hierarchy is mounted, its root is not in the paths of the mount.
    let relative = within.strip_prefix(&mount.root).map_or_else(|_| within.clone(), Path::to_owned);
    let mut folder: PathBuf = mount.folder.join(relative).components().collect();
    if folder.file_name().is_some_and(|name| name == GATEWAY_GROUP) {
        folder.pop();
    }
    if unified && !words(&folder.join("cgroup.controllers")).iter().any(|word| word == name) {
        return Err(format!("the controller {name:?} is not delegated to the cgroup of this process"));
    }
    Ok(CgroupParent { folder, is_v2: unified })
}

struct CgroupMount {
    /// The mounted group, without the leading `/`.
    root: PathBuf,
    folder: PathBuf,
}

/// Returns the mount point of a controller of version 1, or of version 2 if the name is empty.
fn find_mount(mounts: &str, controller: &str) -> Option<CgroupMount> {
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
        here.then(|| CgroupMount { root, folder: PathBuf::from(folder) })
    })
}

/// Returns the group of this process, without the leading `/`.
fn own_group(groups: &str, controller: &str) -> Option<PathBuf> {
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

/// Creates a group, checks that the process can join it, and removes it.
fn check_creation(place: &CgroupParent, controller: CgroupController) -> io::Result<()> {
    if place.is_v2 {
        enable_controller(&place.folder, controller)?;
    }
    let folder = place.folder.join(format!("{PREFIX}{}-try-{}", gateway_id(), controller.name()));
    let with_folder = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot create a cgroup in {}: {error}", place.folder.display()))
    };
    fs::create_dir(&folder).map_err(with_folder)?;
    // In version 2, moving a process requires write access to the source and the target group, or to a common ancestor.
    let procs = if place.is_v2 { &place.folder } else { &folder }.join("cgroup.procs");
    let open = fs::File::options().write(true).open(procs);
    fs::remove_dir(&folder)?;
    open.map(drop).map_err(with_folder)
}

/// Enables a controller for the children of a group. A group with processes cannot do so, except the root group, so
/// this process moves to a child first.
fn enable_controller(folder: &Path, controller: CgroupController) -> io::Result<()> {
    let control = folder.join("cgroup.subtree_control");
    if words(&control).iter().any(|word| word == controller.name()) {
        return Ok(());
    }
    let enable = format!("+{}", controller.name());
    if write(&control, &enable).is_ok() {
        return Ok(());
    }
    let leaf = folder.join(GATEWAY_GROUP);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => write(&leaf.join("cgroup.procs"), std::process::id().to_string())?,
    }
    write(&control, &enable).inspect_err(|_| {
        // Other processes are in the group.
        let _back = write(&folder.join("cgroup.procs"), std::process::id().to_string());
        let _gone = fs::remove_dir(&leaf);
    })
}

/// Returns the identity of this process: its id, which can be reused, and its start time.
pub(super) fn gateway_id() -> String {
    let id = std::process::id();
    format!("{id}-{}", start_ticks(id).unwrap_or_default())
}

/// Returns the start time of a process, in ticks since boot.
fn start_ticks(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The program name may contain blanks and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// True if a group of this name belongs to a gateway that has ended.
pub(super) fn is_left_over(name: &str) -> bool {
    let Some(name) = name.strip_prefix(PREFIX) else { return false };
    let mut parts = name.split('-');
    let (Some(Ok(id)), Some(Ok(start))) = (parts.next().map(str::parse), parts.next().map(str::parse)) else {
        return false;
    };
    start_ticks(id) != Some(start)
}
