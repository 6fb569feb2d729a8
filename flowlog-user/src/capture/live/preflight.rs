//! Looks, before anything is loaded, for what is missing, so that the message names it instead of an errno.

use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::Error;

const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";
/// The first kernel that flowlog supports.
const MINIMUM: (u32, u32) = (5, 10);
/// From here on maps are charged to the memory cgroup instead of RLIMIT_MEMLOCK.
const NO_MEMLOCK: (u32, u32) = (5, 11);

/// Checks this machine and this thread; raises the memory lock limit where the kernel still counts by it.
pub(super) fn check() -> Result<(), Error> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let version = check_kernel(&release)?;
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    check_capabilities(held)?;
    check_btf(Path::new(BTF_PATH).exists())?;
    if version < NO_MEMLOCK {
        raise_memlock()?;
    }
    Ok(())
}

fn check_kernel(release: &str) -> Result<(u32, u32), Error> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= MINIMUM => Ok((major, minor)),
        _ => Err(Error::KernelTooOld { release: release.to_owned() }),
    }
}

fn check_capabilities(held: CapabilitySet) -> Result<(), Error> {
    // CAP_SYS_ADMIN stands in for the two that were split off it, not for CAP_NET_ADMIN.
    let admin = held.contains(CapabilitySet::SYS_ADMIN);
    let missing: Vec<_> = [
        ("CAP_BPF", admin || held.contains(CapabilitySet::BPF)),
        ("CAP_PERFMON", admin || held.contains(CapabilitySet::PERFMON)),
        ("CAP_NET_ADMIN", held.contains(CapabilitySet::NET_ADMIN)),
    ]
    .into_iter()
    .filter_map(|(name, there)| (!there).then_some(name))
    .collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Capabilities { missing: missing.join(", ") }) }
}

const fn check_btf(there: bool) -> Result<(), Error> {
    if there { Ok(()) } else { Err(Error::NoBtf { path: BTF_PATH }) }
}

fn raise_memlock() -> Result<(), Error> {
    let unlimited = Rlimit { current: None, maximum: None };
    let now = getrlimit(Resource::Memlock);
    let Some(limit) = now.current else { return Ok(()) };
    setrlimit(Resource::Memlock, unlimited)
        .map_err(|error| Error::Memlock { limit, source: io::Error::from(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_from_5_10_are_taken() {
        assert_eq!(check_kernel("5.10.0-30-amd64").unwrap(), (5, 10));
        assert_eq!(check_kernel("6.18.44").unwrap(), (6, 18));
        assert_eq!(check_kernel("7.0-rc1").unwrap(), (7, 0));
        for old in ["5.9.16", "4.19.0-27-amd64", "5.4", "nonsense", ""] {
            let text = check_kernel(old).unwrap_err().to_string();
            assert!(text.contains(old) && text.contains("5.10"), "{text}");
        }
    }

    #[test]
    fn missing_capabilities_are_all_named() {
        let text = check_capabilities(CapabilitySet::NET_RAW).unwrap_err().to_string();
        for word in ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN", "sudo", "setcap"] {
            assert!(text.contains(word), "{word} in {text}");
        }
        let only_net = check_capabilities(CapabilitySet::SYS_ADMIN).unwrap_err().to_string();
        assert!(only_net.contains("missing CAP_NET_ADMIN;"), "{only_net}");
    }

    #[test]
    fn either_set_of_capabilities_is_enough() {
        let split = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN;
        assert!(check_capabilities(split).is_ok());
        assert!(check_capabilities(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN).is_ok());
    }

    #[test]
    fn missing_btf_names_path_and_remedy() {
        let text = check_btf(false).unwrap_err().to_string();
        assert!(text.contains(BTF_PATH) && text.contains("CONFIG_DEBUG_INFO_BTF"), "{text}");
        assert!(check_btf(true).is_ok());
    }
}
