//! The table itself.

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The panes.
    Main,
    /// The filter's text field.
    Filter,
    /// Reading: details, help, a job's output, an error.
    Paper,
    /// Choosing a profile.
    Picker,
    /// The create form's fields.
    Form,
    /// A question before something destructive.
    Confirm,
    /// The list of jobs.
    Jobs,
    /// The command palette.
    Palette,
}

impl Mode {
    /// As the help titles it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Main => "Panes",
            Self::Filter => "Filter",
            Self::Paper => "Details, output, help",
            Self::Picker => "Choosing a profile",
            Self::Form => "Create form",
            Self::Confirm => "Questions",
            Self::Jobs => "Jobs",
            Self::Palette => "Command palette",
        }
    }

    /// Every mode, in the help's order.
    pub const ALL: &'static [Self] =
        &[Self::Main, Self::Filter, Self::Paper, Self::Picker, Self::Form, Self::Confirm, Self::Jobs, Self::Palette];
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where it holds.
    pub modes: &'static [Mode],
    /// What it does.
    pub action: Action,
    /// Its keys, separated by spaces.
    pub keys: &'static str,
    /// One line for the help.
    pub help: &'static str,
}

/// Defines the actions and the table's rows at once, so that neither can be forgotten.
macro_rules! table {
    ($($action:ident $name:literal [$($mode:ident)+] $keys:literal $help:literal;)+) => {
        /// What an operator can do with a key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action {
            $(#[doc = $help] $action,)+
        }

        impl Action {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$action),+];

            /// The name by which the configuration rebinds it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$action => $name,)+ }
            }

            /// One line of help.
            pub fn help(self) -> &'static str {
                match self { $(Self::$action => $help,)+ }
            }
        }

        /// Every key of the dashboard.
        pub const TABLE: &[Row] = &[
            $(Row { modes: &[$(Mode::$mode),+], action: Action::$action, keys: $keys, help: $help },)+
        ];
    };
}

table! {
    Down "down" [Main Paper Picker Jobs] "j down" "down";
    Up "up" [Main Paper Picker Jobs] "k up" "up";
    Top "top" [Main Paper Picker Jobs] "g home" "first";
    Bottom "bottom" [Main Paper Picker Jobs] "G end" "last";
    PageDown "page_down" [Main Paper Picker Jobs] "pgdn" "a page down";
    PageUp "page_up" [Main Paper Picker Jobs] "pgup" "a page up";
    NextPane "next_pane" [Main] "tab" "next pane";
    PreviousPane "previous_pane" [Main] "backtab" "previous pane";
    PaneSandboxes "pane_sandboxes" [Main] "1" "pane: sandboxes";
    PaneSnapshots "pane_snapshots" [Main] "2" "pane: snapshots";
    PaneHosts "pane_hosts" [Main] "3" "pane: hosts";
    PaneCredits "pane_credits" [Main] "4" "pane: credits";
    PaneActivity "pane_activity" [Main] "5" "pane: activity";
    Open "open" [Main Jobs] "enter" "details, or a job's output";
    Create "create" [Main] "n" "create a sandbox";
    Destroy "destroy" [Main Paper] "d" "destroy the marked ones, or the one under the cursor (asks)";
    Recreate "recreate" [Main Paper] "B" "rebuild: destroy and make again under the same id (asks)";
    Mark "mark" [Main] "space" "mark or unmark";
    MarkRange "mark_range" [Main] "V" "mark from the last mark to here";
    MarkAll "mark_all" [Main] "*" "mark all shown";
    Clear "clear" [Main] "esc" "clear marks, then the filter";
    Filter "filter" [Main] "/" "filter: words, host: state: profile: label:";
    Sort "sort" [Main] "o" "sort by the next column";
    SortDirection "sort_direction" [Main] "O" "turn the sort round";
    CopyId "copy_id" [Main Paper] "y" "copy the id";
    CopySsh "copy_ssh" [Main Paper] "Y" "copy the ssh command";
    Jobs "jobs" [Main Paper] "J" "jobs: all operations of this console";
    CancelJob "cancel_job" [Main Jobs Paper] "c" "cancel a running job (rolls back; asks)";
    Snapshot "snapshot" [Main] "s" "snapshot";
    Restore "restore" [Main] "r" "restore";
    Reap "reap" [Main] "X" "reap stale";
    Extend "extend" [Main] "e" "extend";
    Sleep "sleep" [Main] "z" "sleep";
    Wake "wake" [Main] "w" "wake";
    Patches "patches" [Main] "p" "patches";
    Undo "undo" [Main] "u" "undo the last reap or destroy";
    Logs "logs" [Main] "l" "logs";
    Shell "shell" [Main] "!" "shell";
    Labels "labels" [Main] "L" "labels";
    Palette "palette" [Main] ":" "command palette";
    Freeze "freeze" [Main] "f" "freeze the display";
    Mouse "mouse" [Main Paper] "M" "release the mouse for selecting text";
    Redraw "redraw" [Main Paper Picker Confirm Jobs] "ctrl-l" "read everything again and redraw";
    Suspend "suspend" [Main Filter Paper Picker Form Confirm Jobs Palette] "ctrl-z" "suspend";
    Help "help" [Main Paper Jobs] "?" "help";
    Quit "quit" [Main] "q ctrl-c" "quit (asks while jobs run)";
    Close "close" [Paper Picker Jobs] "esc q ctrl-c" "close";
    Choose "choose" [Picker Palette] "enter" "choose";
    NextMatch "next_match" [Palette] "tab down" "next";
    PreviousMatch "previous_match" [Palette] "backtab up" "previous";
    NextField "next_field" [Form] "tab down" "next field";
    PreviousField "previous_field" [Form] "backtab up" "previous field";
    NextChoice "next_choice" [Form] "right" "next choice, or move in the text";
    PreviousChoice "previous_choice" [Form] "left" "previous choice, or move in the text";
    Preview "preview" [Form] "ctrl-p" "look again at what a create would do";
    Submit "submit" [Form Filter] "enter" "create, or keep the filter";
    Leave "leave" [Form Filter Confirm Palette] "esc ctrl-c" "leave without doing anything";
    NextButton "next_button" [Confirm] "tab right down" "next button";
    PreviousButton "previous_button" [Confirm] "backtab left up" "previous button";
    Press "press" [Confirm] "enter" "press the button";
}

impl Action {
    /// Whether this version does not have it yet; its key is kept free for it.
    pub fn is_later(self) -> bool {
        matches!(
            self,
            Self::PaneSnapshots
                | Self::PaneHosts
                | Self::PaneCredits
                | Self::Snapshot
                | Self::Restore
                | Self::Reap
                | Self::Extend
                | Self::Sleep
                | Self::Wake
                | Self::Patches
                | Self::Undo
                | Self::Logs
                | Self::Shell
                | Self::Labels
        )
    }

    /// Whether it changes something on a host or in the store.
    pub fn is_mutating(self) -> bool {
        matches!(self, Self::Create | Self::Destroy | Self::Recreate | Self::CancelJob)
    }

    /// Whether it takes something away.
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::Destroy | Self::Recreate | Self::CancelJob | Self::Reap)
    }
}
