//! Times of the same thing, and what is said of them.

use std::time::Duration;

/// Times of the same thing.
#[derive(Default)]
pub(crate) struct Sample(Vec<Duration>);

impl Sample {
    /// So many runs, after one that does not count.
    pub(crate) fn of(runs: usize, mut run: impl FnMut() -> Duration) -> Self {
        run();
        Self((0..runs).map(|_| run()).collect())
    }

    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    pub(crate) fn least(&self) -> Duration {
        self.quantile(0.0)
    }

    fn quantile(&self, at: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[((sorted.len() - 1) as f64 * at).round() as usize]
    }

    pub(crate) fn heading() {
        println!("{:<44} {:>11} {:>11} {:>11} {:>5}", "figure", "median", "least", "p90", "runs");
    }

    /// With the slowest of a hundred instead of the slowest of ten.
    pub(crate) fn print_tail(&self, name: &str) {
        let ms = |at| format!("{:.1} ms", self.quantile(at).as_secs_f64() * 1000.0);
        let count = self.0.len();
        println!("{name:<44} {:>11} {:>11} {:>7} p99 {count:>5}", ms(0.5), ms(0.0), ms(0.99));
    }

    pub(crate) fn print(&self, name: &str) {
        let ms = |at| format!("{:.1} ms", self.quantile(at).as_secs_f64() * 1000.0);
        println!("{name:<44} {:>11} {:>11} {:>11} {:>5}", ms(0.5), ms(0.0), ms(0.9), self.0.len());
    }
}
