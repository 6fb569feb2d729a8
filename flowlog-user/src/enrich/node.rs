//! The node itself: its name, its boot, its addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::clock;
use crate::record::{Interface, Node};

const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

/// What a snapshot cannot be made without.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel's boot id is missing or not a UUID.
    #[error("cannot read this boot's id from {path}: {reason}; in a container mount the host's /proc")]
    BootId {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The node as of now. `node_name` and `cluster_name` are the options of that name; without the first it is the
/// host's name. Interfaces and addresses are what the capture knows; there are no pools.
///
/// # Errors
///
/// When the kernel gives no boot id, without which no record's id would be unique.
pub fn snapshot(
    node_name: Option<&str>,
    cluster_name: Option<&str>,
    interfaces: BTreeMap<u32, Interface>,
    mut addresses: Vec<IpAddr>,
) -> Result<Node, Error> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let node = node_name.map_or(host, str::to_owned);
    addresses.sort_unstable(); // searched by halves for each flow
    addresses.dedup();
    Ok(Node {
        name: full_name(&node, cluster_name),
        boot: boot_id(Path::new(BOOT_ID_PATH))? ^ run_id(),
        interfaces,
        addresses,
        pools: Arc::default(),
    })
}

/// A number of this run: two daemons on one boot must not give one uuid to two records.
fn run_id() -> u64 {
    static RUN_ID: OnceLock<u64> = OnceLock::new();
    *RUN_ID.get_or_init(|| spread(clock::monotonic_ns() ^ u64::from(std::process::id()).rotate_left(40)))
}

/// Any change of a bit changes about half of them (the finaliser of SplitMix64).
const fn spread(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Hubble's form: `cluster/node` when the cluster has a name.
fn full_name(node: &str, cluster: Option<&str>) -> String {
    match cluster {
        Some(cluster) if !cluster.is_empty() => format!("{cluster}/{node}"),
        _ => node.to_owned(),
    }
}

fn boot_id(path: &Path) -> Result<u64, Error> {
    let failed = |reason: String| Error::BootId { path: path.display().to_string(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    parse_boot_id(&text).ok_or_else(|| failed(format!("\"{}\" is not a UUID", text.trim())))
}

/// The two halves of the UUID, folded into one number.
fn parse_boot_id(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    let whole = u128::from_str_radix(&digits, 16).ok()?;
    u64::try_from((whole >> 64) ^ (whole & u128::from(u64::MAX))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_id_is_the_uuid_s_halves_combined() {
        assert_eq!(
            parse_boot_id("01234567-89ab-cdef-0000-000000000001\n"),
            Some(0x0123_4567_89ab_cdee) // 0x0123456789abcdef ^ 1
        );
        for wrong in
            ["", "not a uuid", "01234567-89ab-cdef-0000-00000000000", "g1234567-89ab-cdef-0000-000000000001"]
        {
            assert_eq!(parse_boot_id(wrong), None, "{wrong}");
        }
        let text = boot_id(Path::new("/nonexistent/boot_id")).unwrap_err().to_string();
        assert!(text.contains("/nonexistent/boot_id") && text.contains("mount"), "{text}");
    }

    #[test]
    fn the_cluster_s_name_comes_first() {
        assert_eq!(full_name("node-1", Some("east")), "east/node-1");
        assert_eq!(full_name("node-1", None), "node-1");
        assert_eq!(full_name("node-1", Some("")), "node-1");
    }

    #[test]
    fn a_snapshot_names_the_host_and_sorts_its_addresses() {
        let addresses: Vec<IpAddr> =
            ["10.0.0.9", "::1", "10.0.0.1", "::1"].map(|a| a.parse().unwrap()).to_vec();
        let node = snapshot(None, None, BTreeMap::new(), addresses).unwrap();
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(node.name, hostname.trim());
        assert_eq!(node.addresses.len(), 3);
        assert!(node.addresses.is_sorted());
        let named = snapshot(Some("n"), Some("c"), BTreeMap::new(), Vec::new()).unwrap();
        assert_eq!((named.name.as_str(), named.boot), ("c/n", node.boot));
    }
}
