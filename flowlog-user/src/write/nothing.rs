use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzEncoder;
use rustix::time::{ClockId, clock_gettime};

use super::encoder::Encoder;
use super::{Chunk, Compression, Error, Spec, Written};
use crate::metrics::Counter;

/// Compresses one task's records as its files would hold them, and keeps nothing: to know what they would cost.
pub struct Nothing {
    spec: Spec,
    encoder: Encoder,
    /// With gzip: what is compressed.
    gzip: Option<GzEncoder<Counted>>,
    written: Written,
    /// CPU time that it has taken, nanoseconds.
    cpu_ns: Arc<Counter>,
}

/// Counts bytes.
#[derive(Debug, Default)]
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

impl Nothing {
    /// For a task with this spec; CPU time is added to `cpu_ns`.
    #[must_use]
    pub fn new(spec: &Spec, cpu_ns: Arc<Counter>) -> Self {
        let gzip = match spec.compression {
            Compression::Gzip { level } => {
                Some(GzEncoder::new(Counted::default(), flate2::Compression::new(level)))
            }
            Compression::Zstd { .. } | Compression::None => None,
        };
        let encoder = Encoder::new(spec.compression);
        Self { spec: spec.clone(), encoder, gzip, written: Written::default(), cpu_ns }
    }

    pub(super) const fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(super) fn take_written(&mut self) -> Written {
        std::mem::take(&mut self.written)
    }

    pub(super) fn append(&mut self, chunk: &Chunk) -> Result<(), Error> {
        self.timed(|this| {
            match &mut this.gzip {
                Some(gzip) => gzip.write_all(&chunk.lines)?,
                None => this.encoder.add(&chunk.lines)?,
            }
            if this.encoder.is_full() {
                this.encoder.end()?;
            }
            Ok(())
        })?;
        self.written.records += u64::from(chunk.records);
        self.written.bytes += chunk.lines.len() as u64;
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Error> {
        self.timed(|this| {
            if let Some(gzip) = &mut this.gzip {
                gzip.try_finish()?;
            }
            this.encoder.end()
        })
    }

    fn timed(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<(), Error> {
        let began = cpu();
        let result = work(self);
        self.written.disk_bytes += self.encoder.out.len() as u64;
        self.encoder.out.clear();
        if let Some(gzip) = &mut self.gzip {
            self.written.disk_bytes += std::mem::take(&mut gzip.get_mut().0);
        }
        self.cpu_ns.add(u64::try_from(cpu().saturating_sub(began).as_nanos()).unwrap_or(u64::MAX));
        let (task, path) = (self.spec.task.clone(), self.spec.path.clone());
        result.map_err(|source| Error::Io { task, what: "compress for", path, source })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::record::Format;

    /// As large as the compressors' own programs make the same text.
    #[test]
    fn what_would_be_written_is_counted_as_compressed() {
        let lines: String = (0..20_000).map(|n| format!("{{\"flow\":{{\"uuid\":\"{n:08x}\"}}}}\n")).collect();
        let zstd = zstd::encode_all(lines.as_bytes(), 1).unwrap().len() as u64;
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        gzip.write_all(lines.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap().len() as u64;
        for (compression, want) in [
            (Compression::None, lines.len() as u64),
            (Compression::Gzip { level: 6 }, gzip),
            (Compression::Zstd { level: 1 }, zstd),
        ] {
            let text = "flowLogs:\n- {name: a, filePath: /var/log/flowlog/a.log}\n";
            let (plan, _) = crate::config::read("t", text).unwrap();
            let spec = Spec { compression, ..plan.tasks[0].spec.file.clone() };
            let cpu_ns = Arc::new(Counter::default());
            let mut nothing = Nothing::new(&spec, Arc::clone(&cpu_ns));
            let (mut sum, mut records) = (0, 0);
            for part in lines.as_bytes().chunks(30_000) {
                let chunk = Chunk {
                    format: Format::Json,
                    lines: Bytes::copy_from_slice(part),
                    records: 1,
                    first_ns: 0,
                    last_ns: 0,
                    seen_from_ns: 0,
                };
                nothing.append(&chunk).unwrap();
                let written = nothing.take_written();
                (sum, records) = (sum + written.disk_bytes, records + written.records);
            }
            nothing.close().unwrap();
            sum += nothing.take_written().disk_bytes;
            assert!(sum.abs_diff(want) * 20 <= want, "{compression:?}: {sum}, not {want}");
            assert_eq!(records, lines.len().div_ceil(30_000) as u64);
            assert!(compression == Compression::None || cpu_ns.get() > 0);
        }
    }
}
