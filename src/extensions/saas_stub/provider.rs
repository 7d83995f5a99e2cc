//! Provider: work on its account, on a thread that is waited for. Work that nobody waits for any more changes nothing.

use std::path::PathBuf;

use super::account::{Account, GivenUp};
use crate::domain::error::{Code, Error};

/// Folder of an account; none where nobody knows where that would be.
#[derive(Clone)]
pub(super) struct Provider {
    folder: Option<PathBuf>,
}

/// Gives work up with whoever waits for it.
struct OnDrop(GivenUp);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Provider {
    /// Provider whose account is in this folder.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Works on the account, if there is one.
    ///
    /// Errors: why it cannot be read, and the work's own.
    pub(super) async fn open<T: Send + 'static>(
        &self,
        work: impl FnOnce(Option<&Account>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.run(move |folder, given_up| {
            let account = Account::open(&folder, given_up)?;
            work(account.as_ref())
        })
        .await
    }

    /// Works on the account, which is made where it is not there.
    ///
    /// Errors: why it cannot be made or read, and the work's own.
    pub(super) async fn make<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Account) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.run(move |folder, given_up| work(&Account::make(&folder, given_up)?)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(PathBuf, GivenUp) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.folder.clone().ok_or_else(|| {
            Error::new(
                Code::InvalidConfig,
                "HOME is not set: nobody knows where saas-stub keeps its account",
            )
            .hint("set HOME, or SANDBOXER_STUB_DIR")
        })?;
        let given_up = GivenUp::default();
        let _waiting = OnDrop(given_up.clone());
        tokio::task::spawn_blocking(move || work(folder, given_up))
            .await
            .map_err(|error| Error::internal("saas-stub ended in the middle").because(error))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extensions::saas_stub::account::Room;

    #[tokio::test]
    async fn work_of_a_caller_that_is_gone_writes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let provider = Provider::new(Some(home.path().join("stub")));
        provider.make(|_| Ok(())).await.unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (begin, has_begun) = std::sync::mpsc::channel();
        let (done, written) = std::sync::mpsc::channel();
        let mut work = Box::pin(provider.make(move |account| {
            begin.send(()).unwrap();
            wait.recv().unwrap();
            done.send(account.write(Room::Sandboxes, "sbx", "{}").unwrap_err().code).unwrap();
            Ok(())
        }));
        assert!(futures_util::poll!(&mut work).is_pending());
        has_begun.recv().unwrap();
        drop(work);
        go.send(()).unwrap();
        assert_eq!(written.recv().unwrap(), Code::Cancelled);
        let names = provider.open(|account| account.unwrap().names(Room::Sandboxes)).await;
        assert!(names.unwrap().is_empty());
    }
}
