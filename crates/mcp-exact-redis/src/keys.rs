//! Names of the Redis keys. All keys of one script have the same hash tag and therefore the same cluster slot.

/// Number of hashes with the complete streams of a session. Each hash stores the streams of one event lifetime and
/// expires one lifetime later, before further streams are stored in the hash.
pub(crate) const COMPLETE_HASHES: usize = 3;

/// Builder of key names with a common prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// Common prefix of all keys.
    pub(crate) prefix: String,
}

impl Keys {
    /// Returns the key of a session's record.
    pub(crate) fn session(&self, id: &str) -> String {
        format!("{}{id}}}", self.session_start())
    }

    /// Returns the common prefix of the keys of all records. A key is this prefix, the id of the session, and a closing
    /// brace.
    pub(crate) fn session_start(&self) -> String {
        format!("{}:s:{{", self.prefix)
    }

    /// Returns the key of the lease of a process.
    pub(crate) fn process(&self, id: &str) -> String {
        format!("{}:p:{id}", self.prefix)
    }

    /// Returns the key of the hash with the owners and last wills of a session's streams.
    pub(crate) fn owners(&self, session: &str) -> String {
        format!("{}:o:{{{session}}}", self.prefix)
    }

    /// Returns the common prefix of the keys of a session's streams. A key is this prefix and the number of the stream.
    pub(crate) fn streams(&self, session: &str) -> String {
        format!("{}{session}}}:", self.stream_start())
    }

    /// Returns the common prefix of the keys of all streams.
    pub(crate) fn stream_start(&self) -> String {
        format!("{}:e:{{", self.prefix)
    }

    /// Returns the keys of the hashes with a session's complete streams.
    pub(crate) fn complete_streams(&self, session: &str) -> [String; COMPLETE_HASHES] {
        std::array::from_fn(|index| self.complete_hash(session, index))
    }

    /// Returns the key of one of the hashes with a session's complete streams.
    pub(crate) fn complete_hash(&self, session: &str, index: usize) -> String {
        format!("{}{session}}}:{index}", self.complete_start())
    }

    /// Returns the common prefix of the keys of all hashes with complete streams.
    pub(crate) fn complete_start(&self) -> String {
        format!("{}:c:{{", self.prefix)
    }

    /// Returns the keys of the change bus: its messages, and their count.
    pub(crate) fn bus(&self) -> (String, String) {
        let prefix = &self.prefix;
        (
            format!("{{{prefix}:bus}}:log"),
            format!("{{{prefix}:bus}}:count"),
        )
    }
}
