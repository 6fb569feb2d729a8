//! `CiliumPodIPPool` of `cilium.io/v2alpha1` and `cilium.io/v2`, with every way in which a part of a CIDR was ever reserved
//! in it: a `reservedRange` beside the `cidr`, and settings of a CIDR in a list `pool`.
//!
//! `maskSize`, `allowFirstIP`, `allowLastIP` and the selectors say to whom and how Cilium gives addresses; they are
//! checked, and do not change to which pool an address belongs.

use super::ranges::{self, Blocks, Range};
use super::{Defined, PoolForm, get, known, name, selector};
use crate::record::Pool;
use crate::tree::{Entry, Problems, Tree, Value};

pub(super) const KIND: &str = "CiliumPodIPPool";

const SPEC: &[&str] = &["ipv4", "ipv6", "podSelector", "namespaceSelector", "allowFirstIP", "allowLastIP"];
const FAMILY: &[&str] = &["cidrs", "maskSize", "pool"];
const CIDR: &[&str] = &["cidr", "reservedRange", "reservedRanges"];
const RANGE: &[&str] = &["start", "end"];

pub(super) fn read(document: &Tree, problems: &mut Problems) -> Option<Defined> {
    let form = form(document, problems);
    let named = name(document, problems);
    let mut blocks = Blocks::default();
    match get(document, "spec") {
        Some(spec) => {
            for entry in spec.map(problems) {
                part(entry, &mut blocks, problems);
            }
        }
        None => problems.error(&document.place, "spec is required; add one with ipv4 or ipv6"),
    }
    let blocks = blocks.done(problems);
    let (name, place) = named?;
    Some(Defined { pool: Pool { name, blocks }, place, form: form? })
}

fn form(document: &Tree, problems: &mut Problems) -> Option<PoolForm> {
    let known = [PoolForm::CiliumV2, PoolForm::CiliumV2alpha1];
    let names = known.map(|form| form.to_string()).join(" and ");
    let Some(version) = get(document, "apiVersion") else {
        problems.error(&document.place, format!("apiVersion is missing; {names} are known"));
        return None;
    };
    let text = version.text(problems)?;
    let found = known.into_iter().find(|form| form.to_string() == text);
    if found.is_none() {
        problems.error(&version.place, format!("unknown version `{text}` of {KIND}; {names} are known"));
    }
    found
}

fn part(entry: &Entry, blocks: &mut Blocks, problems: &mut Problems) {
    let tree = &entry.value;
    match entry.key.as_str() {
        _ if matches!(tree.value, Value::Null) => {}
        "ipv4" => family(tree, true, blocks, problems),
        "ipv6" => family(tree, false, blocks, problems),
        "allowFirstIP" | "allowLastIP" => drop(tree.boolean(problems)),
        "podSelector" | "namespaceSelector" => selector::check(tree, problems),
        // A later Cilium may say more of a pool than we know; it is Cilium that checks it.
        other => {
            let hint = crate::tree::hint(other, SPEC);
            problems.warning(&entry.place, format!("unknown key `{other}` is not looked at; {hint}"));
        }
    }
}

fn family(tree: &Tree, is_v4: bool, blocks: &mut Blocks, problems: &mut Problems) {
    let fields = tree.fields("key", FAMILY, |key| known(FAMILY, key), problems);
    let mask = fields.entry("maskSize").and_then(|entry| {
        Some((entry.value.integer(1, if is_v4 { 32 } else { 128 }, problems)?, &entry.value))
    });
    for item in fields.get("cidrs").map_or(&[][..], |tree| tree.list(problems)) {
        let Some((range, length, reserved)) = cidr(item, is_v4, problems) else { continue };
        if let Some((mask, tree)) = mask
            && mask < u64::from(length)
        {
            let message = format!("no block of this size fits into the /{length} at {}", item.place.spot());
            problems.warning(&tree.place, message);
        }
        blocks.push(range.block(reserved), &item.place);
    }
    if fields.get("cidrs").is_none_or(|tree| matches!(&tree.value, Value::List(items) if items.is_empty())) {
        problems.error(&tree.place, "no cidrs are here; add one or remove the family");
    }
    blocks.sort();
    if let Some(pool) = fields.get("pool") {
        // A single one may stand without its list.
        let items =
            if let Value::Map(_) = pool.value { std::slice::from_ref(pool) } else { pool.list(problems) };
        for item in items {
            let Some((range, _, mut reserved)) = cidr(item, is_v4, problems) else { continue };
            match blocks.around(range).filter(|block| block.range == range.ends) {
                Some(block) => block.reserved.append(&mut reserved),
                None => {
                    let message = format!(
                        "`{}` is none of the pool's cidrs; add it there or correct it here",
                        ranges::range_shown(range.is_v4, range.ends)
                    );
                    problems.error(&item.place, message);
                }
            }
        }
    }
}

/// A CIDR as a range, its length, and the ranges of it that are reserved.
type Cidr = (Range, u32, Vec<(u128, u128)>);

/// A CIDR, alone or with what of it is reserved.
fn cidr(item: &Tree, is_v4: bool, problems: &mut Problems) -> Option<Cidr> {
    if !matches!(item.value, Value::Map(_)) {
        let (range, length) = ranges::cidr(item, problems)?;
        return of_family(range, is_v4, item, problems).map(|range| (range, length, Vec::new()));
    }
    let fields = item.fields("key", CIDR, |key| known(CIDR, key), problems);
    let Some(tree) = fields.get("cidr") else {
        problems.error(&item.place, "cidr is required; add it");
        return None;
    };
    let (range, length) = ranges::cidr(tree, problems)?;
    let range = of_family(range, is_v4, tree, problems)?;
    let mut reserved = Vec::new();
    let single = fields.get("reservedRange").into_iter();
    let several = fields.get("reservedRanges").map_or(&[][..], |tree| tree.list(problems));
    for tree in single.chain(several) {
        let Some(part) = reserved_range(tree, problems) else { continue };
        if part.is_v4 == range.is_v4 && ranges::within(part.ends, range.ends) {
            reserved.push(part.ends);
        } else {
            let (part, of) =
                (ranges::range_shown(part.is_v4, part.ends), ranges::range_shown(range.is_v4, range.ends));
            problems.error(
                &tree.place,
                format!("reserved range `{part}` does not lie within `{of}`; correct one"),
            );
        }
    }
    Some((range, length, reserved))
}

/// `10.0.0.0-10.0.0.99`, or the same as `{start: 10.0.0.0, end: 10.0.0.99}`.
fn reserved_range(tree: &Tree, problems: &mut Problems) -> Option<Range> {
    if !matches!(tree.value, Value::Map(_)) {
        return ranges::range(tree, problems);
    }
    let fields = tree.fields("key", RANGE, |key| known(RANGE, key), problems);
    match (fields.get("start"), fields.get("end")) {
        (Some(start), Some(end)) => ranges::between(start, end, problems),
        _ => {
            problems.error(&tree.place, "a reserved range has start and end; add both");
            None
        }
    }
}

fn of_family(range: Range, is_v4: bool, tree: &Tree, problems: &mut Problems) -> Option<Range> {
    if range.is_v4 == is_v4 {
        return Some(range);
    }
    let (found, expected) = if is_v4 { ("IPv6", "ipv4") } else { ("IPv4", "ipv6") };
    problems.error(&tree.place, format!("{found} under {expected}; move it to the other family"));
    None
}
