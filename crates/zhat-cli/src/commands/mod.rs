//! One file for each command: its arguments, and how it calls the libraries and shows what they give.

pub mod bench;
pub mod data;
pub mod fit;
mod preset;
pub mod report;
pub mod reproduce;
mod table1;
pub mod theory;
