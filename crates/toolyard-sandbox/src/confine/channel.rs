//! The socket between a helper and the gateway. The request arrives on it, because other users can read arguments and
//! variables; the start of the program is reported on it, because the program controls the pipes and the exit status of
//! the helper. No program inherits the socket.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use toolyard_process::CHANNEL_VARIABLE;

use super::{HelperRequest, SetupError, raw};

/// Message of the helper just before it executes the program.
const STARTED: u8 = b'+';

/// Maximum length of the helper's messages, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// The helper's end of the socket.
pub(super) struct HelperChannel(pub(super) UnixStream);

impl HelperChannel {
    pub(super) fn open() -> Result<Self, SetupError> {
        let number = env::var(CHANNEL_VARIABLE).ok().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| SetupError("the helper has no channel".to_owned()))?;
        let socket = raw::take_fd(number).map_err(SetupError::at("take the channel"))?;
        Ok(Self(socket.into()))
    }

    pub(super) fn read_request(&mut self) -> Result<HelperRequest, SetupError> {
        let mut text = Vec::new();
        self.0.read_to_end(&mut text).map_err(SetupError::at("read the request"))?;
        serde_json::from_slice(&text).map_err(SetupError::at("parse the request"))
    }

    /// Reports that all layers are set up. Later failures can still be reported.
    pub(super) fn announce_start(&mut self) -> Result<(), SetupError> {
        self.0.write_all(&[STARTED]).map_err(SetupError::at("report the start"))
    }

    pub(super) fn report_failure(&mut self, why: &str) {
        // An empty message means that the program did not start.
        let _unheard = self.0.write_all(why.as_bytes());
    }
}

/// Returns the reason why a program never started, after the end of its helper; `None` if it started.
pub(crate) fn refusal_reason(mut channel: &UnixStream) -> Option<String> {
    let mut message = [0; MAX_MESSAGE_BYTES];
    let mut length = 0;
    loop {
        match channel.read(&mut message[length..]) {
            Ok(more @ 1..) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // All writers have ended, so the message is complete.
            Ok(0) | Err(_) => break,
        }
    }
    match &message[..length] {
        [STARTED] => None,
        [] => Some("the helper ended during the setup".to_owned()),
        [STARTED, why @ ..] | why => Some(String::from_utf8_lossy(why).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_message_tells_if_the_program_started() {
        let check = |said: &[u8], expected: Option<&str>| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.write_all(said).unwrap();
            // It does not matter whether another process still holds the other end.
            assert_eq!(refusal_reason(&ours).as_deref(), expected, "{said:?}");
        };
        check(b"+", None);
        check(b"", Some("the helper ended during the setup"));
        check(b"no layer", Some("no layer"));
        check(b"+no program", Some("no program"));
        check(&[b'x'; MAX_MESSAGE_BYTES + 1], Some(&"x".repeat(MAX_MESSAGE_BYTES)));
    }
}
