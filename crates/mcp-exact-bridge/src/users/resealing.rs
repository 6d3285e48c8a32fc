//! New encryption of what the gateway has stored, so that an old key can be removed.

use mcp_exact_auth::client::{Resealed, TokenStore as _};
use mcp_exact_session::OpenFailure;

use super::{Users, revocations, visits};

/// Numbers of stored values by what became of them; [`Users::reseal`] returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResealCounts {
    /// Values that are encrypted with the first key now, and were with another one before.
    pub renewed: usize,
    /// Values that were encrypted with the first key already.
    pub current: usize,
    /// Values that were encrypted with a key that the gateway does not have. Their users get errors until the key is added, or
    /// [`Users::remove_unreadable`] removes the values.
    pub unreadable: usize,
    /// Values that are damaged, which no key can decrypt. Their users get errors until [`Users::remove_damaged`] removes them.
    pub damaged: Vec<DamagedValue>,
    /// Values whose keys are not known: those of an earlier version, which cannot be encrypted anew before they are used once more, and
    /// those that the store cannot read.
    pub unlisted: usize,
}

/// Stored value that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedValue {
    /// Key of the value in the store, which names the principal of tokens, or the issuer of a registration.
    pub key: String,
    /// What is wrong with the value.
    pub failure: OpenFailure,
}

impl Users {
    /// Encrypts all tokens of users and registrations of clients with the first key, while processes use them; the others are not
    /// needed any more ten minutes later, when the visits that began before are over.
    ///
    /// # Errors
    /// Returns the error of the store, after all values were tried. What was encrypted before stays so.
    pub async fn reseal(&self) -> Result<ResealCounts, String> {
        let (store, mut counts) = (&self.0.store, ResealCounts::default());
        let mut failed = Vec::new();
        for key in self.sealed_keys().await? {
            match store.reseal(&key).await {
                Ok(Resealed::Renewed) => counts.renewed += 1,
                Ok(Resealed::Current) => counts.current += 1,
                Ok(Resealed::Unreadable(failure)) if failure.is_damage() => {
                    counts.damaged.push(DamagedValue { key, failure });
                }
                Ok(Resealed::Unreadable(_)) => counts.unreadable += 1,
                Ok(Resealed::Absent) => {}
                Err(error) => failed.push(error),
            }
        }
        if let Some(first) = failed.first() {
            return Err(format!(
                "{} stored values were not encrypted anew, the first because: {first}",
                failed.len()
            ));
        }
        counts.unlisted = store.unlisted().await?;
        Ok(counts)
    }

    /// Removes the tokens of users and registrations of clients that no key opens, after a key was lost, or that are damaged: their
    /// users are asked again, and the gateway registers itself again. Returns their number. A process with a key that this one does not have loses them.
    ///
    /// # Errors
    /// Returns the error of the store. What was removed before stays so.
    pub async fn remove_unreadable(&self) -> Result<usize, String> {
        let mut removed = 0;
        for key in self.sealed_keys().await? {
            removed += usize::from(self.0.store.remove_unreadable(&key).await?);
        }
        Ok(removed)
    }

    /// Removes the tokens of users and registrations of clients that are damaged, and leaves those of a key that is missing here. Returns
    /// their number.
    ///
    /// # Errors
    /// Returns the error of the store. What was removed before stays so.
    pub async fn remove_damaged(&self) -> Result<usize, String> {
        let mut removed = 0;
        for key in self.sealed_keys().await? {
            removed += usize::from(self.0.store.remove_damaged(&key).await?);
        }
        Ok(removed)
    }

    /// Returns the keys of what is encrypted and lasts.
    async fn sealed_keys(&self) -> Result<Vec<String>, String> {
        let mut keys = self.0.store.keys().await?;
        keys.retain(|key| key != revocations::RECORD && !visits::is_record(key));
        Ok(keys)
    }
}
