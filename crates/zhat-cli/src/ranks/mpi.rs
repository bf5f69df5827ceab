//! Ranks by MPI: every message is one `MPI_Sendrecv`.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use mpi_sys::{
    MPI_Abort, MPI_Comm_rank, MPI_Comm_size, MPI_Finalize, MPI_Init_thread, MPI_Sendrecv,
    RSMPI_COMM_WORLD, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T,
};
use zhat::ranks::Ranks;

/// `MPI_THREAD_SERIALIZED`: any thread may send a message, and never two at a time.
const SERIALIZED: c_int = mpi_sys::MPI_THREAD_SERIALIZED as c_int;

/// Bytes of a message at most: MPI counts them in 32 bits.
const MOST: usize = 1 << 30;

static IS_RUNNING: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static MESSAGES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

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
        let (mut sent, mut received) = (0, 0);
        // Both sides count the same messages, of which some may be empty.
        for _ in 0..send.len().max(receive.len()).div_ceil(MOST).max(1) {
            let next = [(sent + MOST).min(send.len()), (received + MOST).min(receive.len())];
            send_receive(partner, &send[sent..next[0]], &mut receive[received..next[1]]);
            [sent, received] = next;
        }
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        NANOSECONDS.fetch_add(spent, Ordering::Relaxed);
        MESSAGES.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(send.len() as u64, Ordering::Relaxed);
    }
}

/// Errors are fatal to all ranks, as MPI has it where nothing else is asked for.
fn send_receive(partner: usize, send: &[u8], receive: &mut [u8]) {
    let (partner, tag) = (partner as c_int, 0);
    // SAFETY: MPI runs, both buffers have the lengths given, which fit 32 bits, and MPI is done with them when it returns.
    unsafe {
        MPI_Sendrecv(
            send.as_ptr().cast(),
            send.len() as c_int,
            RSMPI_UINT8_T,
            partner,
            tag,
            receive.as_mut_ptr().cast(),
            receive.len() as c_int,
            RSMPI_UINT8_T,
            partner,
            tag,
            RSMPI_COMM_WORLD,
            RSMPI_STATUS_IGNORE,
        );
    }
}

/// Begins MPI; nothing where that fails.
pub fn begin() -> Option<Arc<dyn Ranks>> {
    let (mut rank, mut size, mut threading) = (0, 0, 0);
    // SAFETY: it is called once, before anything else of MPI; there need be no arguments.
    unsafe {
        if MPI_Init_thread(null_mut(), null_mut(), SERIALIZED, &mut threading) != 0 {
            return None;
        }
        MPI_Comm_rank(RSMPI_COMM_WORLD, &mut rank);
        MPI_Comm_size(RSMPI_COMM_WORLD, &mut size);
    }
    IS_RUNNING.store(true, Ordering::Relaxed);
    Some(Arc::new(World { rank: rank as usize, size: size as usize }))
}

/// Finishes MPI, which waits for all ranks.
pub fn finish() {
    if IS_RUNNING.swap(false, Ordering::Relaxed) {
        // SAFETY: MPI runs, and nobody sends messages any more.
        unsafe {
            MPI_Finalize();
        }
    }
}

/// Ends all ranks at once.
pub fn abort(code: u8) {
    if IS_RUNNING.load(Ordering::Relaxed) {
        // SAFETY: MPI runs.
        unsafe {
            MPI_Abort(RSMPI_COMM_WORLD, c_int::from(code));
        }
    }
}

pub fn spent() -> (f64, u64, u64) {
    let seconds = NANOSECONDS.load(Ordering::Relaxed) as f64 * 1e-9;
    (seconds, MESSAGES.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}
