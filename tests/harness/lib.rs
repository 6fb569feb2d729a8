//! Harness of the end-to-end tests: network namespaces, the daemon as a child process, traffic of known size, and
//! records read back with tools that are not flowlog's. For the benches:
//! rounds measured in turn, and their judgement.

pub mod bpffs;
pub mod capture;
pub mod corpus;
pub mod daemon;
pub mod drops;
pub mod flood;
pub mod generated;
pub mod guest;
pub mod http;
pub mod load;
pub mod loaded;
pub mod measure;
pub mod model;
pub mod neighbour;
pub mod netns;
pub mod packets;
pub mod pools;
pub mod process;
pub mod random;
pub mod records;
pub mod report;
pub mod rules;
pub mod shim;
pub mod topology;
pub mod traffic;
pub mod usage;
pub mod wire;
