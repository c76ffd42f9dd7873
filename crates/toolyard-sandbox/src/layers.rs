//! The walls, one by one.

use std::fmt;

/// One of the walls, or one of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// A supervisor above each program, so that nothing outlives the gateway.
    Supervisor,
    /// The memory of all processes of a cell together.
    Memory,
    /// The share of the processors.
    Cpu,
    /// The number of processes.
    Processes,
    /// A view of its own of files, processes, network and users.
    Namespaces,
    /// What of the files it sees it may touch, and the sockets and processes outside.
    Landlock,
    /// Which system calls it may make.
    Seccomp,
}

/// Whether this machine has a wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// Which one.
    pub layer: Layer,
    /// Why not, where it has not.
    pub missing: Option<String>,
}

impl Layer {
    /// All of them, outermost first.
    pub const ALL: [Self; 7] = [
        Self::Supervisor,
        Self::Memory,
        Self::Cpu,
        Self::Processes,
        Self::Namespaces,
        Self::Landlock,
        Self::Seccomp,
    ];

    /// What it is called in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Memory => "cgroup memory",
            Self::Cpu => "cgroup cpu",
            Self::Processes => "cgroup pids",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        }
    }

    /// What to do where it is missing.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Supervisor => "run on Linux, from the binary of the gateway",
            Self::Memory | Self::Cpu | Self::Processes => {
                "let the gateway make cgroups: `Delegate=yes` in its systemd unit, or run it as root"
            }
            Self::Namespaces => {
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces over 0; in a container, \
                 a seccomp profile that allows unshare and mount; Linux 5.12 or newer"
            }
            Self::Landlock => "boot with landlock in the kernel's `lsm=`; Linux 5.13 or newer",
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
        }
    }
}

impl LayerReport {
    /// Whether programs in cells have it around them.
    #[must_use]
    pub const fn enforced(&self) -> bool {
        self.missing.is_none()
    }
}

impl fmt::Display for LayerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.missing {
            None => write!(f, "{}: enforced", self.layer.name()),
            Some(why) => write!(f, "{}: {why} ({})", self.layer.name(), self.layer.hint()),
        }
    }
}
