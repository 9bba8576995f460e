//! The stack of one moment, changed from column to column: bricks, and bytes of small blocks in the gaps below them.
//!
//! One place for each brick of the picture, in order. Sums over 64 places and over 64 × 64 make a change three additions, and
//! a walk touches only what lies between two heights.

/// Places per chunk, chunks per region.
const FAN: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// Bytes of each brick.
    size: Vec<u64>,
    /// Small bytes right below each brick, and the brick itself while it is alive.
    held: Vec<u64>,
    chunk: Vec<u64>,
    region: Vec<u64>,
    /// Bit per place: the brick is alive.
    alive: Vec<u64>,
    /// Bit per chunk: it has live bricks.
    live_chunks: Vec<u64>,
}

impl Stack {
    /// No brick is alive, and nothing lies between them. Sums wrap around: only a trace whose sums leave 64 bits sees that.
    pub(crate) fn new(size: Vec<u64>) -> Stack {
        let chunks = size.len().div_ceil(FAN);
        let regions = chunks.div_ceil(FAN);
        Stack {
            held: vec![0; size.len()],
            chunk: vec![0; chunks],
            region: vec![0; regions],
            alive: vec![0; chunks],
            live_chunks: vec![0; regions],
            size,
        }
    }

    /// Adds bytes of a brick, or of small blocks right below it; those above the last brick lie below nothing. To take away,
    /// the negative number is added.
    #[inline]
    pub(crate) fn add(&mut self, place: usize, bytes: u64) {
        if let Some(held) = self.held.get_mut(place) {
            *held = held.wrapping_add(bytes);
            self.chunk[place / FAN] = self.chunk[place / FAN].wrapping_add(bytes);
            self.region[place / FAN / FAN] = self.region[place / FAN / FAN].wrapping_add(bytes);
        }
    }

    /// A brick comes or goes; its bytes are added apart from that.
    #[inline]
    pub(crate) fn flip(&mut self, place: usize) {
        let chunk = place / FAN;
        self.alive[chunk] ^= 1 << (place % FAN);
        let bit = 1 << (chunk % FAN);
        if self.alive[chunk] == 0 {
            self.live_chunks[chunk / FAN] &= !bit;
        } else {
            self.live_chunks[chunk / FAN] |= bit;
        }
    }

    /// Tells every live brick between two heights, from below: its place, size and bottom.
    pub(crate) fn visit(&self, low: f64, high: f64, mut visit: impl FnMut(usize, u64, u64)) {
        let mut sum: u64 = 0;
        for (region, &bytes) in self.region.iter().enumerate() {
            let top = sum.wrapping_add(bytes);
            if self.live_chunks[region] != 0
                && top as f64 > low
                && !self.visit_region(region, sum, (low, high), &mut visit)
            {
                return;
            }
            sum = top;
        }
    }

    /// False when the upper height is reached.
    fn visit_region(
        &self,
        region: usize,
        mut sum: u64,
        (low, high): (f64, f64),
        visit: &mut impl FnMut(usize, u64, u64),
    ) -> bool {
        let first = region * FAN;
        let end = (first + FAN).min(self.chunk.len());
        for chunk in first..end {
            let top = sum.wrapping_add(self.chunk[chunk]);
            let is_in_reach = self.alive[chunk] != 0 && top as f64 > low;
            if is_in_reach && (sum as f64 >= high || !self.visit_chunk(chunk, sum, (low, high), visit)) {
                return false;
            }
            sum = top;
        }
        true
    }

    fn visit_chunk(
        &self,
        chunk: usize,
        mut sum: u64,
        (low, high): (f64, f64),
        visit: &mut impl FnMut(usize, u64, u64),
    ) -> bool {
        let (first, alive) = (chunk * FAN, self.alive[chunk]);
        let end = (first + FAN).min(self.held.len());
        for place in first..end {
            let top = sum.wrapping_add(self.held[place]);
            if alive >> (place - first) & 1 == 1 && top as f64 > low {
                let bottom = top.wrapping_sub(self.size[place]);
                if bottom as f64 >= high {
                    return false;
                }
                visit(place, self.size[place], bottom);
            }
            sum = top;
        }
        true
    }
}
