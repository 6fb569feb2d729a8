//! Where the running kernel keeps what is read of a dropped packet, and what its reasons are called.
//!
//! In: the kernel's description of its types. Out: numbers for the program, or why there are none: a kernel that keeps
//! its packets in another way is left alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use flowlog_abi::{Places, SHARED_BYTES, SKB_BYTES};

use super::btf::{Btf, Member, Parameter};

/// Where the kernel describes its types, and those of its modules.
const FOLDER: &str = "/sys/kernel/btf";
/// What all reasons of the kernel's own begin with.
const REASON: &str = "SKB_DROP_REASON_";
/// The same of its subsystems.
const SUBSYSTEM: &str = "SKB_DROP_REASON_SUBSYS_";
/// Stands for a reason that this kernel has not.
const NO_REASON: u32 = u32::MAX;

/// What a drop's numbers mean.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    names: HashMap<u32, String>,
    /// By the upper half of a reason.
    subsystems: HashMap<u32, String>,
    /// Whose module has been looked at.
    asked: Vec<u32>,
    /// Where the strings of modules begin.
    strings_bytes: u32,
    folder: PathBuf,
}

/// Reads the kernel's types.
pub(super) fn read() -> Result<(Places, Reasons), String> {
    let path = Path::new(FOLDER).join("vmlinux");
    let bytes = std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let btf = Btf::parse(&bytes, 0).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
    let places = places(&btf)?;
    let subsystems = btf.values("skb_drop_reason_subsys").unwrap_or_default();
    let mut names: HashMap<u32, String> =
        btf.values_like("_drop_reason").into_iter().filter(|(number, _)| number >> 16 != 0).collect();
    names.extend(btf.values("skb_drop_reason").unwrap_or_default().into_iter().map(|(name, n)| (n, name)));
    let reasons = Reasons {
        names,
        subsystems: subsystems.into_iter().map(|(name, number)| (number, name)).collect(),
        asked: Vec::new(),
        strings_bytes: btf.strings_bytes(),
        folder: FOLDER.into(),
    };
    Ok((places, reasons))
}

fn places(btf: &Btf<'_>) -> Result<Places, String> {
    let missing = |what: &str| format!("this kernel's types have no {what} where it is looked for");
    let tracepoint =
        btf.tracepoint("btf_trace_kfree_skb").ok_or_else(|| missing("tracepoint skb:kfree_skb"))?;
    let has_reason = tracepoint.get(2) == Some(&Parameter::Enum("skb_drop_reason".into()));
    let has_socket = tracepoint.get(3) == Some(&Parameter::Pointer("sock".into()));
    let find = |of: &str, name: &str, bytes: u32| {
        let member = btf.member(of, name).filter(|member| btf.bytes_of(*member) == Some(bytes));
        member.and_then(Member::byte).ok_or_else(|| missing(&format!("{of}.{name}")))
    };
    let within = |of: &str, outer: &str, inner: &[&str]| {
        let outer_member = btf.member(of, outer);
        let last = inner.iter().try_fold(outer_member?, |outer, name| btf.inner(outer, name));
        last.and_then(Member::byte)
    };
    let deep = |of: &str, outer: &str, inner: &[&str]| {
        within(of, outer, inner).ok_or_else(|| missing(&format!("{of}.{outer}.{}", inner.join("."))))
    };
    let (skb_vlan, vlan_mask) = vlan(btf).ok_or_else(|| missing("sk_buff.vlan_all or vlan_present"))?;
    let values = btf.values("skb_drop_reason").unwrap_or_default();
    let reason =
        |name: &str| values.iter().find(|(known, _)| known == name).map_or(NO_REASON, |(_, number)| *number);
    let places = Places {
        skb_head: find("sk_buff", "head", 8)?,
        skb_data: find("sk_buff", "data", 8)?,
        skb_end: find("sk_buff", "end", 4)?,
        skb_len: find("sk_buff", "len", 4)?,
        skb_data_len: find("sk_buff", "data_len", 4)?,
        skb_mac_header: find("sk_buff", "mac_header", 2)?,
        skb_network_header: find("sk_buff", "network_header", 2)?,
        skb_protocol: find("sk_buff", "protocol", 2)?,
        skb_dev: find("sk_buff", "dev", 8)?,
        skb_sk: find("sk_buff", "sk", 8)?,
        skb_dst: find("sk_buff", "_skb_refdst", 8)?,
        skb_iif: find("sk_buff", "skb_iif", 4)?,
        skb_vlan_tci: find("sk_buff", "vlan_tci", 2)?,
        skb_vlan,
        vlan_mask,
        shared_gso_size: find("skb_shared_info", "gso_size", 2)?,
        shared_gso_segs: find("skb_shared_info", "gso_segs", 2)?,
        dev_ifindex: find("net_device", "ifindex", 4)?,
        dev_net: deep("net_device", "nd_net", &["net"])?,
        dev_name: btf
            .member("net_device", "name")
            .and_then(Member::byte)
            .ok_or_else(|| missing("net_device.name"))?,
        net_inum: deep("net", "ns", &["inum"])?,
        sock_net: deep("sock", "__sk_common", &["skc_net", "net"])?,
        dst_dev: find("dst_entry", "dev", 8)?,
        has_reason: u32::from(has_reason),
        has_socket: u32::from(has_socket),
        no_drop: [reason("SKB_NOT_DROPPED_YET"), reason("SKB_CONSUMED")],
    };
    if fit(&places) {
        Ok(places)
    } else {
        Err("this kernel's packets are larger than what is read of them".into())
    }
}

