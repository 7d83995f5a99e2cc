//! Bytes from a file or from standard input, on their way to the client.

use std::io;
use std::os::fd::AsFd as _;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::domain::Code;
use crate::domain::error::Error;

/// Size of a read, in bytes.
const PIECE: usize = 256 * 1024;

/// Bytes as a client takes them.
pub(super) type Pieces = BoxStream<'static, Result<Vec<u8>, Error>>;

/// The process's standard input, to its end, in pieces as they come.
pub(super) fn stdin() -> Pieces {
    let shown = "standard input".to_owned();
    match io::stdin().as_fd().try_clone_to_owned() {
        Ok(stdin) => pieces(File::from_std(stdin.into()), shown),
        Err(error) => stream::iter([Err(unreadable(&shown, &error))]).boxed(),
    }
}

/// The bytes of a reader, to its end or its first error, in pieces as they come.
pub(super) fn pieces(reader: impl AsyncRead + Send + Unpin + 'static, shown: String) -> Pieces {
    let next = |state: Option<(_, String)>| async move {
        let (mut reader, shown) = state?;
        let mut piece = Vec::with_capacity(PIECE);
        match AsyncReadExt::read_buf(&mut reader, &mut piece).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(piece), Some((reader, shown)))),
            Err(error) => Some((Err(unreadable(&shown, &error)), None)),
        }
    };
    stream::unfold(Some((reader, shown)), next).boxed()
}

/// A file, or standard input, that cannot be read.
pub(super) fn unreadable(shown: &str, error: &io::Error) -> Error {
    Error::new(Code::InvalidInput, format!("{shown} cannot be read")).because(error.to_string())
}
