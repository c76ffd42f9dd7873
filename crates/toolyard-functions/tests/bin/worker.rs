//! What the processes of the tests are started of.

fn main() {
    toolyard_process::supervise_if_asked();
    toolyard_sandbox::enter_if_asked(&[toolyard_functions::runtime::ENTRY]);
}
