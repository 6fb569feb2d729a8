use std::collections::BTreeMap;

use super::lists::{Lists, index};
use super::paged::Paged;

/// Filters in one row, so that whatever else is known of them is a bit at their place in a row of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    filters: Vec<u32>,
}

/// Filters that are found together: they stand in one word of 64 places, or in words that are theirs alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    first: u32,
    words: u32,
    /// Which of a word's places are theirs.
    mask: u64,
}

impl Row {
    /// A place at which no filter stands.
    const NOBODY: u32 = u32::MAX;

    pub(super) fn push(&mut self, filters: &[u32]) -> Places {
        let fill_up = |row: &mut Vec<u32>| row.resize(row.len().next_multiple_of(64), Self::NOBODY);
        if self.filters.len() % 64 + filters.len() > 64 {
            fill_up(&mut self.filters);
        }
        let begin = self.filters.len();
        self.filters.extend_from_slice(filters);
        let mask = match index(filters.len()) {
            0 => return Places::default(),
            few @ 1..=64 => (u64::MAX >> (64 - few)) << (begin % 64),
            _ => {
                fill_up(&mut self.filters);
                u64::MAX
            }
        };
        let words = self.filters.len().div_ceil(64) - begin / 64;
        Places { first: index(begin / 64), words: index(words), mask }
    }

    /// The filter at each place; none where nobody stands.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Option<u32>> {
        self.filters.iter().map(|filter| (*filter != Self::NOBODY).then_some(*filter))
    }

    /// The filters at these places.
    pub(super) fn at(&self, places: Places) -> Vec<u32> {
        let bits = (0..64).filter(|bit| places.mask & (1 << bit) != 0);
        let words = (places.first..places.first + places.words).map(|word| word as usize * 64);
        let at = words.flat_map(|word| bits.clone().map(move |bit| word + bit));
        at.filter_map(|at| self.filters.get(at).copied()).filter(|filter| *filter != Self::NOBODY).collect()
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.filters.capacity() * size_of::<u32>()
    }
}

/// What is known of the filters in a row: bits, of which all must be set for a filter to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a>(pub(super) [&'a [u64]; 3]);

impl Rows<'_> {
    /// Shows each of these places whose bits are set.
    pub(super) fn each(self, places: Places, mut show: impl FnMut(u32)) {
        let [a, b, c] = self.0;
        for at in places.first..places.first + places.words {
            let bits = |row: &[u64]| row.get(at as usize).copied().unwrap_or(0);
            let word = bits(a) & bits(b) & bits(c) & places.mask;
            each_bit(word, |bit| show(at * 64 + bit));
        }
    }
}

/// Shows the number of each bit that is set.
pub(super) fn each_bit(mut word: u64, mut show: impl FnMut(u32)) {
    while word != 0 {
        show(word.trailing_zeros());
        word &= word - 1;
    }
}

/// A bit for each item for which it is so.
pub(super) fn pack<T>(items: impl ExactSizeIterator<Item = T>, is_so: impl Fn(T) -> bool) -> Vec<u64> {
    let mut words = vec![0_u64; items.len().div_ceil(64)];
    for (at, item) in items.enumerate() {
        if let Some(word) = words.get_mut(at / 64) {
            *word |= u64::from(is_so(item)) << (at % 64);
        }
    }
    words
}

/// Words of the rows of one side's ports at most.
const WORDS_MAX: usize = 1 << 16;

/// Of the filters in a row, those that a port does not speak against: for each port that many of them ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct PortRows {
    /// Each port's row; 0 for those that no filter asks for.
    numbers: Paged,
    /// First that of ports which no filter asks for, then that of ports which have no row of their own.
    rows: Lists<u64>,
}

impl PortRows {
    /// `asked`: for each place of the row the ports of which its filter asks for one; nothing where it asks for none.
    pub(super) fn new(asked: &[Option<Vec<u16>>]) -> Self {
        let mut all = Self::default();
        let mut by_port: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, ports) in asked.iter().enumerate() {
            for port in ports.iter().flatten() {
                by_port.entry(*port).or_default().push(at);
            }
        }
        let other = pack(asked.iter(), Option::is_none);
        let own_max = (WORDS_MAX / other.len().max(1)).saturating_sub(2);
        all.rows.push(other.iter().copied());
        all.rows.push(vec![u64::MAX; other.len()]);
        let mut by_port: Vec<(u16, Vec<usize>)> = by_port.into_iter().collect();
        // Those that most ask for get rows of their own.
        by_port.sort_by_key(|(_, places)| usize::MAX - places.len());
        for (at, (port, places)) in by_port.into_iter().enumerate() {
            if at >= own_max {
                all.numbers.set(port, 1);
                continue;
            }
            let mut row = other.clone();
            for place in places {
                if let Some(word) = row.get_mut(place / 64) {
                    *word |= 1 << (place % 64);
                }
            }
            let number = all.rows.push(row);
            all.numbers.set(port, number);
        }
        all
    }

    /// The row of a port, or of a flow without ports.
    pub(super) fn get(&self, port: Option<u16>) -> &[u64] {
        self.rows.get(port.map_or(0, |port| self.numbers.get(port)))
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.numbers.bytes() + self.rows.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_the_places_whose_bits_are_set() {
        let mut row = Row::default();
        let lists: Vec<Vec<u32>> = [3, 60, 1, 0, 64, 2, 65, 300, 7].map(|len| (0..len).collect()).into();
        let places: Vec<Places> = lists.iter().map(|list| row.push(list)).collect();
        // Multiples of 6, by their remainders.
        let twos = pack(row.iter(), |filter| filter.is_some_and(|filter| filter % 2 == 0));
        let threes = pack(row.iter(), |filter| filter.is_some_and(|filter| filter % 3 == 0));
        let all = vec![u64::MAX; twos.len()];
        let of: Vec<Option<u32>> = row.iter().collect();
        for (list, places) in lists.iter().zip(places) {
            assert_eq!(row.at(places), *list);
            let mut shown = Vec::new();
            Rows([&twos, &threes, &all]).each(places, |place| shown.extend(of[place as usize]));
            let wanted: Vec<u32> = list.iter().copied().filter(|filter| filter % 6 == 0).collect();
            assert_eq!(shown, wanted, "of {}", list.len());
        }
    }

    #[test]
    fn no_row_speaks_against_a_filter_that_asks_for_the_port() {
        let asked: Vec<Option<Vec<u16>>> = (0..200_u16)
            .map(|place| {
                (place % 3 > 0).then(|| (0..place % 7).map(|port| port * 100 + place % 50).collect())
            })
            .collect();
        let rows = PortRows::new(&asked);
        let has = |row: &[u64], place: usize| row[place / 64] & (1 << (place % 64)) != 0;
        for port in (0..1_000).map(Some).chain([None]) {
            for (place, asked) in asked.iter().enumerate() {
                let wanted =
                    asked.as_ref().is_none_or(|ports| port.is_some_and(|port| ports.contains(&port)));
                assert_eq!(has(rows.get(port), place), wanted, "{port:?} at {place}");
            }
        }
    }

    /// More ports than there is room for: a row of all ones says nothing, and no row is wrong.
    #[test]
    fn many_ports_take_bounded_room() {
        let asked: Vec<Option<Vec<u16>>> = (0..20_000).map(|place| Some(vec![place])).collect();
        let rows = PortRows::new(&asked);
        assert!(rows.rows.items() <= WORDS_MAX);
        for place in 0..20_000_u16 {
            let at = usize::from(place);
            assert!(rows.get(Some(place))[at / 64] & (1 << (at % 64)) != 0, "{place}");
        }
    }
}
