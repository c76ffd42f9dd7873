//! Which walls this machine has.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use toolyard_process::{Processes, Program, Spawner};

use crate::cgroup::{Controller, Places};
use crate::confine::PROBE;
use crate::{Layer, LayerReport};

/// How long it may take to try the walls.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than it says.
const LONGEST: u64 = 16 << 10;

/// Has a helper try the walls that need no cgroup.
pub(crate) async fn walls(processes: &Processes, binary: &Path) -> Vec<LayerReport> {
    let said = ask(processes, binary).await;
    let walls = [Layer::Namespaces, Layer::Landlock, Layer::Seccomp];
    let report = |layer: Layer| {
        let missing = match &said {
            Ok(lines) => missing(lines, layer),
            Err(why) => Some(why.clone()),
        };
        LayerReport { layer, missing }
    };
    walls.into_iter().map(report).collect()
}

fn missing(lines: &str, layer: Layer) -> Option<String> {
    let mut lines = lines.lines().filter_map(|line| line.split_once('\t'));
    match lines.find(|(name, _)| *name == layer.name()) {
        Some((_, "")) => None,
        Some((_, why)) => Some(why.to_owned()),
        None => Some("trying it failed".to_owned()),
    }
}

async fn ask(processes: &Processes, binary: &Path) -> Result<String, String> {
    let program = Program { command: binary.into(), args: vec![PROBE.into()], ..Program::default() };
    let name: Arc<str> = "sandbox probe".into();
    let (child, pipes) = processes.start(&name, &program).await.map_err(|error| error.to_string())?;
    let mut said = String::new();
    let mut out = pipes.stdout.take(LONGEST);
    let read = timeout(PATIENCE, out.read_to_string(&mut said)).await;
    drop(child);
    match read {
        Ok(Ok(_)) => Ok(said),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("trying it took too long".to_owned()),
    }
}

pub(crate) fn groups(places: &Places) -> Vec<LayerReport> {
    let report = |controller: &Controller| LayerReport {
        layer: controller.layer(),
        missing: places.of(*controller).as_ref().err().cloned(),
    };
    Controller::ALL.iter().map(report).collect()
}

/// Whether there is a supervisor above what is started.
pub(crate) fn supervisor(processes: &Processes) -> LayerReport {
    let missing = match processes.spawner() {
        Spawner::Supervised { .. } => None,
        Spawner::Direct => Some("programs are started without one".to_owned()),
    };
    LayerReport { layer: Layer::Supervisor, missing }
}
