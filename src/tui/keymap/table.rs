//! The table itself.

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The panes.
    Main,
    /// The filter's text field.
    Filter,
    /// Reading: details, help, a job's output, an error.
    TextBlock,
    /// Choosing a profile.
    Picker,
    /// The fields of a form.
    Form,
    /// A question before something destructive.
    Confirm,
    /// The list of jobs.
    Jobs,
    Logs,
    /// The search's text field over a log.
    LogField,
    /// Choosing where a shell is opened.
    Shell,
    /// The patches of a snapshot.
    Patches,
    /// The reap plan.
    Reap,
    /// The log of events.
    Events,
    /// The filter's text field over the events.
    EventField,
    /// A search's text field over an overlay.
    SearchField,
    /// The command palette.
    Palette,
}

impl Mode {
    /// Title in the help.
    pub fn title(self) -> &'static str {
        match self {
            Self::Main => "Panes",
            Self::Filter => "Filter",
            Self::TextBlock => "Details, output, help",
            Self::Picker => "Choosing a profile",
            Self::Form => "Forms",
            Self::Confirm => "Questions",
            Self::Jobs => "Jobs",
            Self::Logs => "Logs",
            Self::LogField => "Logs: search",
            Self::Shell => "Choosing a shell",
            Self::Patches => "Patches of a snapshot",
            Self::Reap => "Reap plan",
            Self::Events => "Events",
            Self::EventField => "Events: filter",
            Self::SearchField => "Searching an overlay",
            Self::Palette => "Command palette",
        }
    }

    /// Whether what is typed goes into a text.
    pub fn types_text(self) -> bool {
        matches!(
            self,
            Self::Filter
                | Self::Form
                | Self::LogField
                | Self::EventField
                | Self::SearchField
                | Self::Picker
                | Self::Palette
                | Self::Confirm
        )
    }

    /// Every mode, in the help's order.
    pub const ALL: &'static [Self] = &[
        Self::Main,
        Self::Filter,
        Self::TextBlock,
        Self::SearchField,
        Self::Logs,
        Self::LogField,
        Self::Shell,
        Self::Patches,
        Self::Reap,
        Self::Events,
        Self::EventField,
        Self::Picker,
        Self::Form,
        Self::Confirm,
        Self::Jobs,
        Self::Palette,
    ];
}

/// Row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where it holds.
    pub modes: &'static [Mode],
    pub action: Action,
    /// Its keys, separated by spaces.
    pub keys: &'static str,
    /// Its line for the help.
    pub help: &'static str,
}

