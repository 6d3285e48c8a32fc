//! Method of a message: its id, which is found once when the message is read or created, and its name.
//!
//! The name of a method that a schema defines is not copied.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use mcp_exact_revisions::MethodId;

/// Method of a message that was received or is sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Method {
    /// Id of the method; [`MethodId::Vendor`] if no schema defines it.
    id: MethodId,
    /// Name of the method.
    name: Cow<'static, str>,
}

impl From<&str> for Method {
    fn from(name: &str) -> Self {
        let id = MethodId::from_name(name);
        Self {
            id,
            name: id
                .name()
                .map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed),
        }
    }
}

impl From<String> for Method {
    fn from(name: String) -> Self {
        let id = MethodId::from_name(&name);
        Self {
            id,
            name: id.name().map_or(Cow::Owned(name), Cow::Borrowed),
        }
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.name.into_owned()
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

impl Deref for Method {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

/// A method, or the name of a method whose id must be looked up.
pub(crate) trait MethodName {
    /// Returns the name.
    fn name(&self) -> &str;

    /// Returns the id; [`MethodId::Vendor`] if no schema defines the method.
    fn id(&self) -> MethodId;
}

impl MethodName for Method {
    fn name(&self) -> &str {
        self
    }

    fn id(&self) -> MethodId {
        self.id
    }
}

impl<M: MethodName + ?Sized> MethodName for &M {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn id(&self) -> MethodId {
        (**self).id()
    }
}

impl MethodName for str {
    fn name(&self) -> &str {
        self
    }

    fn id(&self) -> MethodId {
        MethodId::from_name(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A known method has its id and borrows its name; the name of another method is kept as it is.
    #[test]
    fn known_names_are_not_copied() {
        for id in MethodId::KNOWN {
            let name = id.name().expect("a known method");
            for method in [Method::from(name), Method::from(name.to_owned())] {
                assert_eq!((method.id(), &*method), (*id, name));
                assert!(matches!(method.name, Cow::Borrowed(_)), "{name}");
            }
        }
        for name in ["", "tools/calls", "Tools/call", "vendor/x"] {
            let method = Method::from(name);
            assert_eq!((method.id(), &*method), (MethodId::Vendor, name));
            assert_eq!(String::from(method), name);
        }
    }
}
