//! Numbers that a seed repeats.

/// `SplitMix64`: small, and the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of one case of a run.
    pub(crate) fn of(seed: u64, case: u64) -> Self {
        let mut rng = Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Member of a list.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Settings of a run: `SANDBOXER_FUZZ_SEED`, `SANDBOXER_FUZZ_COUNT`, and `SANDBOXER_FUZZ_FIRST` to begin at a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Plan {
    /// The plan of the environment, else the test's own number of cases from the seed that stands here.
    pub(crate) fn read(count: u64) -> Self {
        let plan = Self {
            seed: number("SANDBOXER_FUZZ_SEED").unwrap_or(20_261_129),
            first: number("SANDBOXER_FUZZ_FIRST").unwrap_or(0),
            count: number("SANDBOXER_FUZZ_COUNT").unwrap_or(count),
        };
        println!("seed {} cases {} to {}", plan.seed, plan.first, plan.first + plan.count - 1);
        plan
    }

    pub(crate) fn cases(self) -> impl Iterator<Item = u64> {
        self.first..self.first + self.count
    }
}
