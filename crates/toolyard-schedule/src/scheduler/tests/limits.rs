use super::*;

#[tokio::test(start_paused = true)]
async fn number_of_running_tasks_and_length_of_history_are_limited() {
    let mut harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.settings.concurrent = 2;
    harness.settings.concurrent_per_key = Some(2);
    harness.settings.history = 3;
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    for name in ["a", "b", "c", "d", "e"] {
        running.schedule("", name, "0 9 * * *", false).await;
    }
    pass(40).await;
    assert_eq!(harness.calls().len(), 2);
    harness.tool.permits.add_permits(1_000);
    pass(1).await;
    assert_eq!(harness.calls().len(), 5);
    assert_eq!(running.runs("").await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn task_that_waits_for_others_is_not_missed() {
    let mut harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.settings.concurrent = 1;
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    running.schedule("", "a", "0 9 * * *", false).await;
    running.schedule("", "b", "0 9 * * *", false).await;
    pass(10 * MINUTE).await;
    harness.tool.permits.add_permits(1_000);
    pass(1).await;
    assert_eq!(
        running.runs("").await,
        ["a 09:00:00 succeeded at 09:09:30: done", "b 09:00:00 succeeded at 09:09:30: done"]
    );
}

#[tokio::test(start_paused = true)]
async fn slow_tasks_of_a_key_do_not_delay_those_of_others() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    for number in 0..20 {
        running.schedule("slow", &format!("t{number}"), "0 9 * * *", false).await;
    }
    running.schedule("other", "last", "1 9 * * *", false).await;
    pass(2 * MINUTE).await;
    let calls = harness.calls();
    assert_eq!(calls.len(), harness.settings.concurrent_of_key() + 1);
    assert_eq!(calls.last().unwrap(), r#"other {"of":"last 2026-11-25T09:01:00+00:00"}"#);
}

#[tokio::test(start_paused = true)]
async fn frequent_task_does_not_displace_results_of_others() {
    let mut harness = ScheduleHarness::at("2026-11-25T08:59:30Z");
    harness.settings.history = 4;
    let running = harness.start();
    running.schedule("", "rare", "0 9 * * *", false).await;
    running.schedule("", "frequent", "* * * * *", false).await;
    pass(HOUR).await;
    assert_eq!(
        running.runs("").await,
        [
            "rare 09:00:00 succeeded at 09:00:00: do rare",
            "frequent 09:57:00 succeeded at 09:57:00: do frequent",
            "frequent 09:58:00 succeeded at 09:58:00: do frequent",
            "frequent 09:59:00 succeeded at 09:59:00: do frequent",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn runs_are_reported_as_they_end() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    running.schedule("k1", "slow", "0 9,10 * * *", false).await;
    running.schedule("", "refused", "0 9 * * *", false).await;
    harness.owners.refusals.lock().unwrap().insert(String::new(), OwnerRefusal::Refused("no".to_owned()));
    pass(MINUTE).await;
    harness.tool.permits.add_permits(1);
    pass(HOUR).await;
    running.kill().await;
    let running = harness.start();
    pass(HOUR).await;
    running.stop().await;
    assert_eq!(
        *harness.reported.0.lock().unwrap(),
        ["no key refused failed Some(0)", "k1 slow succeeded Some(30)", "k1 slow interrupted None"]
    );
}
