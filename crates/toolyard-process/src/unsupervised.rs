//! Programs without a supervisor, held together by a process group only. Processes that leave the group are lost, and
//! those in it survive if the gateway is killed. (A parent-death signal would not help: it is sent at the end of the
//! thread that started the program, and only to the program.)

use std::io;
use std::process::Stdio;

use tokio::sync::watch;

use crate::child::{ChildProcess, ChildState, ProcessGroup, TerminationHandle};
use crate::process_table::StartedProcess;
use crate::{ChildPipes, ProgramSpec, command};

pub(crate) fn start(program: &ProgramSpec) -> io::Result<StartedProcess> {
    if program.channel {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a channel requires a supervisor"));
    }
    let mut command = command(&program.command, program);
    command.args(&program.args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut leader = command.spawn()?;
    let group = ProcessGroup::of(&leader)?;
    let pid = group.0;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (leader.stdin.take(), leader.stdout.take(), leader.stderr.take())
    else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let (state, state_now) = watch::channel(ChildState::Running);
    let watcher = async move {
        let status = leader.wait().await.ok();
        state.send_replace(ChildState::Gone(status));
    };
    let child = ChildProcess::new(TerminationHandle::Group(group), state_now, watcher);
    let pipes = ChildPipes { stdin, stdout, stderr, channel: None };
    Ok(StartedProcess { child, pipes, pid, supervisor: None })
}
