//! The real client, watched: what a command asked of it; and answers in its place, for the reports of which a test needs more shapes
//! than a world can be brought into.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use sandboxer::client::local::LocalClient;
use sandboxer::client::*;
use sandboxer::domain::adoption::{AdoptRequest, Adopted, ImportRequest};
use sandboxer::domain::host_view::HostView;
use sandboxer::domain::lineage::{Lineage, SnapshotView};
use sandboxer::domain::output::{ExecOutput, Interactive, LogLine};
use sandboxer::domain::telemetry::HostSample;
use sandboxer::domain::{Actor, Event, Operation, OperationId, Patch, SandboxRecord};
use serde_json::{Value, json};

type Pieces<T> = BoxStream<'static, Result<T, Error>>;

/// The client of a world.
pub(crate) struct Watched {
    client: Arc<LocalClient>,
    /// Requests that are more than a look, in order.
    calls: Mutex<Vec<(String, Value)>>,
    answers: Mutex<BTreeMap<String, Box<dyn Any + Send>>>,
}

impl Watched {
    pub(crate) fn new(client: Arc<LocalClient>) -> Self {
        Self { client, calls: Mutex::default(), answers: Mutex::default() }
    }

    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().unwrap().clone()
    }

    /// From now on this is the answer of that verb, or of `verb of`.
    pub(crate) fn answers<T: Send + 'static>(&self, verb: &str, answer: Result<T, Error>) {
        self.answers.lock().unwrap().insert(verb.to_owned(), Box::new(answer));
    }

    fn answer<T: Clone + 'static>(&self, verb: &str, of: &Value) -> Option<Result<T, Error>> {
        let answers = self.answers.lock().unwrap();
        let of = of.as_str().unwrap_or_default().to_lowercase();
        let answer = answers.get(&format!("{verb} {of}")).or_else(|| answers.get(verb))?;
        answer.downcast_ref::<Result<T, Error>>().cloned()
    }

    /// Writes down what is asked; a request that starts something by its own name.
    fn asked(&self, verb: &str, asked: Value) {
        let call = match (verb, asked) {
            ("start", Value::Object(request)) => request.into_iter().next().unwrap(),
            (verb, asked) => (verb.to_owned(), asked),
        };
        self.calls.lock().unwrap().push(call);
    }
}

macro_rules! watched {
    (asks { $($verb:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* }
     looks { $($look:ident($($of:ident: $kind:ty),*) -> $seen:ty;)* }
     streams { $($flow:ident($first:ident: $asked:ty $(, $more:ident: $also:ty)*) -> $told:ty;)* }) => {
        #[async_trait]
        impl Client for Watched {
            $(async fn $verb(&self $(, $arg: $type)*) -> Result<$answer, Error> {
                let asked = json!(($(&$arg),*));
                self.asked(stringify!($verb), asked.clone());
                match self.answer(stringify!($verb), &asked) {
                    Some(answer) => answer,
                    None => self.client.$verb($($arg),*).await,
                }
            })*
            $(async fn $look(&self $(, $of: $kind)*) -> Result<$seen, Error> {
                match self.answer(stringify!($look), &json!(($(&$of),*))) {
                    Some(answer) => answer,
                    None => self.client.$look($($of),*).await,
                }
            })*
            $(async fn $flow(&self, $first: $asked $(, $more: $also)*) -> Result<$told, Error> {
                self.asked(stringify!($flow), json!($first));
                self.client.$flow($first $(, $more)*).await
            })*

            async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
                self.client.subscribe().await
            }

            fn actor(&self) -> Actor {
                self.client.actor()
            }

            async fn close(&self) {
                self.client.close().await;
            }
        }
    };
}

watched! {
    asks {
        start(request: Request) -> Started; label(request: LabelRequest) -> SandboxRecord; extend(request: ExtendRequest) -> Extended;
        list(query: ListQuery) -> Vec<Arc<SandboxRecord>>;
        diff_snapshot(request: SnapshotDiffRequest) -> SnapshotDiff; prune_snapshots(request: PruneRequest) -> Vec<PruneItem>;
        add_patch(request: PatchRequest) -> Patch; remove_patch(snapshot: &str, patch: &str) -> Patch;
        roll_out(request: RolloutRequest) -> Vec<RolloutItem>; recover() -> Vec<Recovered>; cancel(operation: &OperationId) -> ();
        sweep(request: SweepRequest) -> SweepReport; stale(query: StaleQuery) -> StaleReport; plan_reap(request: PlanRequest) -> ReapPlan;
        adopt(request: AdoptRequest) -> Vec<Adopted>; import(request: ImportRequest) -> Vec<Adopted>;
        events(query: EventQuery) -> Vec<Event>; flush_events() -> FlushReport; grant_credits(request: GrantRequest) -> Credits;
        shell(request: ShellRequest) -> Interactive;
    }
    looks {
        wait(operation: &OperationId) -> Record; plan_create(request: CreateRequest) -> Decision;
        get(reference: &str) -> SandboxRecord; lineage(id: &str) -> Lineage; observe(id: &str) -> SandboxRecord;
        snapshots(query: SnapshotQuery) -> Vec<Arc<SnapshotView>>; snapshot_view(reference: &str) -> SnapshotView;
        patch_status(snapshot: &str) -> Vec<PatchStatus>; refresh_services(host: &str) -> ();
        operations() -> Vec<Operation>; operation(reference: &str) -> Operation;
        profiles() -> Vec<ProfileView>; profile(id: &str) -> ProfileView;
        extensions() -> Vec<ExtensionView>; extension(id: &str) -> ExtensionView;
        hosts() -> Vec<HostView>; check_host(name: &str) -> HostView; inspect_host(name: &str) -> HostView;
        sample_host(name: &str) -> HostSample; hub_backlog() -> Option<HubBacklog>;
        credits() -> Credits; credit_history() -> Vec<HistoryEntry>;
    }
    streams {
        export_snapshot(id: &str) -> Pieces<Vec<u8>>;
        import_snapshot(request: SnapshotImportRequest, source: Pieces<Vec<u8>>) -> Started;
        exec(request: ExecRequest, input: Option<Pieces<Vec<u8>>>) -> Pieces<ExecOutput>;
        logs(request: LogsRequest) -> Pieces<LogLine>;
    }
}
