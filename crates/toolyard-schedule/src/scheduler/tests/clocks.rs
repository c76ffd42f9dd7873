use super::*;

#[tokio::test(start_paused = true)]
async fn clock_that_jumps_forward_misses_runs_and_repeats_none() {
    let harness = ScheduleHarness::at("2026-11-25T08:50:00Z");
    let running = harness.start();
    running.schedule("", "a", "*/5 * * * *", false).await;
    pass(6 * MINUTE).await;
    harness.clock.jump(2 * 3600);
    pass(10 * MINUTE).await;
    assert_eq!(
        running.runs("").await,
        [
            "a 08:55:00 succeeded at 08:55:00: do a",
            "a 09:00:00 missed at 10:56:00: no gateway fired it in time: none was running, the store was unavailable, or the clock was changed",
            "a 11:00:00 succeeded at 11:00:00: do a",
            "a 11:05:00 succeeded at 11:05:00: do a",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_back_repeats_no_run() {
    let harness = ScheduleHarness::at("2026-11-25T08:50:00Z");
    let running = harness.start();
    running.schedule("", "a", "*/30 * * * *", false).await;
    pass(11 * MINUTE).await;
    harness.clock.jump(-3600);
    pass(HOUR + 28 * MINUTE).await;
    assert_eq!(running.runs("").await, ["a 09:00:00 succeeded at 09:00:00: do a"]);
    pass(2 * MINUTE).await;
    assert_eq!(running.runs("").await[1..], ["a 09:30:00 succeeded at 09:30:00: do a"]);
}

#[tokio::test(start_paused = true)]
async fn clocks_of_a_zone_change_while_tasks_wait() {
    let mut harness = ScheduleHarness::at("2026-10-24T22:00:00Z");
    harness.settings.time_zone = Some("Europe/Berlin".to_owned());
    let running = harness.start();
    running.schedule("", "fixed", "30 2 * * *", false).await;
    running.schedule("", "interval", "0 2-3 * * *", false).await;
    pass(26 * HOUR).await;
    assert_eq!(
        running.runs("").await,
        [
            "interval 00:00:00 succeeded at 00:00:00: do interval",
            "fixed 00:30:00 succeeded at 00:30:00: do fixed",
            "interval 01:00:00 succeeded at 01:00:00: do interval",
            "interval 02:00:00 succeeded at 02:00:00: do interval",
        ]
    );
}

/// Returns the next times of the tasks without a key, in UTC.
async fn next_times(running: &RunningScheduler) -> Vec<String> {
    let tasks = running.tasks("").await;
    tasks
        .iter()
        .map(|task| format!("{} {}", task.name, timestamp(task.next_at.unwrap_or_default())))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn next_times_follow_the_time_zone_of_the_settings() {
    let mut harness = ScheduleHarness::at("2026-11-25T10:30:00Z");
    let running = harness.start();
    running.schedule("", "daily", "0 9 * * *", false).await;
    running.schedule("", "once", "0 12 25 11 *", true).await;
    let before = ["daily 2026-11-26T09:00:00Z", "once 2026-11-25T12:00:00Z"];
    assert_eq!(next_times(&running).await, before);
    harness.settings.time_zone = Some("America/New_York".to_owned());
    running.schedules.enable(Some(Arc::new(harness.settings.clone())));
    pass(1).await;
    // The agent has been told the time of the task that runs once.
    assert_eq!(next_times(&running).await, ["daily 2026-11-25T14:00:00Z", "once 2026-11-25T12:00:00Z"]);
    running.stop().await;
    harness.settings.time_zone = Some("UTC".to_owned());
    let running = harness.start();
    pass(1).await;
    assert_eq!(next_times(&running).await, before);
    pass(24 * HOUR).await;
    assert_eq!(
        running.runs("").await,
        ["once 12:00:00 succeeded at 12:00:00: do once", "daily 09:00:00 succeeded at 09:00:00: do daily"]
    );
}

#[tokio::test(start_paused = true)]
async fn time_that_is_due_is_not_moved_to_another_zone() {
    let mut harness = ScheduleHarness::at("2026-11-25T08:30:00Z");
    let running = harness.start();
    running.schedule("", "daily", "0 9 * * *", false).await;
    running.stop().await;
    pass(31 * MINUTE - 10).await;
    harness.settings.time_zone = Some("America/New_York".to_owned());
    let running = harness.start();
    pass(1).await;
    assert_eq!(running.runs("").await, ["daily 09:00:00 succeeded at 09:00:50: do daily"]);
    assert_eq!(next_times(&running).await, ["daily 2026-11-25T14:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn tasks_fire_again_once_a_wrong_clock_is_corrected() {
    let harness = ScheduleHarness::at("2026-11-25T08:50:00Z");
    let running = harness.start();
    running.schedule("", "a", "0 * * * *", false).await;
    let ten_years = 3652 * 24 * 3600;
    harness.clock.jump(ten_years);
    pass(MINUTE).await;
    running.schedule("", "b", "0 * * * *", false).await;
    assert_eq!(next_times(&running).await, ["a 2036-11-24T09:00:00Z", "b 2036-11-24T09:00:00Z"]);
    harness.clock.jump(-ten_years);
    pass(HOUR + 10 * MINUTE).await;
    assert_eq!(
        running.runs("").await[1..],
        [
            "b 09:00:00 succeeded at 09:00:00: do b",
            "a 10:00:00 succeeded at 10:00:00: do a",
            "b 10:00:00 succeeded at 10:00:00: do b",
        ]
    );
}
