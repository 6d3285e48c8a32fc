//! Keys that protect the state of multi round-trip requests (2026-07-28, `basic/patterns/mrtr`).
//!
//! States are sealed with XChaCha20-Poly1305 and a random nonce, so that clients can neither read nor change a state,
//! nor use it for another request or principal. Replicas that share the keys can continue each other's requests.
//!
//! The last four bytes of a nonce name the key, so that a damaged string can be told from one of another key; the other 20 are
//! random. Every nonce is accepted, whatever its last bytes are.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

use crate::protocol::{OpenFailure, Seal};

/// Length of the nonce in bytes.
const NONCE_BYTES: usize = 24;
/// Length of the authentication tag in bytes.
const TAG_BYTES: usize = 16;
/// Length of the id of a key in bytes, at the end of the nonce.
const ID_BYTES: usize = 4;

/// Ring of keys: the first key seals states, and every key can open them.
///
/// To rotate keys, put the new key first and keep the old key as long as states are valid
/// ([`ServerBuilder::state_lifetime`](crate::ServerBuilder::state_lifetime)). If replicas are not restarted
/// simultaneously, first add the new key to all of them as an older key, so that every replica can open states that
/// other replicas seal with the new key.
#[derive(Clone)]
pub struct KeyRing {
    /// Keys, the sealing one first.
    keys: Vec<RingKey>,
}

/// Key of a ring.
#[derive(Clone)]
struct RingKey {
    cipher: XChaCha20Poly1305,
    /// Id of the key, which tells nothing about it; `None` if the cipher gives none.
    id: Option<[u8; ID_BYTES]>,
}

impl RingKey {
    fn new(key: [u8; 32]) -> Self {
        let cipher = XChaCha20Poly1305::new(&Key::from(key));
        // The first bytes of a tag that no sealed string has: its message is empty, and its nonce is all zeros.
        let payload = Payload {
            msg: b"",
            aad: b"id of the key",
        };
        let tag = cipher.encrypt(&XNonce::from([0; NONCE_BYTES]), payload);
        let id = tag.ok().and_then(|tag| tag.first_chunk().copied());
        Self { cipher, id }
    }

    /// Returns true if a nonce names this key.
    fn is_named_by(&self, nonce: &[u8]) -> bool {
        self.id.is_some_and(|id| nonce.ends_with(&id))
    }
}

impl KeyRing {
    /// Creates a ring from keys of 32 random bytes; `first` is the key that seals.
    pub fn new(first: [u8; 32], older: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let keys = std::iter::once(first).chain(older);
        Self {
            keys: keys.map(RingKey::new).collect(),
        }
    }

    /// Creates a ring with one random key. States are lost when the process ends, and no other process can open them.
    ///
    /// # Errors
    /// [`NoRandomness`] if the system has no source of random numbers.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| NoRandomness(error.to_string()))?;
        Ok(Self::new(key, []))
    }
}

/// Error of a system that does not provide random numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random numbers ({0}); give the server keys by `.keys(…)`")]
pub struct NoRandomness(String);

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

impl Seal for KeyRing {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        let mut nonce = [0; NONCE_BYTES];
        // Without a nonce, the state is the empty string, which no key opens, so the request starts from the beginning.
        let Ok(()) = getrandom::fill(&mut nonce) else {
            tracing::error!("the system gave no random numbers; a state was not sealed");
            return String::new();
        };
        let RingKey { cipher, id } = &self.keys[0];
        if let Some(id) = id {
            nonce[NONCE_BYTES - ID_BYTES..].copy_from_slice(id);
        }
        let payload = Payload {
            msg: payload.as_bytes(),
            aad: context,
        };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload);
        let Ok(sealed) = sealed else {
            return String::new();
        };
        URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        open_with(&self.keys, sealed, context)
    }

    fn is_current(&self, sealed: &str, context: &[u8]) -> bool {
        open_with(&self.keys[..1], sealed, context).is_some()
    }

    fn open_failure(&self, sealed: &str) -> OpenFailure {
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !sealed.bytes().all(is_base64url) {
            return OpenFailure::NotSealed;
        }
        if sealed.len() * 3 / 4 < NONCE_BYTES + TAG_BYTES {
            return OpenFailure::TooShort;
        }
        // Whatever follows may be cut off anywhere.
        let Ok(nonce) = URL_SAFE_NO_PAD.decode(&sealed[..NONCE_BYTES * 4 / 3]) else {
            return OpenFailure::NotSealed;
        };
        if self.keys.iter().any(|key| key.is_named_by(&nonce)) {
            OpenFailure::Changed
        } else {
            OpenFailure::OtherKey
        }
    }
}

