use std::fmt;
use std::sync::Arc;

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is not wanted.
    Leave,
    /// It is wanted as it stands.
    Take,
    /// It is wanted as it stands in the buffer.
    Rewritten,
    /// It is no record; why.
    Unknown(String),
}

type Decide = dyn Fn(&[u8], &mut Vec<u8>) -> Look + Send + Sync;

/// Decides about each line, and rewrites it where fields are to be left out: filters and masks are other rooms'.
#[derive(Clone, Default)]
pub struct Sieve(Option<Arc<Decide>>);

impl Sieve {
    /// A sieve that asks `decide`, which may put another line (newline included) into the buffer.
    #[must_use]
    pub fn new(decide: impl Fn(&[u8], &mut Vec<u8>) -> Look + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(decide)))
    }

    pub(super) fn look(&self, line: &[u8], out: &mut Vec<u8>) -> Look {
        self.0.as_ref().map_or(Look::Take, |decide| decide(line, out))
    }
}

impl fmt::Debug for Sieve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Sieve" } else { "no Sieve" })
    }
}
