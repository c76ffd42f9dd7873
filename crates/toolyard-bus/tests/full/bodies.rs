//! The suite over each body. One broker runs all cases, one after the other, each with exchanges, queues and streams of
//! its own.

use std::time::Instant;

use crate::cases;
use crate::support::{BusBody, TestBroker};

async fn suite(body: BusBody) {
    let broker = TestBroker::start(body);
    let mut table = format!("{body:?}\n");
    for (name, case) in cases::ALL {
        let start = Instant::now();
        eprintln!("{body:?} {name}");
        case(&broker, name).await;
        table += &format!("  {:>6} ms  {name}\n", start.elapsed().as_millis());
    }
    println!("{table}");
}

#[tokio::test]
async fn suite_holds_in_process() {
    suite(BusBody::InProcess).await;
}

#[tokio::test]
async fn suite_holds_on_rabbitmq() {
    suite(BusBody::RabbitMq).await;
}

#[tokio::test]
async fn suite_holds_on_nats() {
    suite(BusBody::Nats).await;
}
