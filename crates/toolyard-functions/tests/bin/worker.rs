//! What the processes of the tests are started of.

fn main() {
    toolyard_process::supervise_if_asked();
    toolyard_functions::runtime::work_if_asked();
}
