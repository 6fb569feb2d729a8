use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Tells when it had its turn; may hang in it until it is let go.
struct Told {
    sender: Sender<Instant>,
    gate: Option<Receiver<()>>,
    next: Next,
}

impl Work for Told {
    fn turn(&mut self) -> Next {
        let _ = self.sender.send(Instant::now());
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        self.next
    }
}

fn told(writers: &Writers, device: u64, gate: Option<Receiver<()>>) -> (Arc<Post>, Receiver<Instant>) {
    let (sender, receiver) = channel();
    (writers.post(device, Box::new(Told { sender, gate, next: Next::Sleep(None) })), receiver)
}

/// What hangs, in numbers that would fill every thread there usually is, keeps nobody else waiting.
#[test]
fn posts_that_hang_hold_up_no_other() {
    let writers = Writers::default();
    let mut gates = Vec::new();
    let mut hanging = Vec::new();
    for device in 0..40 {
        let (open, gate) = channel();
        gates.push(open);
        let (post, turns) = told(&writers, device % 3, Some(gate));
        post.wake();
        turns.recv_timeout(Duration::from_secs(10)).expect("a thread for each that hangs");
        hanging.push(post);
    }
    let (post, turns) = told(&writers, 9, None);
    let mut delays: Vec<Duration> = (0..200)
        .map(|_| {
            let asked = Instant::now();
            post.wake();
            turns.recv_timeout(Duration::from_secs(10)).expect("a turn").duration_since(asked)
        })
        .collect();
    delays.sort_unstable();
    // Generous, since tests share the machine; the bench says what it is.
    assert!(delays[198] < Duration::from_millis(250), "{:?}", delays[198]);
}

#[test]
fn a_file_system_that_hangs_gets_only_so_many_threads() {
    let writers = Writers::default();
    let mut gates = Vec::new();
    let posts: Vec<_> = (0..WRITER_THREADS_DEVICE_MAX + 5)
        .map(|_| {
            let (open, gate) = channel();
            gates.push(open);
            told(&writers, 1, Some(gate))
        })
        .collect();
    posts.iter().for_each(|(post, _)| post.wake());
    for (_, turns) in &posts[..WRITER_THREADS_DEVICE_MAX] {
        turns.recv_timeout(Duration::from_secs(10)).expect("a thread");
    }
    let (other, turns) = told(&writers, 2, None);
    other.wake();
    turns.recv_timeout(Duration::from_secs(10)).expect("another file system's turn");
    assert!(posts[WRITER_THREADS_DEVICE_MAX..].iter().all(|(_, turns)| turns.try_recv().is_err()));
    drop(gates);
    for (_, turns) in &posts[WRITER_THREADS_DEVICE_MAX..] {
        turns.recv_timeout(Duration::from_secs(10)).expect("a turn once others ended");
    }
}

/// Counts turns, and that no two are at once.
struct Counted {
    inside: Arc<AtomicUsize>,
    turns: Arc<AtomicUsize>,
}

impl Work for Counted {
    fn turn(&mut self) -> Next {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two turns at once");
        std::thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        if self.turns.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
            Next::Again
        } else {
            Next::Sleep(None)
        }
    }
}

#[test]
fn nobody_who_was_woken_is_forgotten() {
    let writers = Writers::default();
    let posts: Vec<_> = (0..50)
        .map(|device| {
            let turns = Arc::new(AtomicUsize::new(0));
            let work = Counted { inside: Arc::default(), turns: Arc::clone(&turns) };
            (writers.post(device % 4, Box::new(work)), turns)
        })
        .collect();
    for _ in 0..200 {
        for (post, turns) in &posts {
            let before = turns.load(Ordering::SeqCst);
            post.wake();
            // A turn that begins after the wake, whatever ran at its moment.
            let until = Instant::now() + Duration::from_secs(10);
            while turns.load(Ordering::SeqCst) == before {
                assert!(Instant::now() < until, "woken and forgotten");
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn a_moment_comes_without_a_call() {
    let writers = Writers::default();
    let (sender, turns) = channel();
    let at = Instant::now() + Duration::from_millis(30);
    let post = writers.post(1, Box::new(Told { sender, gate: None, next: Next::Sleep(Some(at)) }));
    post.wake();
    turns.recv_timeout(Duration::from_secs(10)).expect("the call");
    let came = turns.recv_timeout(Duration::from_secs(10)).expect("the moment");
    assert!(came >= at);
}
