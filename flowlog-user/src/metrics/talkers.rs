use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

/// Pairs that are told apart at most; four times as many are remembered for a while.
const KEPT: usize = 1024;
const MOST: usize = 4 * KEPT;

/// Two addresses that speak to each other, the lower one first.
pub type Pair = (IpAddr, IpAddr);

/// What a pair sent, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Layer-2 bytes.
    pub bytes: u64,
}

impl Sent {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// The busiest pairs, in bounded memory: when there are too many, those that sent least are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Talkers {
    pairs: HashMap<Pair, Sent>,
    all: Sent,
    /// Bytes of the largest pair that was forgotten.
    forgotten_bytes: u64,
}

impl Talkers {
    /// Adds what one end sent to the other.
    pub fn add(&mut self, one: IpAddr, other: IpAddr, sent: Sent) {
        if sent == Sent::default() {
            return;
        }
        let pair = if one <= other { (one, other) } else { (other, one) };
        self.all = self.all.and(sent);
        let kept = self.pairs.entry(pair).or_default();
        *kept = kept.and(sent);
        if self.pairs.len() > MOST {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let mut bytes: Vec<u64> = self.pairs.values().map(|sent| sent.bytes).collect();
        let (_, least, _) = bytes.select_nth_unstable_by_key(KEPT, |bytes| Reverse(*bytes));
        let least = *least;
        self.forgotten_bytes = self.forgotten_bytes.max(least);
        self.pairs.retain(|_, sent| sent.bytes > least);
    }

    /// The busiest pairs, busiest first.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<(Pair, Sent)> {
        let mut pairs: Vec<(Pair, Sent)> = self.pairs.iter().map(|(pair, sent)| (*pair, *sent)).collect();
        pairs.sort_unstable_by_key(|(pair, sent)| (Reverse(sent.bytes), Reverse(sent.packets), *pair));
        pairs.truncate(most);
        pairs
    }

    /// Of all pairs together.
    #[must_use]
    pub const fn all(&self) -> Sent {
        self.all
    }

    /// Pairs may have sent more than is told of them: up to so many bytes each time they were forgotten. 0: all is exact.
    #[must_use]
    pub const fn forgotten_bytes(&self) -> u64 {
        self.forgotten_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    #[test]
    fn both_ways_of_a_pair_are_one_and_the_busiest_comes_first() {
        let mut talkers = Talkers::default();
        let sent = |packets, bytes| Sent { packets, bytes };
        talkers.add(host(1), host(2), sent(1, 100));
        talkers.add(host(2), host(1), sent(2, 50));
        talkers.add(host(3), host(1), sent(9, 149));
        talkers.add(host(3), host(4), Sent::default());
        assert_eq!(
            talkers.busiest(9),
            [((host(1), host(2)), sent(3, 150)), ((host(1), host(3)), sent(9, 149))]
        );
        assert_eq!(talkers.busiest(1).len(), 1);
        assert_eq!((talkers.all(), talkers.forgotten_bytes()), (sent(12, 299), 0));
    }

    #[test]
    fn a_flood_of_pairs_takes_bounded_memory_and_hides_no_busy_one() {
        let mut talkers = Talkers::default();
        for n in 0..200_000 {
            talkers.add(host(1), host(100 + n), Sent { packets: 1, bytes: 60 });
            if n % 50 == 0 {
                talkers.add(host(2), host(3), Sent { packets: 1, bytes: 1500 });
            }
            assert!(talkers.pairs.len() <= MOST);
        }
        let [(pair, sent)] = talkers.busiest(1)[..] else { panic!() };
        assert_eq!(pair, (host(2), host(3)));
        // It was there from the beginning, so it was never among the least.
        assert_eq!(sent, Sent { packets: 4_000, bytes: 6_000_000 });
        assert_eq!(talkers.all().bytes, 6_000_000 + 200_000 * 60);
        assert_eq!(talkers.forgotten_bytes(), 60);
    }
}
