//! The composition root: the only file that names concrete stores, transports and clients.

mod alive;
mod clock;
pub mod doctor;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use crate::cli::{DashboardArgs, Global};
use crate::client::Client;
use crate::client::local::LocalClient;
use crate::config::{Colours, Config, Environment, Notify, StateHub, Terminal};
use crate::domain::actor::{Actor, ActorType};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::SandboxExtension;
use crate::domain::name::ExtensionId;
use crate::domain::secret::Secret;
use crate::domain::text::hex;
use crate::extensions::compose_ssh::ComposeSsh;
use crate::extensions::saas_stub::{ReadRates, SaasStub};
use crate::extensions::vm_packer::VmPacker;
use crate::extensions::{self, compose_ssh, saas_stub, vm_packer};
use crate::manager::{Dependencies, Hub, LazyCatalogue, SandboxManager, Settings};
use crate::store::catalogue::Catalogue;
use crate::store::json::JsonStores;
use crate::transport::hub::{HttpHub, HubToken};
use crate::transport::pool::Pool;
use crate::transport::{Transports, ssh};
use crate::tui::keymap::Keymap;
use crate::tui::{self, model::ThemeName};

pub use clock::now;

/// Parts that a process works with.
pub struct App {
    /// The one door for every face.
    pub client: Arc<dyn Client>,
    manager: SandboxManager,
}

impl App {
    /// Tells what dead processes left untold, in the background. A dashboard or server calls it when it starts; what cannot
    /// be told now stays on the records.
    pub fn settle_behind_start(&self) {
        self.manager.settle_behind_start();
    }

    /// Delivers to the State Hub in the background. A dashboard, a server or a sweep calls it when it starts.
    pub fn deliver_in_background(&self) {
        self.manager.deliver_in_background();
    }

    /// Gives the State Hub the one second that it has after a command which changed something, or `always`.
    pub async fn deliver_after_command(&self, always: bool) {
        self.manager.deliver_after_command(always).await;
    }
}

/// The app that works in this process, on this configuration's data directory. Starts nothing and writes nothing.
pub fn local(config: &Config) -> Result<App, Error> {
    let stores = JsonStores::open(&config.paths.data_dir)?;
    let hub = config.state_hub.as_ref().map(|settings| hub(settings, config.hub_token.clone()));
    if hub.is_some() {
        stores.events.keep_for_delivery();
    }
    let user_ssh = config.paths.home.as_ref().map(|home| home.join(".ssh/config"));
    let control =
        ssh::default_control_dir(config.paths.runtime_dir.as_deref().map(Path::as_os_str));
    let transports: Arc<dyn Transports> =
        Arc::new(Pool::new(config.hosts.clone(), control, user_ssh));
    let compose = ComposeSsh::new(Arc::clone(&transports), config.compose_cmd.clone(), now);
    let mut extensions: BTreeMap<ExtensionId, Arc<dyn SandboxExtension>> = BTreeMap::new();
    extensions.insert(compose_ssh::ID.into(), Arc::new(compose));
    extensions.insert(vm_packer::ID.into(), Arc::new(VmPacker::new(Arc::clone(&transports))));
    let catalogue = lazy_catalogue(config);
    let stub = SaasStub::new(config.paths.stub_dir.clone(), stub_rates(&catalogue), now);
    extensions.insert(saas_stub::ID.into(), Arc::new(stub));
    check_places(config, &extensions)?;
    let manager = SandboxManager::new(Dependencies {
        sandboxes: stores.sandboxes,
        snapshots: stores.snapshots,
        patches: stores.patches,
        operations: stores.operations,
        hosts: stores.hosts,
        sweeps: stores.sweeps,
        plans: stores.plans,
        events: stores.events,
        outbox: stores.outbox,
        hub,
        locks: stores.locks,
        installation: stores.installation,
        earlier: stores.earlier,
        pinned_profiles: stores.pinned_profiles,
        catalogue,
        extensions,
        transports,
        credits: stores.credits,
        clock: Arc::new(now),
        monotonic: Arc::new(clock::monotonic),
        random_u32: Arc::new(|| uuid::Uuid::new_v4().as_fields().0),
        alive: Arc::new(alive::was_there),
        settings: settings(config)?,
    });
    Ok(App { client: Arc::new(LocalClient::new(manager.clone())), manager })
}

/// Reads and checks one profile or manifest file, as `profiles validate` does.
///
/// Errors: `invalid_profile`, a cause for each thing that is wrong, with file, line, column and the source's line.
pub fn validate_profile(config: &Config, path: &Path) -> Result<(), Error> {
    lazy_catalogue(config).validate_file(path).map(|_| ()).map_err(|problems| {
        let mut problem =
            Error::new(Code::InvalidProfile, format!("{} is not valid", path.display()));
        problem.causes = problems.iter().map(|problem| format!("{problem:#}")).collect();
        problem
    })
}

