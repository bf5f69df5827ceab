//! One file for each command: its arguments, and how it calls the libraries and shows what they give.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod config;
mod config_options;
pub mod data;
mod device_options;
pub mod devices;
pub mod evaluate;
pub mod fit;
mod flops;
pub mod impute;
pub mod man;
pub mod report;
pub mod reproduce;
pub mod sample;
pub mod score;
mod show_options;
mod table1;
mod table_options;
pub mod theory;
mod time_options;
