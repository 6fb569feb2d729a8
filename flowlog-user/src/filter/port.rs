use super::json;
use crate::tree::{Problems, Tree};

/// Ports, one of which must be the flow's. Flows without ports match none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ports(Vec<u16>);

impl Ports {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            let port = text.parse().ok().filter(|_| !text.starts_with('+'));
            if port.is_none() {
                let message = format!("`{text}` is not a port; expected a number from 0 to 65535 in quotes");
                problems.error(&item.place, message);
            }
            port
        })
        .map(Self)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u16> {
        self.0.iter().copied()
    }

    pub(super) fn matches(&self, port: Option<u32>) -> bool {
        port.is_some_and(|port| self.0.iter().any(|wanted| u32::from(*wanted) == port))
    }
}
