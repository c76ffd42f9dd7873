//! Detection of the isolation layers of this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use toolyard_process::{ProcessSpawner, ProcessTable, ProgramSpec};

use crate::cgroup::{CgroupController, CgroupParents};
use crate::confine::{PROBE_ARG, UserCandidates};
use crate::users::{UserAllocator, UserLease, shared_user};
use crate::{IsolationLayer, LayerReport};

/// Time limit of the probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum output of the probe, in bytes.
const MAX_PROBE_OUTPUT: u64 = 16 << 10;

/// Tests the layers that need no cgroup and the detected users in a helper. Returns the reports and the usable users.
pub(crate) async fn probe_layers(
    processes: &ProcessTable,
    binary: &Path,
    allocator: Arc<UserAllocator>,
) -> (Vec<LayerReport>, Arc<UserAllocator>) {
    let lease = allocator.lease().ok().filter(|_| allocator.sharing_reason().is_none());
    let candidates = UserCandidates { shared: shared_user(), own: lease.as_ref().map(UserLease::user) };
    let result = run_probe(processes, binary, &candidates).await;
    let report = |layer: IsolationLayer| {
        let missing = match &result {
            Ok(lines) => missing(lines, layer),
            Err(why) => Some(why.clone()),
        };
        LayerReport { layer, missing }
    };
    let mut reports: Vec<_> =
        [IsolationLayer::Namespaces, IsolationLayer::Landlock, IsolationLayer::Seccomp].map(report).into();
    let users = match (&lease, report(IsolationLayer::Uids).missing) {
        (Some(_), Some(why)) => Arc::new(UserAllocator::shared(&why)),
        _ => allocator.clone(),
    };
    reports.push(LayerReport {
        layer: IsolationLayer::Uids,
        missing: users.sharing_reason().map(str::to_owned),
    });
    (reports, users)
}

fn missing(lines: &str, layer: IsolationLayer) -> Option<String> {
    let mut lines = lines.lines().filter_map(|line| line.split_once('\t'));
    match lines.find(|(name, _)| *name == layer.name()) {
        Some((_, "")) => None,
        Some((_, why)) => Some(why.to_owned()),
        None => Some("the probe failed".to_owned()),
    }
}

async fn run_probe(
    processes: &ProcessTable,
    binary: &Path,
    candidates: &UserCandidates,
) -> Result<String, String> {
    let candidates = serde_json::to_string(candidates).map_err(|error| error.to_string())?;
    let args = vec![PROBE_ARG.into(), candidates.into()];
    let program = ProgramSpec { command: binary.into(), args, ..ProgramSpec::default() };
    let name: Arc<str> = "sandbox probe".into();
    let (child, pipes) = processes.start(&name, &program).await.map_err(|error| error.to_string())?;
    let mut output = String::new();
    let mut out = pipes.stdout.take(MAX_PROBE_OUTPUT);
    let read = timeout(PROBE_TIMEOUT, out.read_to_string(&mut output)).await;
    drop(child);
    match read {
        Ok(Ok(_)) => Ok(output),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the probe timed out".to_owned()),
    }
}

pub(crate) fn cgroup_reports(places: &CgroupParents) -> Vec<LayerReport> {
    let report = |controller: &CgroupController| LayerReport {
        layer: controller.layer(),
        missing: places.get(*controller).as_ref().err().cloned(),
    };
    CgroupController::ALL.iter().map(report).collect()
}

/// Reports the supervisor layer.
pub(crate) fn supervisor_report(processes: &ProcessTable) -> LayerReport {
    let missing = match processes.spawner() {
        ProcessSpawner::Supervised { .. } => None,
        ProcessSpawner::Direct => Some("programs are started without a supervisor".to_owned()),
    };
    LayerReport { layer: IsolationLayer::Supervisor, missing }
}