/// Defines the actions and the table's rows at once, so that neither can be forgotten.
macro_rules! table {
    ($($action:ident $name:literal [$($mode:ident)+] $keys:literal $help:literal;)+) => {
        /// Action that an operator can ask for with a key.
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

            /// Line of help.
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
    Down "down" [Main TextBlock Logs Shell Patches Reap Jobs Events] "j down" "down";
    Up "up" [Main TextBlock Logs Shell Patches Reap Jobs Events] "k up" "up";
    Top "top" [Main TextBlock Logs Shell Patches Reap Jobs Events] "g home" "first";
    Bottom "bottom" [Main TextBlock Logs Shell Patches Reap Jobs Events] "G end" "last";
    PageDown "page_down" [Main TextBlock Logs Patches Reap Form Jobs Events] "pgdn" "a page down";
    PageUp "page_up" [Main TextBlock Logs Patches Reap Form Jobs Events] "pgup" "a page up";
    NextPane "next_pane" [Main] "tab" "next pane";
    PreviousPane "previous_pane" [Main] "backtab" "previous pane";
    PaneSandboxes "pane_sandboxes" [Main] "1" "pane: sandboxes";
    PaneSnapshots "pane_snapshots" [Main] "2" "pane: snapshots";
    PaneHosts "pane_hosts" [Main] "3" "pane: hosts";
    PaneCredits "pane_credits" [Main] "4" "pane: credits";
    PaneActivity "pane_activity" [Main] "5" "pane: activity";
    Open "open" [Main Jobs Patches Reap Events] "enter" "details, a job's output, a script, or what it wrote";
    Create "create" [Main] "n" "create a sandbox";
    Destroy "destroy" [Main TextBlock] "d" "destroy, or delete a snapshot: the marked ones, or this (asks)";
    Recreate "recreate" [Main TextBlock] "B" "rebuild: destroy and make again under the same id (asks)";
    Mark "mark" [Main] "space" "mark or unmark";
    MarkRange "mark_range" [Main] "V" "mark from the last mark to here";
    MarkAll "mark_all" [Main] "*" "mark all shown";
    Clear "clear" [Main] "esc" "clear marks, then the filter";
    Filter "filter" [Main Events] "/" "filter: words, host: state: profile: label: by:, ! or - before one negates it";
    Sort "sort" [Main] "o" "sort by the next column";
    SortDirection "sort_direction" [Main] "O" "turn the sort round";
    CopyId "copy_id" [Main TextBlock] "y" "copy the id; of an error or a record, its text";
    Raw "raw" [TextBlock] "v" "the raw record, as YAML";
    Host "host" [TextBlock] "h" "the host: what is on it, why it is down";
    CopySsh "copy_ssh" [Main TextBlock] "Y" "copy the ssh command";
    Logs "logs" [Main TextBlock] "l" "logs: follow, search, save; of a failed one its output";
    Shell "shell" [Main TextBlock] "!" "a shell on this terminal, in the workspace or a service";
    Labels "labels" [Main TextBlock] "L" "labels of the marked ones, or of the one under the cursor";
    Jobs "jobs" [Main TextBlock Logs Patches Reap Events] "J" "jobs: all operations, those of other processes too";
    CancelJob "cancel_job" [Main Jobs TextBlock Reap] "c" "cancel what is being done there, by whomever (asks, and says what that leaves)";
    Snapshot "snapshot" [Main TextBlock] "s" "a snapshot of the marked sandboxes, or of the one under the cursor";
    Restore "restore" [Main TextBlock] "r" "a new sandbox from the snapshot under the cursor";
    Events "events" [Main TextBlock] "E" "events: who did what, when and why; filtered";
    Reap "reap" [Main] "X" "reap what is stale: opens the plan, and changes nothing";
    Extend "extend" [Main] "e" "move the deadline";
    Sleep "sleep" [Main TextBlock] "z" "put to sleep the marked ones, or the one under the cursor (asks)";
    Wake "wake" [Main TextBlock] "w" "wake; patches that wait are applied";
    Patches "patches" [Main TextBlock] "p" "patches of a snapshot, or of the one that a sandbox is based on";
    Grant "grant" [Main] "$" "grant credits (opens a form)";
    Undo "undo" [Main TextBlock] "u" "undo the last reap or destroy, or that of the destroyed sandbox here (asks)";
    Palette "palette" [Main] ":" "command palette";
    NextTrouble "next_trouble" [Main] "F" "go to the next trouble: failed, lost, stale, degraded, expiring, or a host that is silent";
    Freeze "freeze" [Main] "f" "freeze the display";
    Zoom "zoom" [Main] "+" "all the room for this pane, or for all of them again";
    Mouse "mouse" [Main TextBlock Logs Events] "M" "release the mouse for selecting text";
    Redraw "redraw" [Main TextBlock Logs Shell Patches Reap Picker Confirm Jobs Events] "ctrl-l" "read everything again and redraw";
    Suspend "suspend" [Main Filter TextBlock Logs LogField Shell Patches Reap SearchField Picker Form Confirm Jobs Palette Events EventField] "ctrl-z" "suspend";
    Help "help" [Main TextBlock Logs Patches Reap Jobs Events] "?" "help";
    Quit "quit" [Main] "q ctrl-c" "quit (asks while jobs run)";
    Close "close" [TextBlock Logs Shell Patches Reap Jobs Events] "esc q ctrl-c" "close; a search in it ends first";
    Follow "follow" [Logs] "f" "follow what comes, or stop following";
    NextService "next_service" [Logs] "tab" "the next service's log, or all of them";
    PreviousService "previous_service" [Logs] "backtab" "the previous service's log";
    Search "search" [TextBlock Logs Patches Reap Jobs] "/" "search (capitals count once one is typed)";
    NextFound "next_found" [TextBlock Logs Patches Reap Jobs] "n" "the next match";
    PreviousFound "previous_found" [TextBlock Logs Patches Reap Jobs] "N" "the match before";
    Wrap "wrap" [Logs] "w" "wrap long lines, or cut them";
    ScrollRight "scroll_right" [Logs] "right" "to the right in lines that are cut";
    ScrollLeft "scroll_left" [Logs] "left" "to the left";
    Save "save" [Logs] "s" "save what is kept to a new file (opens a form)";
    Options "log_options" [Logs] "o" "which service, and how many lines (opens a form)";
    Retry "retry" [Logs Patches Reap Events] "r" "ask again";
    AddPatch "add_patch" [Patches] "a" "add a patch from a file; it shows who will get it";
    WritePatch "write_patch" [Patches] "e" "write a patch in your editor ($VISUAL, $EDITOR)";
    RemovePatch "remove_patch" [Patches] "x" "take the patch under the cursor away (asks)";
    RollOut "roll_out" [Patches] "A" "apply: to the sandbox under the cursor, or to all, some first";
    Tick "tick" [Reap] "space" "do this, or leave it as it is";
    TickAll "tick_all" [Reap] "*" "do all shown that the plan does, or leave them";
    AdoptInstead "adopt_instead" [Reap] "a" "adopt it instead, or as planned";
    RemoveInstead "remove_instead" [Reap] "x" "remove it although the plan would not (asks for the count), or as planned";
    NextClass "next_class" [Reap Events] "tab" "only the next class or group, or all";
    PreviousClass "previous_class" [Reap Events] "backtab" "only the class or group before, or all";
    Apply "apply_plan" [Reap] "A" "apply the plan (asks)";
    Choose "choose" [Shell Picker Palette] "enter" "choose";
    NextMatch "next_match" [Palette Picker] "tab down" "next";
    PreviousMatch "previous_match" [Palette Picker] "backtab up" "previous";
    NextField "next_field" [Form] "tab down" "next field";
    PreviousField "previous_field" [Form] "backtab up" "previous field";
    NextChoice "next_choice" [Form] "right" "next choice, or move in the text";
    PreviousChoice "previous_choice" [Form] "left" "previous choice, or move in the text";
    Preview "preview" [Form] "ctrl-p" "look again at what it would do";
    Submit "submit" [Form Filter LogField SearchField EventField] "enter" "do it, or take what was typed";
    Leave "leave" [Form Filter LogField SearchField Confirm Palette Picker EventField] "esc ctrl-c" "leave without doing anything";
    NextButton "next_button" [Confirm] "tab right down" "next button";
    PreviousButton "previous_button" [Confirm] "backtab left up" "previous button";
    Press "press" [Confirm] "enter" "press the button";
}

impl Action {
    /// Whether it changes something on a host or in the store.
    pub fn is_mutating(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Destroy
                | Self::Extend
                | Self::Recreate
                | Self::CancelJob
                | Self::Shell
                | Self::Labels
                | Self::Snapshot
                | Self::Restore
                | Self::Sleep
                | Self::Wake
                | Self::AddPatch
                | Self::WritePatch
                | Self::RemovePatch
                | Self::RollOut
                | Self::Undo
                | Self::Grant
                | Self::Tick
                | Self::TickAll
                | Self::AdoptInstead
                | Self::RemoveInstead
                | Self::Apply
        )
    }

    /// Another word for it, by which the palette finds it too.
    pub fn alias(self) -> Option<&'static str> {
        match self {
            Self::Create => Some("new"),
            Self::Destroy => Some("delete"),
            Self::Recreate => Some("rebuild"),
            Self::Reap => Some("stale"),
            _ => None,
        }
    }

    /// Whether it only moves the cursor or the focus, which nobody does by name.
    pub fn is_movement(self) -> bool {
        matches!(
            self,
            Self::Down
                | Self::Up
                | Self::Top
                | Self::Bottom
                | Self::PageDown
                | Self::PageUp
                | Self::NextPane
                | Self::PreviousPane
        )
    }

    /// Whether it takes something away.
    pub fn is_destructive(self) -> bool {
        matches!(
            self,
            Self::Destroy
                | Self::Recreate
                | Self::CancelJob
                | Self::Reap
                | Self::Sleep
                | Self::RemovePatch
                | Self::RemoveInstead
                | Self::Apply
        )
    }
}