/// Options of the dashboard: flags, then the configuration, then what the terminal can show.
///
/// Errors: `usage` for an unknown theme, `unsupported` for a terminal that cannot be drawn on.
pub fn dashboard_options(
    config: &Config,
    environment: &Environment,
    global: &Global,
    args: &DashboardArgs,
) -> Result<tui::Options, Error> {
    let terminal = Terminal::of(environment);
    if terminal.kind.is_none() {
        return Err(not_drawn(environment));
    }
    let theme = args.theme.as_deref().unwrap_or(config.dashboard.theme.as_str());
    // Only the dashboard knows its keys; only the configuration knows where they stand.
    Keymap::new(&config.dashboard.keys).map_err(|error| match &error.kind {
        Kind::Setting(field) => {
            let hint = error.hint.clone().unwrap_or_default();
            config.error_at(field, &error.message).hint(hint)
        }
        _ => error,
    })?;
    Ok(tui::Options {
        read_only: args.read_only,
        theme: ThemeName::ALL.iter().copied().find(|name| name.as_str() == theme).ok_or_else(
            || {
                Error::new(Code::Usage, format!("there is no theme {theme:?}"))
                    .hint("themes are terminal, dark, light, high-contrast and mono")
            },
        )?,
        ascii: global.ascii || !terminal.has_glyphs(),
        no_color: global.no_color || terminal.colours == Colours::None,
        keys: config.dashboard.keys.clone(),
        refresh: config.dashboard.refresh.duration(),
        sweep: config.sweep.reap.then(|| config.sweep.interval.duration()),
        notify: match &config.dashboard.notify {
            Notify::Osc9 => tui::Notify::Osc9,
            Notify::None => tui::Notify::None,
            _ => tui::Notify::Bell,
        },
        zone: if config.dashboard.utc { jiff::tz::TimeZone::UTC } else { clock::zone(environment) },
        state_file: Some(state_file(config)),
        home: config.paths.home.clone(),
        clock: now,
    })
}

fn not_drawn(environment: &Environment) -> Error {
    let term = environment
        .text("TERM")
        .map_or_else(|| "TERM is not set".to_owned(), |term| format!("TERM is {term}"));
    Error::new(Code::Unsupported, format!("the dashboard cannot be drawn on this terminal: {term}")).hint(
        "`sandboxer list` and `sandboxer events --follow` print plain lines; where it is another terminal, set TERM, such \
         as TERM=xterm-256color",
    )
}

/// Where the dashboard remembers its pane and sort: beside the log, a file per data directory.
fn state_file(config: &Config) -> std::path::PathBuf {
    let name = Sha256::digest(config.paths.data_dir.as_os_str().as_encoded_bytes());
    config.paths.log_file.with_file_name(format!("dashboard-{}.json", hex(&name[..4])))
}

fn available() -> BTreeSet<&'static str> {
    extensions::AVAILABLE.iter().copied().collect()
}

/// Read when first asked for: compiling the extensions' schemas costs more than most commands do in all.
fn lazy_catalogue(config: &Config) -> LazyCatalogue {
    let paths = config.paths.clone();
    let load = move || {
        Catalogue::load(Some(&paths.profiles_dir), Some(&paths.extensions_dir), &available())
    };
    Arc::new(LazyLock::new(Box::new(load)))
}

/// Rates of the stub's manifest, which an operator's file of its name may set.
fn stub_rates(catalogue: &LazyCatalogue) -> ReadRates {
    let catalogue = Arc::clone(catalogue);
    Box::new(move || Ok(catalogue.extension(saas_stub::ID)?.definition()?.rates.clone()))
}

/// Refuses a host of the name of an extension's place: whatever is there would be looked for in the other one.
fn check_places(
    config: &Config,
    extensions: &BTreeMap<ExtensionId, Arc<dyn SandboxExtension>>,
) -> Result<(), Error> {
    for (id, place) in extensions.iter().filter_map(|(id, one)| Some((id, one.place()?))) {
        if let Some(host) = config.host(place.as_str()) {
            let message = format!("host {} has the name of the place of {id}", host.name);
            let error = config.error_at(&format!("hosts.{}", host.name), &message);
            return Err(error.hint("give the host another name"));
        }
    }
    Ok(())
}

fn hub(settings: &StateHub, token: Option<Secret>) -> Hub {
    let token = match (&settings.token_env, &settings.token_file) {
        (Some(name), _) => HubToken::Variable(name.clone(), token),
        (None, Some(file)) => HubToken::File(file.clone()),
        (None, None) => HubToken::None,
    };
    Hub { endpoint: Arc::new(HttpHub::new(&settings.url, token)), format: settings.format.clone() }
}

fn settings(config: &Config) -> Result<Settings, Error> {
    let actor = match &config.actor {
        Some(text) => Actor::parse(text)?,
        None => default_actor(config.user.as_deref()),
    };
    Ok(Settings {
        default_profile: config.default_profile.to_string(),
        default_host: config.default_host.clone(),
        environment_host: config.requested_host.as_ref().map(ToString::to_string),
        compose_cmd: config.compose_cmd.clone(),
        home: config.paths.home.clone(),
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        actor,
        config_file: config.paths.config_file.display().to_string(),
        temporary: std::env::temp_dir(),
        stale: config.stale.clone(),
        undo: config.undo.clone(),
    })
}

/// `adm:$USER`; a name that an actor cannot have becomes `operator`.
fn default_actor(user: Option<&str>) -> Actor {
    let name = user.filter(|name| !name.is_empty()).unwrap_or("operator");
    Actor::parse(&format!("adm:{name}"))
        .unwrap_or(Actor { kind: ActorType::Adm, name: "operator".to_owned() })
}
