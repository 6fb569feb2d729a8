/// Many short lists, one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Lists<T> {
    /// Where each begins, and where the last ends.
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { starts: vec![0], items: Vec::new() }
    }
}

impl<T> Lists<T> {
    /// Adds one and gives its number.
    pub(super) fn push(&mut self, items: impl IntoIterator<Item = T>) -> u32 {
        let number = self.len();
        self.items.extend(items);
        self.starts.push(index(self.items.len()));
        number
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        index(self.starts.len() - 1)
    }

    /// Items of all of them.
    pub(super) const fn items(&self) -> usize {
        self.items.len()
    }

    /// One of them; empty where there is none of that number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[T] {
        let at = number as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(at), self.starts.get(at + 1)) else { return &[] };
        self.items.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Bytes on the heap.
    pub(super) const fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>() + self.items.capacity() * size_of::<T>()
    }
}

/// A number of things in memory; 2^32 of them would be no configuration.
pub(super) fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
