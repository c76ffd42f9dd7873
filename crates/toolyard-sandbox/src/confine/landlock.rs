//! Landlock: access rules for visible files, and for sockets and processes outside the sandbox. With namespaces it is
//! a second layer; without them it is the only layer that protects files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::{HelperRequest, SetupError};

/// Newest ABI whose rights are requested; an older kernel enforces the ones that it supports.
const NEWEST: ABI = ABI::V6;

/// System paths that a program needs on a machine without namespaces.
const SYSTEM_PATHS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/ld.so.conf"];

const NETWORK_PATHS: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl"];

pub(super) fn restrict(spec: &HelperRequest) -> Result<(), SetupError> {
    let status = rules(spec).and_then(RulesetCreated::restrict_self).map_err(SetupError::at("landlock"))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(SetupError("landlock: not supported by the kernel".to_owned()));
    }
    Ok(())
}

fn rules(spec: &HelperRequest) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    if !spec.network && !spec.loopback {
        rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let rules = rules.scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()?;
    let all = AccessFs::from_all(NEWEST) & !BitFlags::from(AccessFs::MakeChar) & !AccessFs::MakeBlock;
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    rules
        .add_rules(path_beneath_rules(readable(spec), AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules([&spec.home], all))?
        .add_rules(path_beneath_rules(spec.devices(), devices))
}

/// Returns the readable paths. With namespaces everything visible is readable. Missing paths are omitted.
fn readable(spec: &HelperRequest) -> Vec<PathBuf> {
    if spec.layers.namespaces {
        return vec![PathBuf::from("/")];
    }
    let network = NETWORK_PATHS.iter().filter(|_| spec.network);
    let system = SYSTEM_PATHS.iter().chain(network).map(PathBuf::from);
    let mounts = spec.mounts.iter().map(|mount| mount.host.clone());
    system.chain(mounts).filter(|path| Path::new(path).exists()).collect()
}

/// True if Landlock can restrict signals to the sandbox, which it can since Linux 6.12.
pub(super) fn can_scope_signals() -> bool {
    let rules = Ruleset::default().set_compatibility(landlock::CompatLevel::HardRequirement);
    rules.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

/// Checks that the kernel supports Landlock.
pub(super) fn probe() -> Result<(), String> {
    let rules = Ruleset::default()
        .set_compatibility(landlock::CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    rules.map(drop).map_err(|error| error.to_string())
}
