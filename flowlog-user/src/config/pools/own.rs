//! `AddressPool` of `flowlog.io/v1`: CIDRs and ranges under a name, parts of which are reserved.

use std::net::IpAddr;

use super::ranges::{self, Blocks, Range};
use super::{Defined, PoolForm, get, known, name};
use crate::record::Pool;
use crate::tree::{Problems, Tree};

pub(super) const KIND: &str = "AddressPool";

const KEYS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
const SPEC: &[&str] = &["cidrs", "ranges", "reserved"];

pub(super) fn read(document: &Tree, problems: &mut Problems) -> Option<Defined> {
    let fields = document.fields("key", KEYS, |key| known(KEYS, key), problems);
    match fields.get("apiVersion") {
        None => problems
            .error(&document.place, format!("apiVersion is missing; add `apiVersion: {}`", PoolForm::Own)),
        Some(version) => {
            if let Some(text) = version.text(problems)
                && text != PoolForm::Own.to_string()
            {
                let message = format!("unknown version `{text}` of {KIND}; {} is known", PoolForm::Own);
                problems.error(&version.place, message);
            }
        }
    }
    let named = name(document, problems);
    let Some(spec) = get(document, "spec") else {
        problems.error(&document.place, "spec is required; add one with cidrs or ranges");
        return None;
    };
    let fields = spec.fields("key", SPEC, |key| known(SPEC, key), problems);
    let mut blocks = Blocks::default();
    for item in fields.get("cidrs").map_or(&[][..], |tree| tree.list(problems)) {
        if let Some((range, _)) = ranges::cidr(item, problems) {
            blocks.push(range.block(Vec::new()), &item.place);
        }
    }
    for item in fields.get("ranges").map_or(&[][..], |tree| tree.list(problems)) {
        if let Some(range) = ranges::range(item, problems) {
            blocks.push(range.block(Vec::new()), &item.place);
        }
    }
    blocks.sort();
    for item in fields.get("reserved").map_or(&[][..], |tree| tree.list(problems)) {
        if let Some(range) = reserved(item, problems) {
            reserve(&mut blocks, range, item, problems);
        }
    }
    let blocks = blocks.done(problems);
    let (name, place) = named?;
    Some(Defined { pool: Pool { name, blocks }, place, form: PoolForm::Own })
}

/// A range, or a CIDR.
fn reserved(item: &Tree, problems: &mut Problems) -> Option<Range> {
    let text = item.text(problems)?;
    if text.contains('/') {
        return ranges::cidr(item, problems).map(|(range, _)| range);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        let length = ranges::bits(address);
        let message = format!("`{text}` is no range; write {address}/{length} for this address alone");
        problems.error(&item.place, message);
        return None;
    }
    ranges::range(item, problems)
}

fn reserve(blocks: &mut Blocks, range: Range, item: &Tree, problems: &mut Problems) {
    match blocks.around(range) {
        Some(block) => block.reserved.push(range.ends),
        None => {
            let shown = ranges::range_shown(range.is_v4, range.ends);
            let message = format!(
                "reserved range `{shown}` does not lie within one of the pool's CIDRs and ranges; correct one"
            );
            problems.error(&item.place, message);
        }
    }
}
