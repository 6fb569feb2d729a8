use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::Foreign;

/// What a converter is given.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// The next record.
    Record(&'a Foreign),
    /// Nothing more comes, at least at the moment.
    End,
}

type Converter = dyn FnMut(Piece<'_>, &mut dyn Write) -> io::Result<()> + Send;

/// Writes records in another format: encoders are another room's.
#[derive(Clone, Default)]
pub struct Convert(Option<Arc<Mutex<Converter>>>);

impl Convert {
    /// A converter that writes what `write` does with each piece.
    #[must_use]
    pub fn new(write: impl FnMut(Piece<'_>, &mut dyn Write) -> io::Result<()> + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(write))))
    }

    pub(super) fn write(&self, piece: Piece<'_>, out: &mut dyn Write) -> io::Result<()> {
        match &self.0 {
            Some(write) => (*write.lock().unwrap_or_else(PoisonError::into_inner))(piece, out),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Convert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Convert" } else { "no Convert" })
    }
}
