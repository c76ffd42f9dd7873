//! The time that a caller waits: `grpc-timeout` (gRPC over HTTP2, "Requests").

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use tonic::Status;

/// Maximum number of digits.
const MAX_DIGITS: usize = 8;

/// Returns the time at which the caller stops waiting; `None` if it waits for ever.
pub(super) fn parse_grpc_timeout(headers: &HeaderMap, now: Instant) -> Result<Option<Instant>, Status> {
    let Some(header) = headers.get("grpc-timeout") else { return Ok(None) };
    let time = header.to_str().ok().and_then(parse);
    let time = time.ok_or_else(|| {
        Status::invalid_argument(
            "`grpc-timeout` is not a number of at most 8 digits and a unit of H, M, S, m, u, n",
        )
    })?;
    Ok(now.checked_add(time))
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number * 3600),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_parsed() {
        let check = |text: &str, expected: Option<Duration>| assert_eq!(parse(text), expected, "{text:?}");
        check("1H", Some(Duration::from_secs(3600)));
        check("2M", Some(Duration::from_secs(120)));
        check("3S", Some(Duration::from_secs(3)));
        check("4m", Some(Duration::from_millis(4)));
        check("5u", Some(Duration::from_micros(5)));
        check("99999999n", Some(Duration::from_nanos(99_999_999)));
        check("0S", Some(Duration::ZERO));
        check("99999999H", Some(Duration::from_secs(99_999_999 * 3600)));
        for text in ["", "S", "1", "123456789S", "-1S", "+1S", "1s", "1.5S", " 1S", "1é", "é"] {
            check(text, None);
        }
    }
}