/// Whether all of it lies in what the program copies, each as the program loads it.
fn fit(places: &Places) -> bool {
    let in_skb = [
        (places.skb_head, 8),
        (places.skb_data, 8),
        (places.skb_end, 4),
        (places.skb_len, 4),
        (places.skb_data_len, 4),
        (places.skb_mac_header, 2),
        (places.skb_network_header, 2),
        (places.skb_protocol, 2),
        (places.skb_dev, 8),
        (places.skb_sk, 8),
        (places.skb_dst, 8),
        (places.skb_iif, 4),
        (places.skb_vlan_tci, 2),
        (places.skb_vlan, 4),
    ];
    let fits = |(at, bytes): (u32, u32), room: usize| at % bytes == 0 && (at + bytes) as usize <= room;
    let shared = [(places.shared_gso_size, 2), (places.shared_gso_segs, 2)];
    in_skb.into_iter().all(|part| fits(part, SKB_BYTES))
        && shared.into_iter().all(|part| fits(part, SHARED_BYTES))
}

/// Where it says that there is a VLAN tag: in a word that is not 0 then, or (before 6.2) in one bit.
fn vlan(btf: &Btf<'_>) -> Option<(u32, u32)> {
    if let Some(all) = btf.member("sk_buff", "vlan_all") {
        return Some((all.byte()?, u32::MAX));
    }
    let bits = btf.member("sk_buff", "vlan_present")?.bits;
    // The word around the bit; little-endian machines count a byte's bits from below.
    Some((bits / 32 * 4, 1 << (bits % 32)))
}

impl Reasons {
    /// The name of a reason, as the kernel's own tracepoint prints it; of a subsystem's with that before it. `None` where
    /// the kernel gives no reasons.
    pub(super) fn name(&mut self, number: u32) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let subsystem = number >> 16;
        if subsystem != 0 && !self.names.contains_key(&number) && !self.asked.contains(&subsystem) {
            self.asked.push(subsystem);
            self.ask_module(subsystem);
        }
        let name = self.names.get(&number).map(|name| name.strip_prefix(REASON).unwrap_or(name));
        let name = name.map_or_else(|| (number & 0xffff).to_string(), str::to_owned);
        if subsystem == 0 {
            return Some(name);
        }
        let of = self.subsystems.get(&subsystem).map(|of| of.strip_prefix(SUBSYSTEM).unwrap_or(of));
        Some(format!("{}:{name}", of.map_or_else(|| subsystem.to_string(), str::to_lowercase)))
    }

    /// Looks for the names of a subsystem's reasons in the module that it is.
    fn ask_module(&mut self, subsystem: u32) {
        let Some(name) = self.subsystems.get(&subsystem).and_then(|name| name.strip_prefix(SUBSYSTEM)) else {
            return;
        };
        // MAC80211_UNUSABLE and MAC80211_MONITOR are of one module.
        let module = name.to_lowercase();
        let module = module.split('_').next().unwrap_or_default();
        let Ok(bytes) = std::fs::read(self.folder.join(module)) else { return };
        match Btf::parse(&bytes, self.strings_bytes) {
            Ok(btf) => {
                let own = btf.values_like("").into_iter().filter(|(number, _)| number >> 16 == subsystem);
                self.names.extend(own);
            }
            Err(why) => tracing::debug!(module, why, "cannot read the types of a module"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::btf::tests::kernel;
    use super::*;

    #[test]
    fn what_is_not_found_disables_the_hook_by_name() {
        let kernel = kernel();
        let file = kernel.file(kernel.types.len());
        let why = places(&Btf::parse(&file, 0).unwrap()).unwrap_err();
        assert_eq!(
            why,
            "this kernel's types have no sk_buff.vlan_all or vlan_present where it is looked for"
        );
        let none = kernel.file(0);
        let why = places(&Btf::parse(&none, 0).unwrap()).unwrap_err();
        assert_eq!(why, "this kernel's types have no tracepoint skb:kfree_skb where it is looked for");
    }

    #[test]
    fn what_lies_behind_what_is_copied_does_not_fit() {
        let room = u32::try_from(SKB_BYTES).unwrap();
        assert!(fit(&Places { skb_dev: room - 8, ..Places::default() }));
        for places in [
            Places { skb_dev: room, ..Places::default() },
            Places { skb_len: room - 2, ..Places::default() },
            Places { skb_protocol: 3, ..Places::default() },
            Places { shared_gso_segs: u32::try_from(SHARED_BYTES).unwrap(), ..Places::default() },
        ] {
            assert!(!fit(&places), "{places:?}");
        }
    }
}
