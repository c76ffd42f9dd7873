//! The part of an installation that runs in the sandbox: an entry function of our own binary that connects pip or uv to
//! the gateway's proxy, runs it, and sends the installed files to standard output.

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use super::archive;
use super::command::{InstallPaths, InstallRequest};

/// Target folder of the installation in the sandbox.
const TARGET_FOLDER: &str = "packages";

/// Folder in the sandbox with the installer's list and setting files.
const SETTINGS_FOLDER: &str = "settings";

/// Name of the list in that folder.
const REQUIREMENTS_FILE: &str = "requirements.txt";

/// Entry function of [`enter_if_asked`](crate::enter_if_asked) for installations. The request arrives on standard
/// input.
pub(crate) fn run(_: &[String]) -> u8 {
    match install() {
        Ok(status) => status,
        Err(error) => {
            // If standard error is closed, the exit status still reports the error.
            let _unheard = writeln!(io::stderr(), "ERROR: {error}");
            1
        }
    }
}

fn install() -> io::Result<u8> {
    let request: InstallRequest = serde_json::from_reader(io::stdin())?;
    // The sandbox starts in its own folder.
    let home = std::env::current_dir()?;
    prepare(&request, &home)?;
    let port = forward_port(request.socket.clone())?;
    let settings = home.join(SETTINGS_FOLDER);
    let list = settings.join(REQUIREMENTS_FILE);
    let paths = InstallPaths { home: &home, settings: &settings, list: &list, target: TARGET_FOLDER, port };
    if !request.command(&paths).status()?.success() {
        return Ok(1);
    }
    request.installer.remove_lock_file(&home.join(TARGET_FOLDER))?;
    let mut out = io::BufWriter::with_capacity(64 << 10, io::stdout());
    archive::send(&home.join(TARGET_FOLDER), &mut out)?;
    Ok(0)
}

fn prepare(request: &InstallRequest, home: &Path) -> io::Result<()> {
    fs::create_dir(home.join(TARGET_FOLDER))?;
    let settings = home.join(SETTINGS_FOLDER);
    fs::create_dir(&settings)?;
    fs::write(settings.join(REQUIREMENTS_FILE), &request.list)?;
    for file in &request.files {
        fs::write(settings.join(&file.name), &file.content)?;
    }
    Ok(())
}

/// Forwards a loopback port of the sandbox to a Unix socket, and returns the port.
fn forward_port(socket: PathBuf) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // If the connection cannot be forwarded, the client sees it closed.
            let _closed = UnixStream::connect(&socket).and_then(|server| relay(client, server));
        }
    });
    Ok(port)
}

/// Copies in both directions, each in a thread of its own.
fn relay(client: TcpStream, server: UnixStream) -> io::Result<()> {
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let (mut from_server, mut to_client) = (server, client);
    thread::spawn(move || {
        let _ended = io::copy(&mut from_client, &mut to_server);
        let _closed = to_server.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ended = io::copy(&mut from_server, &mut to_client);
        let _closed = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}
