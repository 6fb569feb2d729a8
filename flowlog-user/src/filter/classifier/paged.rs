/// A number for each 16-bit key, most of which have none: pages of 256 keys, so that a look-up is two loads, and what
/// is rarely there takes no room.
#[derive(Clone, Debug)]
pub(super) struct Paged {
    /// Which page the keys of this high byte have; the first page is empty.
    page_of: [u16; 256],
    pages: Vec<[u32; 256]>,
}

impl Default for Paged {
    fn default() -> Self {
        Self { page_of: [0; 256], pages: vec![[0; 256]] }
    }
}

impl Paged {
    /// The key's number; 0 where it has none.
    #[inline]
    pub(super) fn get(&self, key: u16) -> u32 {
        let [high, low] = key.to_be_bytes();
        let page = self.page_of.get(usize::from(high)).copied().unwrap_or(0);
        self.pages.get(usize::from(page)).and_then(|page| page.get(usize::from(low))).copied().unwrap_or(0)
    }

    /// Gives the key a number.
    pub(super) fn set(&mut self, key: u16, number: u32) {
        let [high, low] = key.to_be_bytes();
        let Some(page) = self.page_of.get_mut(usize::from(high)) else { return };
        if *page == 0 {
            *page = u16::try_from(self.pages.len()).unwrap_or(0);
            self.pages.push([0; 256]);
        }
        let page = self.pages.get_mut(usize::from(*page));
        if let Some(place) = page.and_then(|page| page.get_mut(usize::from(low))) {
            *place = number;
        }
    }

    /// Forgets every number and keeps the room.
    pub(super) fn clear(&mut self) {
        for page in &mut self.pages {
            page.fill(0);
        }
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<[u32; 256]>()
    }
}
