use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is known by connection. Ids are the kernel's own count, which nobody outside chooses: they need to be spread,
/// not to be kept secret.
pub(super) type ById<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Multiplies by 2^64 over the golden ratio; the upper bits, which depend on all of the id's, also become the lower ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of one CPU follow each other in steps of the number of CPUs.
    #[test]
    fn ids_in_steps_fall_into_different_places() {
        for step in [1, 2, 64, 192, 4096] {
            let mut places = [0_u32; 1 << 12];
            for n in 0..1 << 12 {
                let mut spread = Spread::default();
                spread.write_u64(0x0011_5eed_0000 + n * step);
                places[(spread.finish() & 0xfff) as usize] += 1;
            }
            // Numbers drawn at random would share places too: about 7 at most.
            let most = places.into_iter().max().unwrap();
            assert!(most <= 8, "step {step}: {most} of 4,096 ids in one of as many places");
        }
    }
}
