//! Pools of addresses: named when a filter is read, known when the pools are.

use std::net::IpAddr;

use super::json;
use crate::record::{Address, AddressSet, Pools};
use crate::tree::{Placed, Problem, Problems, Tree, hint, nearest};

/// Pools, in one of which an address must lie if any is asked for, and in none of the negated ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct InPools {
    named: Vec<Placed<Named>>,
    /// Of those that are asked for; `None` where only negated ones are named.
    within: Option<AddressSet>,
    outside: AddressSet,
}

/// A pool by name: `green`, `green=reserved`, and both negated by `!`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Named {
    name: Box<str>,
    reserved_only: bool,
    negated: bool,
}

/// The addresses of the pools that a condition names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolAddresses {
    /// One of these is asked for; `None` where only negated pools are named.
    pub within: Option<AddressSet>,
    /// None of these may be it.
    pub outside: AddressSet,
}

/// What a pool's name may be made of: it stands in labels.
#[must_use]
pub fn is_pool_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(plain) && text.bytes().last().is_some_and(plain);
    ends && text.len() <= 253 && text.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'.')
}

impl InPools {
    /// Reads names; no address lies in them before [`Self::resolve`].
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        let named = json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
            let (name, part) = rest.split_once('=').map_or((rest, None), |(name, part)| (name, Some(part)));
            if !is_pool_name(name) || part.is_some_and(|part| part != "reserved") {
                let small = text.to_lowercase();
                let is_meant = small != text
                    && is_pool_name(small.trim_start_matches('!').trim_end_matches("=reserved"));
                let meant = if is_meant { format!("; did you mean `{small}`?") } else { String::new() };
                let message = format!(
                    "`{text}` names no pool; expected a name like \"green\", \"green=reserved\" for its reserved part, or \
                     \"!green\" for what is not in it{meant}"
                );
                problems.error(&item.place, message);
                return None;
            }
            let value = Named { name: name.into(), reserved_only: part.is_some(), negated };
            Some(Placed { place: item.place.clone(), value })
        })?;
        Some(Self { named, ..Self::default() })
    }

    /// Finds the addresses; the problems are the pools that nobody defines. `before` is what stays in force with such a
    /// problem.
    pub(super) fn resolve(&mut self, pools: &Pools, before: Option<&Self>, problems: &mut Vec<Problem>) {
        let (mut within, mut outside) = (Vec::new(), Vec::new());
        for Placed { place, value: Named { name, reserved_only, negated } } in &self.named {
            let Some([open, reserved]) = pools.addresses(name) else {
                let had = before.is_some_and(|before| before.names().any(|other| other == &**name));
                let message = if had { not_any_more(name) } else { nobody_defines(name, pools) };
                problems.push(Problem { place: place.clone(), message });
                continue;
            };
            let into = if *negated { &mut outside } else { &mut within };
            into.extend((!reserved_only).then_some(open));
            into.push(reserved);
        }
        let asked = self.named.iter().any(|named| !named.value.negated);
        self.within = asked.then(|| AddressSet::union(within));
        self.outside = AddressSet::union(outside);
    }

    /// Takes what was found before.
    pub(super) fn restore(&mut self, PoolAddresses { within, outside }: PoolAddresses) {
        (self.within, self.outside) = (within, outside);
    }

    pub(super) fn addresses(&self) -> PoolAddresses {
        PoolAddresses { within: self.within.clone(), outside: self.outside.clone() }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|named| &*named.value.name)
    }

    /// Names of pools that are there and have none of the addresses that are asked for.
    pub(super) fn empty(&self, pools: &Pools, problems: &mut Vec<Problem>) {
        for Placed { place, value: Named { name, reserved_only, .. } } in &self.named {
            let message = vain(name, *reserved_only, pools).filter(|_| pools.addresses(name).is_some());
            problems.extend(message.map(|message| Problem { place: place.clone(), message }));
        }
    }

    /// What the address must lie in, negations apart.
    pub(super) const fn within(&self) -> Option<&AddressSet> {
        self.within.as_ref()
    }

    /// The same, where that is all that is asked for.
    pub(super) fn within_only(&self) -> Option<&AddressSet> {
        self.within().filter(|_| self.outside.is_empty())
    }

    pub(super) fn holds(&self, address: Address<'_>) -> bool {
        match address {
            Address::Ip(address) => self.takes(address),
            Address::Text(text) => text.parse().is_ok_and(|address| self.takes(address)),
        }
    }

    fn takes(&self, address: IpAddr) -> bool {
        self.within.as_ref().is_none_or(|within| within.contains(address)) && !self.outside.contains(address)
    }
}

/// Why no address has the label of a pool, where none has.
pub(super) fn vain(name: &str, reserved_only: bool, pools: &Pools) -> Option<String> {
    let Some([open, reserved]) = pools.addresses(name) else { return Some(nobody_defines(name, pools)) };
    match (open.is_empty() && reserved.is_empty(), reserved_only && reserved.is_empty()) {
        (true, _) => {
            Some(format!("no address belongs to pool `{name}`: all of its own belong to other pools"))
        }
        (false, true) => Some(format!("no address is reserved in pool `{name}`")),
        (false, false) => None,
    }
}

fn not_any_more(name: &str) -> String {
    format!(
        "no pool `{name}` is defined any more; the task goes on with the addresses that it had: define the pool again, or \
         name another here"
    )
}

/// What to say of a name that no pool has.
fn nobody_defines(name: &str, pools: &Pools) -> String {
    let known: Vec<&str> = pools.names().collect();
    let remedy = match (known.len(), nearest(name, &known)) {
        (0, _) => {
            "no pools are there at all; put their manifests into the tasks' folder or give --pools PATH"
                .into()
        }
        (1..=8, _) | (_, Some(_)) => hint(name, &known),
        _ => "correct the name or add the pool".to_owned(),
    };
    format!("no pool `{name}` is defined; {remedy}")
}
