//! Ranks by MPI: every message is one `MPI_Sendrecv`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mpi::Threading;
use mpi::environment::{Universe, initialize_with_threading};
use mpi::point_to_point::send_receive_into;
use mpi::topology::{Communicator, SimpleCommunicator};
use zhat::ranks::Ranks;

/// Bytes of a message at most: MPI counts them in 32 bits.
const MOST: usize = 1 << 30;

static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static MESSAGES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// MPI is begun and finished by the main thread.
    static UNIVERSE: RefCell<Option<Universe>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct World {
    rank: usize,
    size: usize,
}

impl Ranks for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, partner: usize, send: &[u8], receive: &mut [u8]) {
        let start = Instant::now();
        let world = SimpleCommunicator::world();
        let partner = world.process_at_rank(partner as i32);
        let (mut sent, mut received) = (0, 0);
        // Both sides count the same messages, of which some may be empty.
        for _ in 0..send.len().max(receive.len()).div_ceil(MOST).max(1) {
            let next = [(sent + MOST).min(send.len()), (received + MOST).min(receive.len())];
            let (out, into) = (&send[sent..next[0]], &mut receive[received..next[1]]);
            send_receive_into(out, &partner, into, &partner);
            [sent, received] = next;
        }
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        NANOSECONDS.fetch_add(spent, Ordering::Relaxed);
        MESSAGES.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(send.len() as u64, Ordering::Relaxed);
    }
}

/// Begins MPI.
pub fn begin() -> Option<Arc<dyn Ranks>> {
    let (universe, _) = initialize_with_threading(Threading::Serialized)?;
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    UNIVERSE.with_borrow_mut(|kept| *kept = Some(universe));
    Some(Arc::new(World { rank, size }))
}

/// Finishes MPI, which waits for all ranks.
pub fn finish() {
    UNIVERSE.with_borrow_mut(|universe| drop(universe.take()));
}

/// Ends all ranks at once.
pub fn abort(code: u8) -> ! {
    SimpleCommunicator::world().abort(i32::from(code))
}

pub fn spent() -> (f64, u64, u64) {
    let seconds = NANOSECONDS.load(Ordering::Relaxed) as f64 * 1e-9;
    (seconds, MESSAGES.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}
