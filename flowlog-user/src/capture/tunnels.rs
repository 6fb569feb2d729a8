//! Which tunnels are looked into, in the form in which kernel and replay take it.

use flowlog_abi::{
    KNOWN_TUNNEL_PORTS, TUNNEL_AUTO, TUNNEL_BOTH, TUNNEL_INNER, TUNNEL_OUTER, TUNNEL_PORTS, TunnelRules,
};

/// Which packet of a tunnel's two is a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelMode {
    /// The inner one where the tunnel ends on this node, else the outer one.
    #[default]
    Auto,
    /// The outer one.
    Outer,
    /// The inner one, wherever it can be read.
    Inner,
    /// Both, each for itself.
    Both,
}

impl TunnelMode {
    const fn number(self) -> u32 {
        match self {
            Self::Auto => TUNNEL_AUTO,
            Self::Outer => TUNNEL_OUTER,
            Self::Inner => TUNNEL_INNER,
            Self::Both => TUNNEL_BOTH,
        }
    }

    /// Rules of this mode. `ends` has the bit of each kind of tunnel that ends on this node; `ports` are UDP ports of
    /// such tunnels beside the known ones. Gives the ports, too, that there was no room for.
    pub(crate) fn rules(self, ends: u32, ports: &[(u16, u8)]) -> (TunnelRules, Vec<u16>) {
        let mut rules = TunnelRules { mode: self.number(), ends, ..TunnelRules::default() };
        let mut all = KNOWN_TUNNEL_PORTS.to_vec();
        for (port, kind) in ports {
            if all.iter().all(|(known, _)| known != port) {
                all.push((*port, *kind));
            }
        }
        for ((slot, of), (port, kind)) in rules.ports.iter_mut().zip(&mut rules.kinds).zip(&all) {
            (*slot, *of) = (*port, *kind);
        }
        (rules, all.iter().skip(TUNNEL_PORTS).map(|(port, _)| *port).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowlog_abi::tunnel::{GENEVE, VXLAN};

    #[test]
    fn own_ports_come_beside_the_known_ones_as_long_as_there_is_room() {
        let (rules, left) = TunnelMode::Auto.rules(1 << VXLAN, &[(4789, VXLAN), (7000, GENEVE)]);
        assert_eq!((rules.mode, rules.ends), (TUNNEL_AUTO, 2));
        assert_eq!(rules.ports, [4789, 8472, 6081, 7000, 0, 0, 0, 0]);
        assert_eq!(rules.kinds, [VXLAN, VXLAN, GENEVE, GENEVE, 0, 0, 0, 0]);
        assert!(left.is_empty());
        let many: Vec<_> = (1..9).map(|port| (port, VXLAN)).collect();
        assert_eq!(TunnelMode::Inner.rules(0, &many).1, [6, 7, 8]);
    }
}
