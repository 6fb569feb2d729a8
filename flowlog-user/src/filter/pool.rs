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
                let message = format!(
                    "`{text}` names no pool; expected a name like \"green\", \"green=reserved\" for its reserved part, or \
                     \"!green\" for what is not in it"
                );
                problems.error(&item.place, message);
                return None;
            }
            let value = Named { name: name.into(), reserved_only: part.is_some(), negated };
            Some(Placed { place: item.place.clone(), value })
        })?;
        Some(Self { named, ..Self::default() })
    }

    /// Finds the addresses; the problems are the pools that nobody defines.
    pub(super) fn resolve(&mut self, pools: &Pools, problems: &mut Vec<Problem>) {
        let (mut within, mut outside) = (Vec::new(), Vec::new());
        for Placed { place, value: Named { name, reserved_only, negated } } in &self.named {
            let Some([open, reserved]) = pools.addresses(name) else {
                problems.push(Problem { place: place.clone(), message: nobody_defines(name, pools) });
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

    /// What the address must lie in, negations apart.
    pub(super) const fn within(&self) -> Option<&AddressSet> {
        self.within.as_ref()
    }

    pub(super) fn holds(&self, address: Address<'_>) -> bool {
        let address: Option<IpAddr> = match address {
            Address::Ip(address) => Some(address),
            Address::Text(text) => text.parse().ok(),
        };
        address.is_some_and(|address| {
            self.within.as_ref().is_none_or(|within| within.contains(address))
                && !self.outside.contains(address)
        })
    }
}

/// What to say of a name that no pool has.
pub(super) fn nobody_defines(name: &str, pools: &Pools) -> String {
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