/// Returns the payload of a string that was sealed with one of these keys.
fn open_with(keys: &[RingKey], sealed: &str, context: &[u8]) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
    let nonce = XNonce::from(<[u8; NONCE_BYTES]>::try_from(nonce).ok()?);
    let open = |key: &RingKey| {
        let payload = Payload {
            msg: sealed,
            aad: context,
        };
        key.cipher.decrypt(&nonce, payload).ok()
    };
    let text = keys.iter().find_map(open)?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sealed state can be opened only unchanged, and only with the context that it was sealed with.
    #[test]
    fn request_states_are_bound_to_context() {
        let ring = KeyRing::new([1; 32], []);
        let sealed = ring.seal("state", b"alice");
        assert_eq!(ring.open(&sealed, b"alice").as_deref(), Some("state"));
        assert_eq!(ring.open(&sealed, b"bob"), None);
        assert_eq!(ring.open("", b"alice"), None);
        assert_eq!(ring.open("?", b"alice"), None);
        let mut changed = sealed.into_bytes();
        changed[40] = if changed[40] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("base64");
        assert_eq!(ring.open(&changed, b"alice"), None);
    }

    /// A ring opens the states of its older keys, but a ring without the new key does not open new states.
    #[test]
    fn rotated_keys_unseal_older_states() {
        let old = KeyRing::new([1; 32], []);
        let new = KeyRing::new([2; 32], [[1; 32]]);
        let sealed = old.seal("state", b"");
        assert_eq!(new.open(&sealed, b"").as_deref(), Some("state"));
        assert_eq!(old.open(&new.seal("state", b""), b""), None);
        assert!(old.is_current(&sealed, b"") && !new.is_current(&sealed, b""));
        assert!(new.is_current(&new.seal("state", b""), b""));
    }

    /// Stored strings contain the id of their key, so every version must compute the same one. The expected bytes are the first of
    /// the tag that another implementation of XChaCha20-Poly1305 computes.
    #[test]
    fn ids_of_keys_do_not_change() {
        let sealed = KeyRing::new([1; 32], []).seal("state", b"a");
        let bytes = URL_SAFE_NO_PAD.decode(sealed).expect("base64");
        let id = &bytes[NONCE_BYTES - ID_BYTES..NONCE_BYTES];
        assert_eq!(id, [0xc6, 0xb4, 0x39, 0x14]);
    }

    /// A damaged string is told from one of a key that the ring does not have. Strings with other nonces, as earlier versions have
    /// sealed them, are opened as before.
    #[test]
    fn damage_differs_from_other_keys() {
        let ring = KeyRing::new([2; 32], [[1; 32]]);
        let stranger = KeyRing::new([3; 32], []);
        for sealed in [
            ring.seal("state", b"a"),
            KeyRing::new([1; 32], []).seal("state", b"a"),
        ] {
            assert_eq!(stranger.open_failure(&sealed), OpenFailure::OtherKey);
            let cut = |length: usize| ring.open_failure(&sealed[..length]);
            for length in [sealed.len() - 4, sealed.len() - 1, 54] {
                assert_eq!(cut(length), OpenFailure::Changed, "{length}");
            }
            for length in [53, 41, 0] {
                assert_eq!(cut(length), OpenFailure::TooShort, "{length}");
            }
            assert_eq!(ring.open(&sealed, b"a").as_deref(), Some("state"));
        }
        assert_eq!(ring.open_failure("{}"), OpenFailure::NotSealed);
        let payload = Payload {
            msg: b"state",
            aad: b"a",
        };
        let nonce = [7; NONCE_BYTES];
        let sealed = ring.keys[1].cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = URL_SAFE_NO_PAD.encode([&nonce[..], &sealed.expect("sealed")].concat());
        assert_eq!(ring.open(&sealed, b"a").as_deref(), Some("state"));
        assert_ne!(ring.seal("state", b"a"), ring.seal("state", b"a"));
    }

    #[test]
    fn sealed_states_are_unreadable() {
        let sealed = KeyRing::new([1; 32], []).seal("secret answer", b"");
        let bytes = URL_SAFE_NO_PAD.decode(sealed).expect("base64");
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"));
    }
}
