//! The time zone of a gateway, and the forms of its times.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time zone with its name.
#[derive(Debug, Clone)]
pub struct ScheduleZone {
    /// The zone.
    pub zone: TimeZone,
    name: String,
}

impl ScheduleZone {
    /// Returns the zone of this name, or that of the machine. An unknown zone is UTC.
    #[must_use]
    pub fn new(name: Option<&str>) -> Self {
        let zone = match name {
            Some(name) => TimeZone::get(name),
            None => TimeZone::try_system(),
        };
        let zone = zone.unwrap_or(TimeZone::UTC);
        let name = zone.iana_name().map(str::to_owned).or_else(|| name.map(str::to_owned));
        Self { zone, name: name.unwrap_or_else(|| "local time".to_owned()) }
    }

    /// Returns the local time, such as `2026-11-25 09:00:00`.
    #[must_use]
    pub fn local(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Returns the time with its offset, in the form of RFC 3339.
    #[must_use]
    pub fn rfc_3339(&self, time: Timestamp) -> String {
        time.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Returns the sentence about the current time that every list has.
    #[must_use]
    pub fn current_time(&self, now: Timestamp) -> String {
        let offset = now.to_zoned(self.zone.clone()).strftime("%:z").to_string();
        format!("Current time: {} ({}, UTC{offset})", self.local(now), self.name)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
