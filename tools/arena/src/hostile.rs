//! Hostile clients: each attack abuses one ability of clients, while a good client calls another tool.
//!
//! The gateway has the limits of [`HostileAttack::spec`], which determine the memory that it may use.

mod attack_run;
mod attacks;
mod good_client;
mod report;
pub(super) mod server;
mod test_bed;

use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use serde_json::{Value, json};

use self::attacks::AttackTarget;

/// Bytes that requests, responses and queues may hold together: `limits.bytesInFlight`.
const BYTES_IN_FLIGHT: u64 = 64 << 20;

/// Maximum size of a request body: `limits.requestBodyBytes`.
const REQUEST_BODY_BYTES: usize = 4 << 20;

/// Maximum time of a request body, and of a call whose client has disconnected: `timeouts.requestBody` and `resume`.
/// Each may hold its bytes for this time.
const HOLD_TIME: &str = "5s";

/// Maximum size of a message of an upstream: `limits.responseBytes`.
const RESPONSE_BYTES: usize = 32 << 20;

/// Address of a trusted proxy: the addresses of its clients have limits, unlike loopback addresses.
const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// An attack by clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum HostileAttack {
    /// Call tools with arguments that are expensive to validate
    ArgumentBombs,
    /// Open sessions without end, with one key
    SessionFlood,
    /// Open more connections than the limit, and send nothing
    SilentConnections,
    /// Open more connections than the limit from one address, each with an incomplete request
    HeldConnections,
    /// Announce request bodies and never send them completely
    UnfinishedBodies,
    /// Call a tool with a large response, and do not read it
    UnreadAnswers,
    /// Call a tool that reports much progress, and do not read it
    ProgressFloods,
}

/// The size of an attack.
#[derive(Clone, Copy)]
pub(super) struct AttackStrength {
    /// Divisor of the number of hostile clients.
    pub divisor: usize,
    /// Time that they have to start.
    pub start: Duration,
    /// Maximum time of the attack after that, while the memory of the gateway grows.
    pub growth: Duration,
}

impl AttackStrength {
    pub(super) const FULL: AttackStrength =
        AttackStrength { divisor: 1, start: Duration::from_secs(20), growth: Duration::from_secs(30) };
    pub(super) const SHORT: AttackStrength =
        AttackStrength { divisor: 4, start: Duration::from_secs(8), growth: Duration::from_secs(10) };
}

impl HostileAttack {
    /// Number of concurrent hostile clients.
    fn clients(self, strength: AttackStrength) -> usize {
        let full = match self {
            HostileAttack::ArgumentBombs | HostileAttack::SessionFlood => 8,
            HostileAttack::SilentConnections | HostileAttack::HeldConnections => 4000,
            HostileAttack::UnfinishedBodies => 500,
            HostileAttack::UnreadAnswers => 32,
            HostileAttack::ProgressFloods => 80,
        };
        full / strength.divisor
    }

    /// The `spec` of the `Toolyard` document.
    fn spec(self, strength: AttackStrength) -> Value {
        let mut limits = json!({
            "bytesInFlight": BYTES_IN_FLIGHT,
            "requestBodyBytes": REQUEST_BODY_BYTES,
            "responseBytes": RESPONSE_BYTES,
        });
        match self {
            HostileAttack::SessionFlood => limits["sessions"] = 100.into(),
            HostileAttack::SilentConnections | HostileAttack::HeldConnections => {
                limits["connections"] = (self.clients(strength) / 2).into();
            }
            HostileAttack::ArgumentBombs
            | HostileAttack::UnfinishedBodies
            | HostileAttack::UnreadAnswers
            | HostileAttack::ProgressFloods => {}
        }
        let timeouts = json!({"requestBody": HOLD_TIME, "resume": HOLD_TIME});
        json!({"limits": limits, "timeouts": timeouts, "proxyProtocol": {"from": [PROXY]}})
    }

    /// Makes one attempt of one hostile client. It ends when the gateway ends it.
    ///
    /// # Errors
    /// Errors if the gateway refuses the attempt.
    async fn attempt(self, target: &AttackTarget) -> anyhow::Result<()> {
        match self {
            HostileAttack::ArgumentBombs => attacks::arguments::attempt(target).await,
            HostileAttack::SessionFlood => attacks::sessions::attempt(target).await,
            HostileAttack::SilentConnections => attacks::silence::attempt(target).await,
            HostileAttack::HeldConnections => attacks::connections::attempt(target).await,
            HostileAttack::UnfinishedBodies => attacks::bodies::attempt(target).await,
            HostileAttack::UnreadAnswers => attacks::answers::attempt(target).await,
            HostileAttack::ProgressFloods => attacks::progress::attempt(target).await,
        }
    }
}

impl fmt::Display for HostileAttack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        out.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// Runs the attacks one after the other, prints their table, and returns the failures of the gateway.
pub(super) fn run_attacks(
    runtime: &tokio::runtime::Runtime,
    attacks: &[HostileAttack],
    strength: AttackStrength,
    binary: &Path,
) -> anyhow::Result<Vec<String>> {
    if attacks.is_empty() {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    println!("{}", report::table_header());
    for attack in attacks {
        let row = runtime.block_on(attack_run::run_attack(*attack, strength, binary));
        let row = row.with_context(|| attack.to_string())?;
        println!("{}", report::table_row(&row));
        problems.extend(report::problems(&row));
    }
    println!("{}", report::footer());
    Ok(problems)
}
