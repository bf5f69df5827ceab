//! Several processes that work on one thing: who they are, what they tell each other, and sums over them with the same bits for
//! any number of them.

use std::fmt::Debug;
use std::sync::Arc;

use burn::tensor::Device;

use crate::error::{Error, Result};
use crate::watch::Watch;

/// Processes that run the same program on the same data, each of them a rank, counted from 0. All of them call the methods of
/// [`Workers`] in the same order; the only thing that differs is their number.
pub trait Ranks: Send + Sync + Debug {
    /// Which of them this is.
    fn rank(&self) -> usize;

    /// How many there are: a power of two.
    fn size(&self) -> usize;

    /// Sends bytes to another rank and receives as many as that one sends, both at once.
    ///
    /// It does not return where the other rank is gone: whoever started the ranks ends them all.
    fn exchange(&self, partner: usize, send: &[u8], receive: &mut [u8]);
}

/// A process that works alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, _partner: usize, _send: &[u8], _receive: &mut [u8]) {
        unreachable!("nobody else is there")
    }
}

/// Who does the work: the threads of this process, the ranks that it is one of, and a device beside the CPU if there is one.
#[derive(Debug, Clone)]
pub struct Workers {
    threads: usize,
    ranks: Arc<dyn Ranks>,
    device: Option<Device>,
}

impl From<usize> for Workers {
    /// The threads of this process alone; 0 means as many as there are cores.
    fn from(threads: usize) -> Self {
        Self { threads, ranks: Arc::new(Alone), device: None }
    }
}

impl Workers {
    /// Threads in each of the ranks.
    pub fn new(threads: usize, ranks: Arc<dyn Ranks>) -> Result<Self> {
        let size = ranks.size();
        if !size.is_power_of_two() {
            let expected = "1, 2, 4, 8 or another power of two: sums are a binary tree, of which each has an equal part";
            return Err(Error::setting("number of ranks", size, expected));
        }
        Ok(Self { threads, ranks, device: None })
    }

    /// With a device on which networks run ([`DeviceName::open`](crate::device::DeviceName::open)); nothing for the CPU's own engine.
    pub fn on(self, device: Option<Device>) -> Result<Self> {
        if device.is_some() && !self.is_alone() {
            let expected = "cpu where there are several ranks: sums over devices have no order that could be kept";
            return Err(Error::setting("device", "one beside the CPU", expected));
        }
        Ok(Self { device, ..self })
    }

    /// The threads and the device of this process, without the other ranks.
    pub fn alone(&self) -> Self {
        Self { ranks: Arc::new(Alone), ..self.clone() }
    }

    /// The device beside the CPU, without autodiff.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Where a model in training is: on that device, or in this machine's memory.
    pub fn training_device(&self) -> Device {
        self.device.clone().unwrap_or_else(Device::flex).autodiff()
    }

