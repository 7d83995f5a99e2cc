//! Shape of a value: the words in which the table is written.

/// Shape of what a key may hold.
pub(super) enum Shape {
    /// Anything: what is only there when the profile permits it by name, and what no tool reads outside of a swarm.
    Any,
    /// Free text.
    Text,
    /// Free text, or a list of it.
    Texts,
    /// Free text of one line, in an argument that is taken apart no further.
    Line,
    /// Text of one rule, and how it is written.
    Word(fn(&str) -> bool, &'static str),
    /// Closed list.
    OneOf(&'static [&'static str]),
    /// True or false. Text that a variable left there becomes the one or the other: tools differ in what they take for true.
    Switch,
    /// A path on the host: the workspace's own path is the operator's and not judged.
    Source,
    /// Context of a build: a folder, an image, another service's image, an address that the profile permits.
    Context,
    /// A mount, in either syntax.
    Mount,
    List(&'static Self),
    /// A word, or a mapping in the long syntax.
    Long(&'static Self, &'static [(&'static str, Self)]),
    /// A list of the first, or a mapping from names to the second.
    Names(&'static Self, &'static Self),
    /// These keys and no others. Those of extensions (`x-`) are dropped: podman-compose has some of its own.
    Keys(&'static [(&'static str, Self)]),
    /// Keys of the file's own, by a rule, and what stands behind each.
    Open(&'static Self, &'static Self),
    /// `logging.options`: the keys of the engine's own drivers; those of another driver are there when the profile permits it.
    LogOptions,
}
