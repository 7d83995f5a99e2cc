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
    /// A log.
    Logs,
    /// A text field over a log: what to search for, where to save.
    LogField,
    /// Choosing where a shell is opened.
    Shell,
    /// The labels of sandboxes.
    Labels,
    /// A label's text field.
    LabelField,
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
            Self::Logs => "Logs",
            Self::LogField => "Logs: search, save",
            Self::Shell => "Choosing a shell",
            Self::Labels => "Labels",
            Self::LabelField => "Labels: a text field",
            Self::Palette => "Command palette",
        }
    }

    /// Every mode, in the help's order.
    pub const ALL: &'static [Self] = &[
        Self::Main,
        Self::Filter,
        Self::Paper,
        Self::Logs,
        Self::LogField,
        Self::Shell,
        Self::Labels,
        Self::LabelField,
        Self::Picker,
        Self::Form,
        Self::Confirm,
        Self::Jobs,
        Self::Palette,
    ];
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
    Down "down" [Main Paper Logs Shell Labels Picker Jobs] "j down" "down";
    Up "up" [Main Paper Logs Shell Labels Picker Jobs] "k up" "up";
    Top "top" [Main Paper Logs Shell Labels Picker Jobs] "g home" "first";
    Bottom "bottom" [Main Paper Logs Shell Labels Picker Jobs] "G end" "last";
    PageDown "page_down" [Main Paper Logs Picker Jobs] "pgdn" "a page down";
    PageUp "page_up" [Main Paper Logs Picker Jobs] "pgup" "a page up";
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
    Logs "logs" [Main Paper] "l" "logs: follow, search, save";
    Shell "shell" [Main Paper] "!" "a shell on this terminal, in the workspace or a service";
    Labels "labels" [Main Paper] "L" "labels of the marked ones, or of the one under the cursor";
    Jobs "jobs" [Main Paper Logs] "J" "jobs: all operations, those of other processes too";
    CancelJob "cancel_job" [Main Jobs Paper] "c" "cancel what is being done there, by whomever (rolls back; asks)";
    Snapshot "snapshot" [Main] "s" "snapshot";
    Restore "restore" [Main] "r" "restore";
    Reap "reap" [Main] "X" "reap stale";
    Extend "extend" [Main] "e" "extend";
    Sleep "sleep" [Main] "z" "sleep";
    Wake "wake" [Main] "w" "wake";
    Patches "patches" [Main] "p" "patches";
    Undo "undo" [Main] "u" "undo the last reap or destroy";
    Palette "palette" [Main] ":" "command palette";
    Freeze "freeze" [Main] "f" "freeze the display";
    Mouse "mouse" [Main Paper Logs] "M" "release the mouse for selecting text";
    Redraw "redraw" [Main Paper Logs Shell Labels Picker Confirm Jobs] "ctrl-l" "read everything again and redraw";
    Suspend "suspend" [Main Filter Paper Logs LogField Shell Labels LabelField Picker Form Confirm Jobs Palette] "ctrl-z" "suspend";
    Help "help" [Main Paper Logs Labels Jobs] "?" "help";
    Quit "quit" [Main] "q ctrl-c" "quit (asks while jobs run)";
    Close "close" [Paper Logs Shell Labels Picker Jobs] "esc q ctrl-c" "close";
    Follow "follow" [Logs] "f" "follow what comes, or stop following";
    NextService "next_service" [Logs] "tab" "the next service's log, or all of them";
    PreviousService "previous_service" [Logs] "backtab" "the previous service's log";
    Search "search" [Logs] "/" "search (capitals count once one is typed)";
    NextFound "next_found" [Logs] "n" "the next line that matches";
    PreviousFound "previous_found" [Logs] "N" "the previous line that matches";
    Wrap "wrap" [Logs] "w" "wrap long lines, or cut them";
    ScrollRight "scroll_right" [Logs] "right" "to the right in lines that are cut";
    ScrollLeft "scroll_left" [Logs] "left" "to the left";
    Save "save" [Logs] "s" "save what is kept to a new file";
    Retry "retry" [Logs Labels] "r" "ask again";
    AddLabel "add_label" [Labels] "a" "add a label";
    EditLabel "edit_label" [Labels] "e" "change the label under the cursor";
    RemoveLabel "remove_label" [Labels] "x" "remove the label under the cursor, or keep it";
    Protect "protect" [Labels] "p" "protect=true, or not";
    WriteLabels "write_labels" [Labels] "enter" "write the changes";
    Choose "choose" [Shell Picker Palette] "enter" "choose";
    NextMatch "next_match" [Palette] "tab down" "next";
    PreviousMatch "previous_match" [Palette] "backtab up" "previous";
    NextField "next_field" [Form] "tab down" "next field";
    PreviousField "previous_field" [Form] "backtab up" "previous field";
    NextChoice "next_choice" [Form] "right" "next choice, or move in the text";
    PreviousChoice "previous_choice" [Form] "left" "previous choice, or move in the text";
    Preview "preview" [Form] "ctrl-p" "look again at what a create would do";
    Submit "submit" [Form Filter LogField LabelField] "enter" "create, or take what was typed";
    Leave "leave" [Form Filter LogField LabelField Confirm Palette] "esc ctrl-c" "leave without doing anything";
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
        )
    }

    /// Whether it changes something on a host or in the store.
    pub fn is_mutating(self) -> bool {
        matches!(self, Self::Create | Self::Destroy | Self::Recreate | Self::CancelJob | Self::Shell | Self::Labels)
    }

    /// Whether it takes something away.
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::Destroy | Self::Recreate | Self::CancelJob | Self::Reap)
    }
}
