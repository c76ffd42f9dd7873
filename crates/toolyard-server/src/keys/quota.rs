//! Quotas, in total or per period, shared by all gateways on one store.
//!
//! The store holds the used amount. A gateway reserves a small share of the remaining amount and spends it without
//! asking the store again, so that several gateways together never exceed the quota. A share is at most a sixty-fourth
//! of the remaining amount, so that the last units are reserved one by one. A gateway returns its unspent share when it
//! stops; if it is killed, the share is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use toolyard_core::access::CallPrice;
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError, StoredValue, WriteCondition};
use toolyard_core::{ErrorCode, ToolError};

use super::key::{QuotaAmount, QuotaPeriod, millis};

/// Space of the used amounts.
pub const USED: KeySpace = KeySpace("quota");

/// Name of the quota of calls.
pub(super) const CALLS_QUOTA: &str = "calls";

/// Name of the quota of the calls' cost.
pub(super) const COST_QUOTA: &str = "cost";

/// A gateway reserves this fraction of the remaining amount.
const SHARE_DIVISOR: u64 = 64;

/// Time for which the used amount of a period is kept after its end.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A quota of one key.
pub struct KeyQuota {
    store: Arc<dyn Store>,
    /// Name of the quota in the store.
    name: String,
    limit: QuotaAmount,
    reservation: Mutex<QuotaReservation>,
    /// Held by the one task that asks the store.
    store_turn: Semaphore,
}

/// The amount that this gateway has reserved and not spent.
#[derive(Debug, Clone, Copy, Default)]
struct QuotaReservation {
    /// Start of the period, in milliseconds since 1970.
    period: u64,
    left: u64,
}

