use serde_json::json;

use super::super::testing::{HandlerOffer, SearchHarness};

#[test]
fn tool_of_an_added_server_has_two_names() {
    let offers: [HandlerOffer; 3] = [
        ("rt", vec![("weather_now", "", ""), ("alerts", "", "")]),
        ("other", vec![("alerts", "", "")]),
        ("manifest", vec![("forecast", "", "")]),
    ];
    let mut harness = SearchHarness::new(&offers, &[]);
    for name in ["rt", "other"] {
        harness.mark_added(name);
    }
    harness.publish();
    let check = |name: &str, expected: Option<&str>| {
        let forwarded = harness.forwarded(json!({"name": name}));
        assert_eq!(forwarded.as_deref(), expected, "{name}");
    };
    check("rt_weather_now", Some("rt_weather_now {}"));
    check("weather_now", Some("rt_weather_now {}"));
    check("other_alerts", Some("other_alerts {}"));
    // Two servers have it.
    check("alerts", None);
    check("weather", None);
    check("manifest_forecast", None);
}
