use std::time::{Duration, Instant};

use super::notice::{Loss, Notices};
use crate::limits::NOTICE_MS;

/// Where records of a task are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// They found the task's queue full.
    Queue,
    /// They could not be written.
    File,
    /// They were written, and somebody else deleted the live file, or cut it short.
    Written,
    /// Nobody has read them.
    Stdout,
    /// The task asks for no more a second.
    RateLimit,
    /// A daemon took them from the kernel and was killed before they were in the file.
    Restart,
    /// The kernel had no place for them: its table was full, and its ring more than half.
    Kernel,
}

const PLACES: [Place; 7] = [
    Place::Queue,
    Place::File,
    Place::Written,
    Place::Stdout,
    Place::RateLimit,
    Place::Restart,
    Place::Kernel,
];

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::File => "file",
            Self::Written => "written file",
            Self::Stdout => "stdout",
            Self::RateLimit => "rate limit",
            Self::Restart => "restart",
            Self::Kernel => "kernel",
        }
    }
}

/// What was lost and is not yet in the file.
#[derive(Debug, Default)]
pub(super) struct Losses {
    waiting: [Option<Loss>; PLACES.len()],
    /// In lines that are not written yet.
    going: [Option<Loss>; PLACES.len()],
    /// In lines that the live file holds.
    told: [Option<Loss>; PLACES.len()],
    said: [Option<Instant>; PLACES.len()],
    /// Other things to say, as messages of NODE_ERROR.
    texts: Vec<String>,
    texts_going: Vec<String>,
}

impl Losses {
    /// Notes a loss.
    pub(super) fn add(&mut self, place: Place, loss: Loss) {
        if loss.records > 0 {
            join(self.waiting.get_mut(place as usize), Some(loss));
        }
    }

    /// Notes something else that a reader should know.
    pub(super) fn say(&mut self, text: String) {
        self.texts.push(text);
    }

    /// When something is to be said: at most once a second for each place.
    pub(super) fn at(&self, now: Instant) -> Option<Instant> {
        let texts = (!self.texts.is_empty()).then_some(now);
        let due = self.waiting.iter().zip(self.said).filter_map(|(loss, said)| {
            loss.as_ref()?;
            Some(said.map_or(now, |said| said + Duration::from_millis(NOTICE_MS)))
        });
        due.chain(texts).min()
    }

    /// The lines that are due (all of them at the end), and how many they are.
    pub(super) fn lines(
        &mut self,
        notices: &Notices,
        now: Instant,
        now_ns: i64,
        all: bool,
    ) -> (Vec<u8>, u64) {
        let (mut lines, mut count) = (Vec::new(), 0);
        for text in self.texts.drain(..) {
            lines.extend_from_slice(&notices.status("NODE_ERROR", &text, now_ns));
            count += 1;
            self.texts_going.push(text);
        }
        for ((place, waiting), (going, said)) in
            PLACES.into_iter().zip(&mut self.waiting).zip(self.going.iter_mut().zip(&mut self.said))
        {
            if !all && said.is_some_and(|said| said + Duration::from_millis(NOTICE_MS) > now) {
                continue;
            }
            let Some(loss) = waiting.take() else { continue };
            *said = Some(now);
            lines.extend_from_slice(&notices.loss(place.name(), &loss, now_ns));
            count += 2;
            join(Some(going), Some(loss));
        }
        (lines, count)
    }

    /// What was said is in the file.
    pub(super) fn written(&mut self) {
        for (told, going) in self.told.iter_mut().zip(&mut self.going) {
            join(Some(told), going.take());
        }
        self.texts_going.clear();
    }

    /// What comes is for another file.
    pub(super) fn begin_file(&mut self) {
        self.told = Default::default();
    }

    /// The live file is gone with what it told: it is said again.
    pub(super) fn tell_again(&mut self) {
        for (waiting, told) in self.waiting.iter_mut().zip(&mut self.told) {
            join(Some(waiting), told.take());
        }
    }

    /// What was said did not reach the file; it is said again.
    pub(super) fn put_back(&mut self) {
        for (waiting, going) in self.waiting.iter_mut().zip(&mut self.going) {
            join(Some(waiting), going.take());
        }
        self.texts_going.append(&mut self.texts);
        self.texts = std::mem::take(&mut self.texts_going);
    }
}

fn join(to: Option<&mut Option<Loss>>, more: Option<Loss>) {
    let (Some(to), Some(more)) = (to, more) else { return };
    match to {
        None => *to = Some(more),
        Some(loss) => {
            loss.records += more.records;
            loss.first_ns = loss.first_ns.min(more.first_ns);
            loss.last_ns = loss.last_ns.max(more.last_ns);
            loss.reason = more.reason;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_once_a_second_and_nothing_is_forgotten() {
        let encoder = super::super::NoticeEncoder(crate::encode::notice);
        let format = crate::record::Format::Json;
        let notices = Notices { task: "t".into(), node: "n".into(), format, encoder };
        let text = |(lines, count): (Vec<u8>, u64)| (String::from_utf8(lines).unwrap(), count);
        let loss = |records| Loss { records, first_ns: 1, last_ns: 2, reason: "full".into() };
        let mut losses = Losses::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(losses.at(now), None);
        losses.add(Place::Queue, loss(0));
        assert_eq!(losses.at(now), None);
        losses.add(Place::Queue, loss(3));
        losses.add(Place::Queue, loss(4));
        assert_eq!(losses.at(now), Some(now));
        let (lines, count) = text(losses.lines(&notices, now, 5, false));
        assert!(count == 2 && lines.contains("\"num_events_lost\":\"7\""), "{lines}");
        losses.add(Place::Queue, loss(1));
        assert_eq!(losses.at(now), Some(now + second));
        assert_eq!(losses.lines(&notices, now, 5, false).1, 0);
        losses.add(Place::File, loss(2));
        losses.put_back();
        let (lines, count) = text(losses.lines(&notices, now + second, 5, false));
        assert!(
            count == 4 && lines.contains("\"num_events_lost\":\"8\"") && lines.contains("at the file"),
            "{lines}"
        );
        losses.written();
        assert_eq!(losses.at(now), None);
        losses.add(Place::File, loss(1));
        assert_eq!(losses.lines(&notices, now + second, 5, true).1, 2);
    }
}
