//! Binary of the processes of scripts in tests.

fn main() {
    toolyard_process::run_supervisor_if_requested();
    toolyard_sandbox::enter_if_asked(&[toolyard_functions::runtime::ENTRY]);
}
