//! Signs of states, how each is meant, and what stands for a sign where only ASCII may be drawn.

use super::role::Role;
use crate::domain::State;
use crate::domain::patch::PatchState;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};

/// A state's glyph; never the only sign of anything but the state.
pub fn state_glyph(state: &State) -> char {
    match state {
        State::Requested => '◌',
        State::Provisioning | State::Destroying => '◐',
        State::Ready => '●',
        State::Sleeping => '☾',
        State::Failed => '✗',
        State::Lost => '?',
        State::Destroyed | State::Forgotten => '○',
        State::Other(_) => '·',
    }
}

/// How a state is meant.
pub(crate) fn state_role(state: &State) -> Role {
    match state {
        State::Requested | State::Provisioning | State::Destroying => Role::Busy,
        State::Ready => Role::Good,
        State::Failed => Role::Bad,
        State::Lost => Role::Warn,
        State::Sleeping | State::Destroyed | State::Forgotten | State::Other(_) => Role::Dim,
    }
}

/// A patch's glyph on a sandbox.
pub(crate) fn patch_glyph(state: &PatchState) -> char {
    match state {
        PatchState::Applied => '✓',
        PatchState::Pending => '…',
        PatchState::Applying => '◐',
        PatchState::Failed => '✗',
        PatchState::Unknown => '?',
        PatchState::None | PatchState::Other(_) => '·',
    }
}

/// How a patch's state is meant.
pub(crate) fn patch_role(state: &PatchState) -> Role {
    match state {
        PatchState::Applied => Role::Good,
        PatchState::Applying => Role::Busy,
        PatchState::Failed => Role::Bad,
        PatchState::Unknown | PatchState::Pending => Role::Warn,
        PatchState::None | PatchState::Other(_) => Role::Dim,
    }
}

/// A patch's state on a sandbox, in words.
pub(crate) fn patch_words(state: &PatchState) -> &'static str {
    match state {
        PatchState::Pending => "on the next wake",
        PatchState::Applying => "being applied",
        PatchState::Applied => "applied",
        PatchState::Failed => "failed",
        PatchState::Unknown => "nobody knows whether it ran",
        PatchState::None | PatchState::Other(_) => "",
    }
}

pub(crate) fn snapshot_glyph(state: &SnapshotState) -> char {
    match state {
        SnapshotState::Ready => '◆',
        SnapshotState::Creating | SnapshotState::Deleting => '◐',
        SnapshotState::Failed => '✗',
        SnapshotState::Other(_) => '·',
    }
}

/// How a snapshot's state is meant.
pub(crate) fn snapshot_role(record: &SnapshotRecord) -> Role {
    match record.state {
        SnapshotState::Ready if record.is_lost() => Role::Bad,
        SnapshotState::Ready if record.damaged().next().is_some() => Role::Warn,
        SnapshotState::Ready => Role::Good,
        SnapshotState::Failed => Role::Bad,
        SnapshotState::Creating | SnapshotState::Deleting | SnapshotState::Other(_) => Role::Busy,
    }
}

/// The ASCII stand-in of a glyph.
pub(crate) fn ascii_symbol(symbol: &str) -> &'static str {
    match symbol {
        "●" => "*",
        "◐" => "o",
        "☾" => "z",
        "⚠" => "!",
        "…" => "~",
        "○" | "—" | "–" | "─" | "▂" | "▃" => "-",
        "│" | "┃" => "|",
        "✓" | "╭" | "╮" | "╰" | "╯" | "├" | "┤" | "┌" | "┐" | "└" | "┘" | "┴" => {
            "+"
        }
        "▓" | "█" | "◆" => "#",
        "▁" => "_",
        "▄" | "▅" => "=",
        "▆" | "▇" => "%",
        "░" | "·" | "◌" => ".",
        "↑" | "▲" => "^",
        "↓" | "▼" => "v",
        "←" | "‹" => "<",
        "→" | "›" | "▌" => ">",
        "×" | "✗" => "x",
        "◷" => "@",
        _ => "?",
    }
}

/// The ASCII stand-in of a sign.
pub(crate) fn ascii(sign: char) -> char {
    ascii_symbol(sign.encode_utf8(&mut [0; 4])).chars().next().unwrap_or('?')
}