impl std::fmt::Debug for KeyQuota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyQuota")
            .field("name", &self.name)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl KeyQuota {
    /// Creates the quota `name` of the key with this id.
    pub fn new(store: Arc<dyn Store>, id: &str, name: &str, limit: QuotaAmount) -> Self {
        let (name, reservation) = (format!("{id}/{name}"), Mutex::default());
        Self { store, name, limit, reservation, store_turn: Semaphore::new(1) }
    }

    /// Spends an amount.
    ///
    /// # Errors
    /// If the remaining amount is too small, or the store is unavailable.
    pub async fn take(&self, price: CallPrice) -> Result<(), ToolError> {
        if price.0 == 0 || self.spend(price.0) {
            return Ok(());
        }
        // The semaphore is never closed.
        let _turn = self.store_turn.acquire().await;
        if self.spend(price.0) {
            return Ok(());
        }
        self.check_result(self.reserve(price.0).await)
    }

    /// Checks that something remains, without spending it.
    ///
    /// # Errors
    /// If nothing remains, or the store is unavailable.
    pub async fn check(&self) -> Result<(), ToolError> {
        let period = self.period();
        let reservation = *self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        if reservation.period == period && reservation.left > 0 {
            return Ok(());
        }
        self.check_result(self.used(period).await.map(|used| used < self.limit.millionths))
    }

    fn check_result(&self, is_left: Result<bool, StoreError>) -> Result<(), ToolError> {
        match is_left {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(ToolError::new(ErrorCode::QuotaExhausted, format!("quota of {} exhausted", self.limit)))
            }
            Err(error) => {
                let message = "the quota cannot be checked: the store is unavailable";
                Err(ToolError::new(ErrorCode::Unavailable, message).caused_by(error))
            }
        }
    }

    /// Returns the amount that all gateways have reserved in a period, from the store.
    async fn used(&self, period: u64) -> Result<u64, StoreError> {
        Ok(used(self.store.get(USED, &format!("{}/{period}", self.name)).await?.as_ref()))
    }

    /// Returns an amount that was not used after all.
    pub fn give_back(&self, price: CallPrice) {
        let period = self.period();
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        if reservation.period == period {
            reservation.left += price.0;
        }
    }

    /// Returns the unspent reservation to the store.
    pub async fn stop(&self) {
        let reservation =
            std::mem::take(&mut *self.reservation.lock().unwrap_or_else(PoisonError::into_inner));
        if reservation.left == 0 {
            return;
        }
        loop {
            match self
                .update_used(reservation.period, |used| Some(used.saturating_sub(reservation.left)))
                .await
            {
                Ok(QuotaUpdate::Conflict) => {}
                Ok(QuotaUpdate::Done | QuotaUpdate::Refused) => return,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(quota = self.name, error, "lost the unspent part of a quota");
                    return;
                }
            }
        }
    }

    fn spend(&self, price: u64) -> bool {
        let period = self.period();
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        if reservation.period != period || reservation.left < price {
            return false;
        }
        reservation.left -= price;
        true
    }

    /// Reserves the price and a share of the remaining amount.
    async fn reserve(&self, price: u64) -> Result<bool, StoreError> {
        loop {
            let (period, limit) = (self.period(), self.limit.millionths);
            let mut share = 0;
            let update = self.update_used(period, |used| {
                let left = limit.saturating_sub(used);
                // Whole calls, or whole units of cost.
                share = left.checked_sub(price)? / SHARE_DIVISOR / QuotaAmount::ONE.0 * QuotaAmount::ONE.0;
                Some(used + price + share)
            });
            match update.await? {
                QuotaUpdate::Conflict => {}
                QuotaUpdate::Refused => return Ok(false),
                QuotaUpdate::Done => {
                    let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
                    if reservation.period != period {
                        *reservation = QuotaReservation { period, left: 0 };
                    }
                    reservation.left += share;
                    return Ok(true);
                }
            }
        }
    }

    /// Updates the used amount in the store unless another gateway has updated it meanwhile.
    async fn update_used(
        &self,
        period: u64,
        update_used: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<QuotaUpdate, StoreError> {
        let key = format!("{}/{period}", self.name);
        let stored = self.store.get(USED, &key).await?;
        let Some(used) = update_used(used(stored.as_ref())) else { return Ok(QuotaUpdate::Refused) };
        let condition = stored.map_or(WriteCondition::Absent, |value| WriteCondition::Version(value.version));
        let end = self.limit.per.map(|length| Duration::from_millis(period) + length.length() + RETENTION);
        let expires = end.map(|end| SystemTime::UNIX_EPOCH + end);
        let put = PutRequest { bytes: used.to_string().into(), condition, expires };
        Ok(self.store.put(USED, &key, put).await?.map_or(QuotaUpdate::Conflict, |_| QuotaUpdate::Done))
    }

    fn period(&self) -> u64 {
        period_of(self.limit)
    }
}

/// Returns the start of the current period of a quota, in milliseconds since 1970. 0 without a period.
fn period_of(limit: QuotaAmount) -> u64 {
    let now = millis(SystemTime::now());
    let length = limit
        .per
        .map(QuotaPeriod::length)
        .map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    length.map_or(0, |length| now - now % length)
}

/// Returns the amount that is used of the quota `name` of the key with this id, including what gateways have reserved.
///
/// # Errors
/// If the store fails.
pub async fn used_of(
    store: &dyn Store,
    id: &str,
    name: &str,
    limit: QuotaAmount,
) -> Result<CallPrice, StoreError> {
    let stored = store.get(USED, &format!("{id}/{name}/{}", period_of(limit))).await?;
    Ok(CallPrice(used(stored.as_ref())))
}

/// Parses the used amount of a stored value.
fn used(value: Option<&StoredValue>) -> u64 {
    let text = value.and_then(|value| std::str::from_utf8(&value.bytes).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Outcome of an update of the used amount.
enum QuotaUpdate {
    Done,
    /// Another gateway has updated it meanwhile.
    Conflict,
    /// The remaining amount is too small.
    Refused,
}

#[cfg(test)]
mod tests;
