//! Room 7, write: encoded records into files.
//!
//! In: [`Chunk`]s of whole lines for one task, and a [`Spec`] that says where and how. Out: a live file that is
//! readable while it grows, finished files under names that sort by time, and [`Written`], what became of every
//! record. What never happens here: looking into records, following a link, writing outside the allowed
//! [`Roots`], adding records to what an earlier process left (its end is mended, no more), or losing any that can be read. To add a compression: an arm of
//! [`Compression`] and of [`encoder::Encoder`], and the suffix in [`name`].

mod backlog;
mod beside;
mod encoder;
mod error;
mod finish;
mod folder;
mod frames;
mod gzip;
mod listing;
mod live;
mod lock;
mod losses;
mod mend;
mod name;
mod nothing;
mod notice;
mod owner;
mod pending;
mod period;
mod pieces;
mod pool;
mod proof;
mod repack;
mod roots;
mod salvage;
mod show;
mod sink;
mod socket;
mod spec;
mod state;
mod stdout;
mod waiting;
mod writer;

pub use beside::create_beside;
pub use error::Error;
pub use listing::Sharing;
pub use lock::{Lock, namespace_lock};
pub use losses::Place;
pub use nothing::Nothing;
pub use pool::{SCRATCH_BYTES, cost as compressor_bytes};
pub use roots::{Roots, create_folders};
pub use salvage::Salvaged;
pub use show::{Extent, Show};
pub use sink::Sink;
pub use socket::{SocketError, SocketPlace};
pub use spec::{Compression, Definition, NoticeEncoder, OnEnd, OnFull, Owner, STDOUT, Spec, Sync};
pub use state::StateDir;
pub use writer::{Chunk, Closed, Files, Writer, Written};
