//! Isolation layers and the isolation level that they provide.

use std::fmt;

/// An isolation layer or resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IsolationLayer {
    /// A supervisor above each program, so that no process outlives the gateway.
    Supervisor,
    /// Limit of the memory of all processes of a sandbox together.
    Memory,
    /// Limit of processor time.
    Cpu,
    /// Limit of the number of processes.
    Processes,
    /// Separate namespaces for files, processes, network and users.
    Namespaces,
    /// Access rules for files, for TCP, and for sockets and processes outside.
    Landlock,
    /// Filter of system calls.
    Seccomp,
    /// A uid that no other sandbox has at the same time.
    Uids,
}

/// Isolation level of a machine, by its available layers. Each level includes the layers of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IsolationLevel {
    /// The memory of the machine or the files of the gateway are not protected: programs run only with isolation
    /// `none`.
    None,
    /// The memory of a sandbox is limited, at least by the watchdog, and files outside are protected.
    BestEffort,
    /// All layers, with one uid shared by all sandboxes.
    SharedUids,
    /// All layers, with a separate uid for each sandbox.
    Full,
}

impl IsolationLevel {
    /// Returns the level of a machine with these layers.
    pub(crate) fn of(reports: &[LayerReport]) -> Self {
        let has = |layer| reports.iter().any(|report| report.layer == layer && report.is_enforced());
        // The watchdog needs the supervisor to find processes, and seccomp to refuse memory that no process owns.
        let memory =
            has(IsolationLayer::Memory) || (has(IsolationLayer::Supervisor) && has(IsolationLayer::Seccomp));
        // Owners may change modes and times of their files, which Landlock does not control.
        let files = has(IsolationLayer::Namespaces)
            || (has(IsolationLayer::Landlock) && (has(IsolationLayer::Seccomp) || has(IsolationLayer::Uids)));
        let has_all = !reports.iter().any(LayerReport::is_required_and_missing);
        match (memory && files, has_all, has(IsolationLayer::Uids)) {
            (false, ..) => Self::None,
            (true, false, _) => Self::BestEffort,
            (true, true, false) => Self::SharedUids,
            (true, true, true) => Self::Full,
        }
    }

    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::BestEffort => "best-effort",
            Self::SharedUids => "shared-uids",
            Self::Full => "full",
        }
    }
}

/// Availability of an isolation layer on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// The layer.
    pub layer: IsolationLayer,
    /// Reason why the layer is missing; `None` if it is available.
    pub missing: Option<String>,
}

impl IsolationLayer {
    /// All layers, outermost first.
    pub const ALL: [Self; 8] = [
        Self::Supervisor,
        Self::Memory,
        Self::Cpu,
        Self::Processes,
        Self::Namespaces,
        Self::Landlock,
        Self::Seccomp,
        Self::Uids,
    ];

    /// Name in reports.
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
            Self::Uids => "uids",
        }
    }

    /// True if required isolation needs the layer. A separate uid does not protect other data, but prevents a sandbox
    /// from exhausting per-user kernel limits.
    #[must_use]
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::Uids)
    }

    /// Remedy for a missing layer.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Supervisor => "run on Linux, from the binary of the gateway",
            Self::Memory | Self::Cpu | Self::Processes => {
                "let the gateway create cgroups: `Delegate=yes` in its systemd unit, or run it as root"
            }
            Self::Namespaces => {
                "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, \
                 kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces over 0; in a container, \
                 a seccomp profile that allows unshare and mount; Linux 5.12 or newer"
            }
            Self::Landlock => "boot with landlock in the kernel's `lsm=`; Linux 5.13 or newer",
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
            Self::Uids => {
                "as root, set `sandbox.uids` to a range that the user namespace maps; as another user, install \
                 newuidmap (Debian: uidmap), give the user a range in /etc/subuid and /etc/subgid, and leave \
                 NoNewPrivileges off"
            }
        }
    }
}

impl LayerReport {
    /// True if required isolation needs this layer and the machine lacks it.
    pub(crate) const fn is_required_and_missing(&self) -> bool {
        self.layer.is_required() && !self.is_enforced()
    }

    /// True if sandboxed programs run within this layer.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_depends_on_the_missing_layers() {
        use IsolationLayer::{Cpu, Landlock, Memory, Namespaces, Processes, Seccomp, Supervisor, Uids};
        let cases: [(&[IsolationLayer], IsolationLevel); 11] = [
            (&[], IsolationLevel::Full),
            (&[Uids], IsolationLevel::SharedUids),
            (&[Cpu], IsolationLevel::BestEffort),
            (&[Memory, Cpu, Processes, Uids], IsolationLevel::BestEffort),
            (&[Namespaces, Uids], IsolationLevel::BestEffort),
            (&[Memory, Cpu, Processes, Namespaces, Uids], IsolationLevel::BestEffort),
            (&[Namespaces, Seccomp], IsolationLevel::BestEffort),
            (&[Namespaces, Seccomp, Uids], IsolationLevel::None),
            (&[Namespaces, Landlock], IsolationLevel::None),
            (&[Memory, Seccomp], IsolationLevel::None),
            (&[Memory, Supervisor], IsolationLevel::None),
        ];
        for (missing, expected) in cases {
            let report = |layer: IsolationLayer| LayerReport {
                layer,
                missing: missing.contains(&layer).then(|| "no".to_owned()),
            };
            assert_eq!(IsolationLevel::of(&IsolationLayer::ALL.map(report)), expected, "{missing:?}");
        }
    }
}
