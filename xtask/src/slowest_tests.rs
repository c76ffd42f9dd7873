//! The slowest tests of a run, read from the JUnit report that nextest writes (`.config/nextest.toml`).

use std::cmp::Reverse;
use std::time::Duration;

use anyhow::Context;

/// Prints the `count` slowest tests of the latest run with a nextest profile.
pub(crate) fn print(profile: &str, count: usize) -> anyhow::Result<()> {
    let path = xtask_support::root().join("target/nextest").join(profile).join("junit.xml");
    let report = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut times = test_times(&report);
    times.sort_by_key(|(_, time)| Reverse(*time));
    println!("\nslowest tests:");
    for (name, time) in times.iter().take(count) {
        println!("{:>8.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

/// Returns suite, name and time of each `testcase` element.
fn test_times(report: &str) -> Vec<(String, Duration)> {
    let elements = report.split("<testcase ").skip(1);
    elements
        .filter_map(|element| {
            let (name, suite) = (attribute(element, "name")?, attribute(element, "classname")?);
            let time = Duration::try_from_secs_f64(attribute(element, "time")?.parse().ok()?).ok()?;
            Some((format!("{suite} {name}"), time))
        })
        .collect()
}

/// Returns the value of an attribute. Names of tests have no character that XML escapes.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let tag = element.split_once('>')?.0;
    let value = tag.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix("=\""))?;
    Some(value.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_a_report_of_nextest() {
        let report = r#"<testsuite name="toolyard::full" tests="2">
            <testcase name="a::first" classname="toolyard::full" timestamp="2026-11-22T17:29:12.9+00:00" time="12.345"></testcase>
            <testcase name="second" classname="toolyard-core" time="0.001"><failure/></testcase></testsuite>"#;
        let expected = [
            ("toolyard::full a::first".to_owned(), Duration::from_millis(12_345)),
            ("toolyard-core second".to_owned(), Duration::from_millis(1)),
        ];
        assert_eq!(test_times(report), expected);
    }

    #[test]
    fn elements_without_a_time_are_skipped() {
        assert_eq!(
            test_times(r#"<testcase name="a" classname="b"> <testcase name="a" classname="b" time="x">"#),
            []
        );
    }
}
