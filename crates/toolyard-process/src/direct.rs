//! A program without a supervisor: a process group is all that holds it together. What leaves the group is lost
//! sight of, and what is in it stays behind when we are killed ourselves. (A signal on the parent's death would
//! not help: it comes with the end of the thread that started the program, and to the program alone.)

use std::io;
use std::process::Stdio;

use tokio::sync::watch;

use crate::child::{Child, Group, Hold, State};
use crate::processes::Started;
use crate::{Pipes, Program, command};

pub(crate) fn start(program: &Program) -> io::Result<Started> {
    if program.channel {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "without a supervisor it has no channel"));
    }
    let mut command = command(&program.command, program);
    command.args(&program.args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut leader = command.spawn()?;
    let group = Group::of(&leader)?;
    let pid = group.0;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (leader.stdin.take(), leader.stdout.take(), leader.stderr.take())
    else {
        return Err(io::Error::other("no pipes"));
    };
    let (state, state_now) = watch::channel(State::Running);
    let watcher = async move {
        let status = leader.wait().await.ok();
        state.send_replace(State::Gone(status));
    };
    let child = Child::new(Hold::Group(group), state_now, watcher);
    let pipes = Pipes { stdin, stdout, stderr, channel: None };
    Ok(Started { child, pipes, pid, supervisor: None })
}
