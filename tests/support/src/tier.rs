//! Sizes of seeded tests in two tiers: few cases in `cargo xtask test`, many in `cargo xtask nightly tests`.

/// Environment variable that selects the tier; its only value is `long`.
const VARIABLE: &str = "MCP_EXACT_TIER";

/// Number of cases of a test in each tier.
#[derive(Debug, Clone, Copy)]
pub struct Cases {
    /// Number in the short tier.
    pub short: usize,
    /// Number in the long tier.
    pub long: usize,
}

impl Cases {
    /// Returns the number of the tier of this run.
    ///
    /// # Panics
    /// If the variable `MCP_EXACT_TIER` has a value other than `long`.
    pub fn number(self) -> usize {
        match std::env::var(VARIABLE) {
            Ok(tier) if tier == "long" => self.long,
            Ok(other) => panic!("{VARIABLE} is {other:?}; its only value is `long`"),
            Err(_) => self.short,
        }
    }
}
