//! The socket between a helper and the gateway. What is to be done comes by it, because arguments and variables can be
//! read by others; whether the program began goes back by it, because the program holds everything else that the
//! helper has: its pipes, and the status that its process ends with. No program gets it.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use toolyard_process::CHANNEL;

use super::{Fault, Spec, raw};

/// What is said when nothing is left to do but to become the program.
const BEGINS: u8 = b'+';

/// More than a helper says, in bytes.
const LONGEST: usize = 16 << 10;

/// The helper's end.
pub(super) struct Channel(pub(super) UnixStream);

impl Channel {
    pub(super) fn take() -> Result<Self, Fault> {
        let number = env::var(CHANNEL).ok().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| Fault("nobody says what to do".to_owned()))?;
        let socket = raw::take(number).map_err(Fault::at("take the channel"))?;
        Ok(Self(socket.into()))
    }

    pub(super) fn spec(&mut self) -> Result<Spec, Fault> {
        let mut text = Vec::new();
        self.0.read_to_end(&mut text).map_err(Fault::at("hear what to do"))?;
        serde_json::from_slice(&text).map_err(Fault::at("read what to do"))
    }

    /// All walls are up. What fails from now on can be told still.
    pub(super) fn begins(&mut self) -> Result<(), Fault> {
        self.0.write_all(&[BEGINS]).map_err(Fault::at("say that it begins"))
    }

    pub(super) fn refuse(&mut self, why: &str) {
        // Who hears nothing knows that it did not begin.
        let _unheard = self.0.write_all(why.as_bytes());
    }
}

/// Why a program never began, once its helper has ended; `None` where it did.
pub(crate) fn why_refused(mut channel: &UnixStream) -> Option<String> {
    let mut said = [0; LONGEST];
    let mut length = 0;
    loop {
        match channel.read(&mut said[length..]) {
            Ok(more @ 1..) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // All that was ever said is here: those who could have said it have ended.
            Ok(0) | Err(_) => break,
        }
    }
    match &said[..length] {
        [BEGINS] => None,
        [] => Some("what was to put up the walls has ended".to_owned()),
        [BEGINS, why @ ..] | why => Some(String::from_utf8_lossy(why).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_program_began_is_what_its_helper_says() {
        let check = |said: &[u8], expected: Option<&str>| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            theirs.write_all(said).unwrap();
            // Whether somebody still holds the other end makes no difference.
            assert_eq!(why_refused(&ours).as_deref(), expected, "{said:?}");
        };
        check(b"+", None);
        check(b"", Some("what was to put up the walls has ended"));
        check(b"no wall", Some("no wall"));
        check(b"+no program", Some("no program"));
        check(&[b'x'; LONGEST + 1], Some(&"x".repeat(LONGEST)));
    }
}
