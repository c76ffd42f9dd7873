//! The client's end of a pipe that carries one message a line.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// A client of one server in the same process.
pub struct LinePipe {
    /// `None` once the client has closed it.
    input: Option<WriteHalf<DuplexStream>>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl LinePipe {
    /// Creates a pipe that holds this many bytes in each direction, and returns the input and the output of the server
    /// with it.
    pub fn new(bytes: usize) -> (Self, ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(bytes);
        let (server_input, server_output) = tokio::io::split(theirs);
        let (output, input) = tokio::io::split(ours);
        (Self { input: Some(input), output: BufReader::new(output).lines() }, server_input, server_output)
    }

    /// Sends a line.
    pub async fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Reads the next line; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        self.output.next_line().await.unwrap()
    }

    /// Closes the input of the server.
    pub async fn close_input(&mut self) {
        self.input.take().expect("the input is open").shutdown().await.unwrap();
    }
}
