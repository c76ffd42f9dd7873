//! Agents on a message bus: a gateway that is one, and another that invokes it.

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};
use toolyard_bus::agents::record::AnnouncedCard;
use toolyard_bus::{Envelope, Topic};
use toolyard_manifest::BusSettings;
use toolyard_server::GatewayOptions;
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};

use crate::a2a::{AGENT, invoked, known, tool};
use crate::gateway::manifest_of;
use crate::keyed_gateway::KeyedGateway;

/// Starts a gateway that invokes agents, with a key, and waits until it listens to announcements.
async fn listening(broker: &MessageBroker, bus: &str) -> (KeyedGateway, String) {
    let process = format!("{bus}, builtins: {{scripts: {{enabled: false}}, agents: {{}}}}");
    let gateway = KeyedGateway::start(&process).await;
    let key = gateway.key_for("tools:* rest").await;
    let settings = BusSettings { url: Some(broker.url().parse().unwrap()), ..BusSettings::default() };
    let own = toolyard_bus::connect(&settings).unwrap();
    let probe = AnnouncedCard { agent_name: "Probe".to_owned(), ..AnnouncedCard::default() };
    let heard = async {
        while !tool(&gateway, &key, "list_known_agents", json!({})).await.contains("Probe") {
            let topic = Topic::of("discovery.announce");
            own.broadcast(&topic, Envelope::of(&probe, "Probe").unwrap()).await.unwrap();
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), heard).await.expect("an announcement is heard");
    (gateway, key)
}

/// Invokes a skill of the agent `orders`, and returns its result.
async fn ordered(gateway: &KeyedGateway, key: &str, skill: &str) -> String {
    let arguments = json!({"agent_name": "Orders", "skill": skill, "message": "hi", "timeout_minutes": 1.0});
    invoked(gateway, key, arguments).await
}

#[tokio::test]
async fn gateway_invokes_another_one_over_the_bus() {
    for program in [BrokerProgram::Nats, BrokerProgram::RabbitMq] {
        let broker = MessageBroker::start(program);
        let bus = format!("bus: {{url: '{}', worker: {{tools: ['web/search']}}}}", broker.url());
        let (caller, key) = listening(&broker, &bus).await;
        let agent = KeyedGateway::start(&format!("{bus}, {AGENT}")).await;
        known(&caller, &key, "orders").await;
        let refused = |reason: &str| {
            format!("The task failed: the agent refused the task: {reason} (invalid_request).")
        };
        assert_eq!(ordered(&caller, &key, "find").await, "found");
        let no_data = r#"the skill "delete" needs a data part with the arguments of the tool"#;
        assert_eq!(ordered(&caller, &key, "delete").await, refused(no_data));
        // The tool is not within the rights of tasks that arrive on the bus.
        let hold = ordered(&caller, &key, "hold").await;
        assert!(hold.ends_with("(invalid_request)."), "{hold}");
        agent.running.stop().await;
        let left = async {
            while tool(&caller, &key, "list_known_agents", json!({})).await.contains("orders") {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), left).await.expect("the agent has left");
    }
}

#[tokio::test]
async fn agent_that_is_not_on_the_bus_is_not_announced() {
    let broker = MessageBroker::start(BrokerProgram::Nats);
    let bus = format!("bus: {{url: '{}'}}", broker.url());
    let (caller, key) = listening(&broker, &bus).await;
    let silent = AGENT.replace("name: orders,", "name: silent, bus: false,");
    let _silent = KeyedGateway::start(&format!("{bus}, {silent}")).await;
    let _agent = KeyedGateway::start(&format!("{bus}, {AGENT}")).await;
    known(&caller, &key, "orders").await;
    let list = tool(&caller, &key, "list_known_agents", json!({})).await;
    assert!(!list.contains("silent"), "{list}");
}

#[tokio::test]
async fn name_that_is_no_part_of_a_topic_is_refused() {
    let bus = "bus: {url: 'nats://127.0.0.1:9'}";
    let start = async |agent: &str| {
        let manifest = manifest_of("    []\n", &format!("{bus}, {agent}"));
        let started = toolyard_server::start(&manifest, &GatewayOptions::default()).await;
        started.map(drop).map_err(|error| error.to_string())
    };
    let agent = AGENT.replace("name: orders,", "name: order desk,");
    let refused = start(&agent).await.unwrap_err();
    let expected = "`a2a.name`: the name of the agent, \"order desk\", cannot be part of a topic: use letters, digits, `-` and \
                    `_`, or set `a2a.bus: false`";
    assert!(refused.ends_with(expected), "{refused}");
    assert_eq!(
        start(&agent.replace("description: Orders.", "bus: false, description: Orders.")).await,
        Ok(())
    );
}
