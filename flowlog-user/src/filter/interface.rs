use super::json::{self, Name};
use crate::record::Facts;
use crate::tree::{Problems, Tree};

/// Interfaces, one of which the flow must have crossed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interfaces(Vec<Interface>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Interface {
    /// 0 stands for any.
    index: u32,
    /// Empty stands for any.
    name: String,
}

pub(super) const NAMES: &[Name] = &[("index", "index"), ("name", "name")];

impl Interfaces {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let fields = json::message(item, "interface key", NAMES, problems);
            let index = fields.get("index").map_or(Some(0), |tree| json::unsigned(tree, problems));
            let name = fields.get("name").map_or(Some(""), |tree| tree.text(problems));
            Some(Interface { index: index?, name: name?.to_owned() })
        })
        .map(Self)
    }

    pub(super) fn matches(&self, facts: &impl Facts) -> bool {
        facts.any_interface(|index, name| {
            self.0.iter().any(|wanted| {
                (wanted.index == 0 || wanted.index == index)
                    && (wanted.name.is_empty() || wanted.name == name)
            })
        })
    }
}
