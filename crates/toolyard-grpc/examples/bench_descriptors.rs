//! The conversion of descriptors for `cargo xtask bench --only grpc`.
//!
//! The arguments are a file with a `FileDescriptorSet` and a number of runs. Each run prints the number of methods and
//! the time in milliseconds.

use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;

use toolyard_grpc::descriptor::{MethodFilter, ServiceTools};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("the argument is a file of descriptors")?;
    let runs: usize = arguments.next().map_or(Ok(1), |runs| runs.parse())?;
    let set = std::fs::read(file)?;
    for _ in 0..runs {
        let start = Instant::now();
        let tools = ServiceTools::from_file_descriptor_set(&set, &MethodFilter::default())?;
        let time = start.elapsed().as_secs_f64() * 1e3;
        let methods = tools.methods().len() + tools.skipped().len();
        writeln!(io::stdout(), "{methods} {time}")?;
    }
    Ok(())
}
