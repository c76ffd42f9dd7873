//! Landlock: what of the files a program sees it may touch, and which sockets and processes outside of its cell.
//! In namespaces this is a second wall; without them it is the only one around files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};

use super::{Fault, Spec};

/// The newest version whose rights are meant here; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V6;

/// What a program needs of a machine that it sees whole.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/ld.so.conf"];

const NETWORK: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl"];

const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"];

pub(super) fn restrict(spec: &Spec) -> Result<(), Fault> {
    let status = rules(spec).and_then(RulesetCreated::restrict_self).map_err(Fault::at("landlock"))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(Fault("landlock: the kernel has none".to_owned()));
    }
    Ok(())
}

fn rules(spec: &Spec) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    if !spec.network {
        rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let rules = rules.scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()?;
    let all = AccessFs::from_all(NEWEST) & !BitFlags::from(AccessFs::MakeChar) & !AccessFs::MakeBlock;
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    rules
        .add_rules(path_beneath_rules(readable(spec), AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules([&spec.home], all))?
        .add_rules(path_beneath_rules(DEVICES, devices))
}

/// In namespaces there is nothing else to read. A path that does not exist is no rule.
fn readable(spec: &Spec) -> Vec<PathBuf> {
    if spec.walls.namespaces {
        return vec![PathBuf::from("/")];
    }
    let network = NETWORK.iter().filter(|_| spec.network);
    let system = SYSTEM.iter().chain(network).map(PathBuf::from);
    let given = spec.mounts.iter().map(|mount| mount.host.clone());
    system.chain(given).filter(|path| Path::new(path).exists()).collect()
}

/// Whether the kernel has it at all.
pub(super) fn probe() -> Result<(), String> {
    let rules = Ruleset::default()
        .set_compatibility(landlock::CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    rules.map(drop).map_err(|error| error.to_string())
}
