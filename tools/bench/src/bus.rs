//! Calls over a message bus, compared with a bare request and its reply on the same broker, as durable and as confirmed,
//! and with the call in the process. The calls are made by `crates/toolyard-bus/examples/bench_bus`, which has both ends
//! of a call; the CPU time is that of both, without the broker.

use serde::{Deserialize, Serialize};
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use xtask_support::builds::path_or_build;
use xtask_support::measure::cpu_time;

use super::call_program::CallProgram;
use super::openapi::{WayRow, way_table};
use super::report::{BenchReport, RequestCost, show};
use super::sample::{LoadSample, SampleRounds};
use super::targets::TargetFactory;
use super::{BenchPlan, PROFILE};

/// Numbers of calls in flight.
const IN_FLIGHT: [usize; 2] = [1, 16];

/// The brokers, and the names of a bare request and of a call on each.
const BROKERS: [(BrokerProgram, &str, &str); 2] =
    [(BrokerProgram::RabbitMq, "RabbitMQ, bare", RABBITMQ), (BrokerProgram::Nats, "NATS, bare", NATS)];

/// A call over RabbitMQ.
pub(super) const RABBITMQ: &str = "RabbitMQ";
/// A call over NATS.
pub(super) const NATS: &str = "NATS";

/// The call in the process.
const IN_PROCESS: &str = "in process";

/// A request to the program that makes the calls.
#[derive(Clone, Copy, Serialize)]
struct BusCell {
    way: &'static str,
    in_flight: usize,
    seconds: f64,
}

/// Its measurements.
#[derive(Deserialize)]
struct CellMeasurement {
    calls: u32,
    seconds: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Measures the ways in turns.
pub(super) fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let target = ["--package", "toolyard-bus", "--example", "bench_bus"];
    let program = path_or_build(workshop.bus.as_deref(), &target, PROFILE)?;
    for (number, (kind, bare_name, name)) in BROKERS.into_iter().enumerate() {
        let broker = MessageBroker::start(kind);
        let mut caller = CallProgram::start(&program, broker.url())?;
        for in_flight in IN_FLIGHT {
            let cell = |way| BusCell { way, in_flight, seconds: plan.cell.as_secs_f64() };
            let (mut in_process, mut bare, mut bus) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..plan.rounds {
                bare.push(sample(&mut caller, cell("bare"))?);
                bus.push(sample(&mut caller, cell("bus"))?);
                in_process.push(sample(&mut caller, cell("in_process"))?);
            }
            let [in_process, bare, bus] = [in_process, bare, bus].map(SampleRounds);
            let mut row = |way, rounds: &SampleRounds| {
                report.bus.push(WayRow { way, in_flight, cost: RequestCost::new(rounds, Some(&bare)) });
            };
            // The broker has no part in it.
            if number == 0 {
                row(IN_PROCESS, &in_process);
            }
            row(bare_name, &bare);
            row(name, &bus);
        }
    }
    show(&report.bus_table())
}

fn sample(caller: &mut CallProgram, cell: BusCell) -> anyhow::Result<LoadSample> {
    let (seen, cpu): (CellMeasurement, _) = caller.measure(&cell, cpu_time)?;
    Ok(LoadSample {
        calls_per_second: f64::from(seen.calls) / seen.seconds,
        p50_us: seen.p50_us,
        p99_us: seen.p99_us,
        cpu_us: cpu.as_secs_f64() * 1e6 / f64::from(seen.calls),
    })
}

impl BenchReport {
    pub(super) fn bus_table(&self) -> String {
        let title =
            "calls over a message bus (direct: the bare request on the same broker; CPU time of both ends)";
        way_table(title, &self.bus)
    }
}
