//! Sparklines.

/// Heights of a cell.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as heights of up to `top`, a cell each; a space where there is none.
pub(super) fn sparkline(values: &[Option<f64>], top: f64) -> String {
    let level = |value: f64| {
        let step = (value / top * LEVELS.len() as f64) as usize;
        LEVELS[step.min(LEVELS.len() - 1)]
    };
    values.iter().map(|value| value.map_or(' ', level)).collect()
}
