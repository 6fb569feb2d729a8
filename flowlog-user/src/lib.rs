//! flowlog's daemon and command line: the map of its rooms, in the order in which data passes.
//!
//! ```text
//! capture -> decode -> enrich -> filter -> project -> encode -> write        bytes in ... files out
//! read                                                                      files in, for `flowlog cat`
//! task, config, pipeline, server                                            what runs, and what it says
//! record, tree, metrics, limits, clock                                      what everyone may use
//! ```
//!
//! Imports point down this list: `main` > `pipeline`, `server` > `config` > `task` > rooms > the last line. A room
//! never imports another room; `pipeline` joins them. `cargo xtask tidy` checks it.

pub mod capture;
pub mod clock;
pub mod config;
pub mod decode;
pub mod encode;
pub mod enrich;
pub mod filter;
pub mod limits;
pub mod metrics;
pub mod pipeline;
pub mod project;
pub mod read;
pub mod record;
pub mod server;
pub mod task;
pub mod tree;
pub mod write;
