//! Tables, pages and links of the documentation, against the files that they describe.

mod architecture;
mod features;
mod pages;
mod table;
