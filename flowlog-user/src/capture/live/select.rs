//! Which devices are watched: those with a role, or those that globs name.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::capture::tunnels::TunnelMode;
use crate::record::Role;

use super::links::{Link, Links};
use super::passages::{kinds, stands_on_lower};
use super::roles;
use super::{Error, Options};

/// The globs of `--interface` and `--exclude-interface`, compiled.
pub(super) struct Selection {
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// Patterns without glob characters: names that must exist at the start.
    literal: Vec<String>,
    tunnel: TunnelMode,
    observe_all: bool,
}

/// Each device with its role, or the reason it is left out.
pub(super) type Choice = BTreeMap<u32, Result<Role, String>>;

impl Selection {
    pub(super) fn new(options: &Options) -> Result<Self, Error> {
        let (include, exclude) = (&options.interfaces, &options.exclude);
        let is_literal = |pattern: &&String| !pattern.contains(['*', '?', '[', ']', '{', '}', '\\']);
        Ok(Self {
            include: if include.is_empty() { None } else { Some(compile(include)?) },
            exclude: compile(exclude)?,
            literal: include.iter().filter(is_literal).cloned().collect(),
            tunnel: options.tunnel,
            observe_all: options.observe_all,
        })
    }

    pub(super) fn choose(&self, links: &Links) -> Choice {
        links.iter().map(|(ifindex, link)| (*ifindex, self.decide(link, links))).collect()
    }

    fn decide(&self, link: &Link, links: &Links) -> Result<Role, String> {
        if self.exclude.is_match(&link.name) {
            return Err("excluded by --exclude-interface".into());
        }
        let Some(include) = &self.include else { return roles::role(link, links) };
        if !include.is_match(&link.name) {
            return Err("not named by --interface".into());
        }
        if let Some(reason) = roles::unsupported(link) {
            return Err(reason);
        }
        Ok(roles::role(link, links).unwrap_or(Role::Other))
    }

    /// What makes a start fail: a name that is not there or cannot be watched, two devices that stand on each
    /// other, nothing to watch.
    pub(super) fn check(&self, links: &Links, choice: &Choice) -> Result<(), Error> {
        for name in &self.literal {
            let Some(link) = links.values().find(|link| link.name == *name) else {
                let known: Vec<_> = links.values().map(|link| link.name.as_str()).collect();
                return Err(Error::UnknownInterface { name: name.clone(), known: known.join(", ") });
            };
            if let Some(Err(reason)) = choice.get(&link.ifindex) {
                return Err(Error::Unsupported { name: name.clone(), reason: reason.clone() });
            }
        }
        if let Some((lower, upper)) = self.stacked(links, choice).first() {
            return Err(Error::Stacked { lower: lower.name.clone(), upper: upper.name.clone() });
        }
        Ok(())
    }
}

impl Selection {
    /// Pairs of chosen devices (lower, upper) that would count a packet twice where it shall count once: those of which
    /// the upper one overwrites where a packet came in, and those that show what is inside a tunnel that the other one
    /// is looked into for.
    pub(super) fn stacked<'a>(&self, links: &'a Links, choice: &Choice) -> Vec<(&'a Link, &'a Link)> {
        if self.observe_all {
            return Vec::new();
        }
        let mut pairs = stacked(links, choice);
        if matches!(self.tunnel, TunnelMode::Inner | TunnelMode::Both) {
            let chosen = links.values().filter(|link| matches!(choice.get(&link.ifindex), Some(Ok(_))));
            let (tunnels, others): (Vec<_>, Vec<_>) = chosen.partition(|link| !kinds(link).is_empty());
            if let Some(lower) = others.first() {
                pairs.extend(tunnels.into_iter().map(|upper| (*lower, upper)));
            }
        }
        pairs
    }
}

fn compile(patterns: &[String]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern)
            .map_err(|error| Error::Pattern { pattern: pattern.clone(), reason: error.kind().to_string() })?;
        set.add(glob);
    }
    set.build().map_err(|error| Error::Pattern { pattern: patterns.join(" "), reason: error.to_string() })
}

