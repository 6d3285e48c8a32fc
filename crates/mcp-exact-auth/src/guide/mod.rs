//! Guides, one for each task. Their examples are compiled with the tests of this crate.

#[doc = include_str!("protect.md")]
pub mod protect {}

#[doc = include_str!("connect.md")]
pub mod connect {}

#[doc = include_str!("headless.md")]
pub mod headless {}

#[doc = include_str!("elicit.md")]
pub mod elicit {}

#[doc = include_str!("store.md")]
pub mod store {}

#[doc = include_str!("providers.md")]
pub mod providers {}