    /// Threads of each rank; 0 means as many as there are cores.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.ranks.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.ranks.size()
    }

    /// Whether this is the rank that writes and prints.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether there are no others.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// This rank's part of so many pieces of work; those of all ranks come one after the other.
    pub fn part_of(&self, number: usize) -> std::ops::Range<usize> {
        let (rank, size) = (self.rank(), self.size());
        rank * number / size..(rank + 1) * number / size
    }

    /// Whether it is so on any of the ranks.
    pub fn any(&self, here: bool) -> bool {
        let mut any = here;
        for partner in self.partners() {
            let mut there = [0];
            self.ranks.exchange(partner, &[u8::from(any)], &mut there);
            any |= there[0] != 0;
        }
        any
    }

    /// Tells the others if the work is to stop, so that all of them stop at the same place.
    pub fn is_stopped(&self, watch: &Watch) -> bool {
        let stopped = self.any(watch.is_stopped());
        if stopped {
            watch.stop();
        }
        stopped
    }

    /// What every rank has, in the order of the ranks.
    pub fn gather(&self, own: Vec<u8>) -> Vec<Vec<u8>> {
        let mut all = vec![own];
        for partner in self.partners() {
            let lengths: Vec<u8> =
                all.iter().flat_map(|part| (part.len() as u64).to_le_bytes()).collect();
            let mut theirs = vec![0; lengths.len()];
            self.ranks.exchange(partner, &lengths, &mut theirs);
            let (theirs, _) = theirs.as_chunks::<8>();
            let theirs = theirs.iter().map(|bytes| u64::from_le_bytes(*bytes) as usize);
            let mut received = vec![0; theirs.clone().sum()];
            self.ranks.exchange(partner, &all.concat(), &mut received);
            let mut rest = &received[..];
            let received = theirs.map(|length| {
                let (part, after) = rest.split_at(length);
                rest = after;
                part.to_vec()
            });
            all = match partner < self.rank() {
                true => received.chain(all).collect(),
                false => all.into_iter().chain(received).collect(),
            };
        }
        all
    }

    /// What the first rank has.
    pub fn of_first(&self, own: Vec<u8>) -> Vec<u8> {
        let own = if self.is_first() { own } else { Vec::new() };
        self.gather(own).swap_remove(0)
    }

    /// Whether all ranks have the same.
    pub fn agree(&self, own: &[u8]) -> bool {
        let all = self.gather(own.to_vec());
        all.iter().all(|other| *other == all[0])
    }

    /// Numbers of all ranks, one after the other.
    pub fn concat<const N: usize, T: Number<N>>(&self, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let bytes = own.iter().flat_map(|number| number.bytes()).collect();
        let all = self.gather(bytes).concat();
        let (numbers, _) = all.as_chunks::<N>();
        numbers.iter().map(|bytes| T::of(*bytes)).collect()
    }

    /// The sum over the ranks, in the order of a binary tree: the ranks of each pair first, then the pairs.
    ///
    /// Of two ranks each keeps half of the numbers, then of two pairs each a quarter, and then all parts go back the same way. So a
    /// rank sends fewer than twice its numbers, however many ranks there are.
    pub fn sum(&self, numbers: &mut [f32]) {
        let (mut parts, all) = (Vec::new(), 0..numbers.len());
        parts.push(all);
        for partner in self.partners() {
            let part = parts.last().expect("all of them").clone();
            let [kept, sent] = self.halves(part, partner);
            let mut received = vec![0; 4 * kept.len()];
            self.ranks.exchange(partner, &to_bytes(&numbers[sent]), &mut received);
            let (received, _) = received.as_chunks::<4>();
            for (sum, bytes) in numbers[kept.clone()].iter_mut().zip(received) {
                *sum += f32::from_le_bytes(*bytes);
            }
            parts.push(kept);
        }
        let partners: Vec<usize> = self.partners().collect();
        for &partner in partners.iter().rev() {
            let kept = parts.pop().expect("one for each partner");
            let whole = parts.last().expect("all of them").clone();
            let [_, missing] = self.halves(whole, partner);
            let mut received = vec![0; 4 * missing.len()];
            self.ranks.exchange(partner, &to_bytes(&numbers[kept]), &mut received);
            let (received, _) = received.as_chunks::<4>();
            for (number, bytes) in numbers[missing].iter_mut().zip(received) {
                *number = f32::from_le_bytes(*bytes);
            }
        }
    }

    /// The half of some numbers that this rank sums, and the one that its partner does.
    fn halves(&self, part: std::ops::Range<usize>, partner: usize) -> [std::ops::Range<usize>; 2] {
        let middle = part.start + part.len() / 2;
        let (first, second) = (part.start..middle, middle..part.end);
        if self.rank() < partner { [first, second] } else { [second, first] }
    }

    /// With whom this rank stands for a subtree, from the smallest to the whole.
    fn partners(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.rank(), self.size());
        (0..size.trailing_zeros()).map(move |level| rank ^ (1 << level))
    }
}

/// A number that can be sent.
pub trait Number<const N: usize>: Copy {
    /// As bytes, the lowest first.
    fn bytes(self) -> [u8; N];
    /// From bytes.
    fn of(bytes: [u8; N]) -> Self;
}

impl Number<4> for f32 {
    fn bytes(self) -> [u8; 4] {
        self.to_le_bytes()
    }

    fn of(bytes: [u8; 4]) -> Self {
        Self::from_le_bytes(bytes)
    }
}

impl Number<8> for f64 {
    fn bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }

    fn of(bytes: [u8; 8]) -> Self {
        Self::from_le_bytes(bytes)
    }
}

fn to_bytes(numbers: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 4 * numbers.len()];
    let (places, _) = bytes.as_chunks_mut::<4>();
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
    bytes
}