/// Pairs of chosen devices (lower, upper) of which the upper one overwrites where a packet came in.
fn stacked<'a>(links: &'a Links, choice: &Choice) -> Vec<(&'a Link, &'a Link)> {
    let chosen = |ifindex: u32| links.get(&ifindex).filter(|_| matches!(choice.get(&ifindex), Some(Ok(_))));
    let mut pairs = Vec::new();
    for link in links.values().filter(|link| chosen(link.ifindex).is_some()) {
        if let Some(master) = link.master.and_then(chosen) {
            pairs.push((link, master));
        }
        if stands_on_lower(link)
            && let Some(lower) = link.lower.and_then(chosen)
        {
            pairs.push((lower, link));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Links {
        let link = |ifindex, name: &str, kind: &str| Link {
            ifindex,
            name: name.into(),
            kind: kind.into(),
            device_type: if name == "lo" { 772 } else { 1 },
            ..Link::default()
        };
        [
            link(1, "lo", ""),
            Link { master: Some(5), ..link(2, "eth0", "") },
            Link { lower: Some(2), ..link(3, "eth0.7", "vlan") },
            Link { peer_elsewhere: true, ..link(4, "lxc4", "veth") },
            link(5, "br0", "bridge"),
            Link { device_type: 32, ..link(6, "ib0", "") },
        ]
        .into_iter()
        .map(|link| (link.ifindex, link))
        .collect()
    }

    fn select(include: &[&str], exclude: &[&str]) -> (Selection, Choice) {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let options = Options { interfaces: own(include), exclude: own(exclude), ..Options::default() };
        let selection = Selection::new(&options).unwrap();
        let choice = selection.choose(&links());
        (selection, choice)
    }

    fn names(choice: &Choice) -> Vec<String> {
        let all = links();
        choice.iter().filter(|(_, role)| role.is_ok()).map(|(ifindex, _)| all[ifindex].name.clone()).collect()
    }

    #[test]
    fn without_globs_roles_decide() {
        let (selection, choice) = select(&[], &[]);
        assert_eq!(names(&choice), ["eth0", "lxc4"]);
        assert!(selection.check(&links(), &choice).is_ok());
        assert_eq!(names(&select(&[], &["lxc*"]).1), ["eth0"]);
    }

    #[test]
    fn globs_override_roles() {
        let (_, choice) = select(&["lo", "lxc*"], &[]);
        assert_eq!(choice[&1], Ok(Role::Other));
        assert_eq!(choice[&4], Ok(Role::Endpoint));
        assert_eq!(names(&choice), ["lo", "lxc4"]);
    }

    #[test]
    fn a_name_that_does_not_exist_is_refused_with_those_that_do() {
        let (selection, choice) = select(&["ethX"], &[]);
        let text = selection.check(&links(), &choice).unwrap_err().to_string();
        assert_eq!(
            text,
            "interface \"ethX\" does not exist; this machine has: lo, eth0, eth0.7, lxc4, br0, ib0"
        );
        let (selection, choice) = select(&["lxcX*", "eth0"], &[]);
        assert!(selection.check(&links(), &choice).is_ok());
    }

    #[test]
    fn a_device_and_its_upper_are_refused_naming_both() {
        for (globs, lower, upper) in [(["eth0*"], "eth0", "eth0.7"), (["[eb][tr]*0"], "eth0", "br0")] {
            let (selection, choice) = select(&globs, &[]);
            let text = selection.check(&links(), &choice).unwrap_err().to_string();
            assert!(text.contains(&format!("\"{lower}\" and \"{upper}\"")), "{text}");
        }
        let (selection, choice) = select(&["eth0*"], &["eth0.7"]);
        assert!(selection.check(&links(), &choice).is_ok());
    }

    #[test]
    fn a_named_device_that_cannot_be_read_is_refused() {
        let (selection, choice) = select(&["ib0"], &[]);
        let text = selection.check(&links(), &choice).unwrap_err().to_string();
        assert!(text.contains("ib0") && text.contains("link type 32"), "{text}");
    }

    #[test]
    fn a_broken_glob_is_named() {
        let text = Selection::new(&Options { interfaces: vec!["eth[".into()], ..Options::default() })
            .err()
            .unwrap()
            .to_string();
        assert!(text.contains("\"eth[\""), "{text}");
    }
}
