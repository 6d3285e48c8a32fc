//! New encryption of what the gateway has stored, so that an old key can be removed.

use mcp_exact_auth::client::{Resealed, TokenStore as _};

use super::{Users, revocations, visits};

/// Numbers of stored values by what became of them; [`Users::reseal`] returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResealCounts {
    /// Values that are encrypted with the first key now, and were with another one before.
    pub renewed: usize,
    /// Values that were encrypted with the first key already.
    pub current: usize,
    /// Values that no key opens. Their users are asked again.
    pub unreadable: usize,
}

impl Users {
    /// Encrypts all tokens of users and registrations of clients with the first key, while processes use them; the others are not
    /// needed any more ten minutes later, when the visits that began before are over.
    ///
    /// # Errors
    /// Returns the error of the store. What was encrypted before stays so.
    pub async fn reseal(&self) -> Result<ResealCounts, String> {
        let (store, mut counts) = (&self.0.store, ResealCounts::default());
        for key in store.keys().await? {
            if key == revocations::RECORD || visits::is_record(&key) {
                continue;
            }
            match store.reseal(&key).await? {
                Resealed::Renewed => counts.renewed += 1,
                Resealed::Current => counts.current += 1,
                Resealed::Unreadable => counts.unreadable += 1,
                Resealed::Absent => {}
            }
        }
        Ok(counts)
    }
}
