//! Arguments, configuration, app, one face, exit status; nothing else.

use std::cell::LazyCell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::FutureExt as _;
use sandboxer::app::{self, App};
use sandboxer::cli::{self, Cli, Global, Io, Local};
use sandboxer::config::{Config, Environment, Overrides};
use sandboxer::domain::{Code, Error};
use sandboxer::{log, tui};

fn main() -> ExitCode {
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    let mut io = Io::process();
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(outcome) => return outcome.finish(&mut io).into(),
    };
    // Panics are rare and go to a person who reports them: with the place, without the environment.
    let hooks = color_eyre::config::HookBuilder::default().display_env_section(false);
    if let Err(error) = hooks.install() {
        tracing::warn!(%error, "no panic report");
    }
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let failure =
                    Error::internal("the asynchronous runtime cannot start").because(error);
                return cli::report(&failure, &cli, &mut io).into();
            }
        };
    let status = runtime.block_on(run(cli, &mut io));
    // Blocking work that nobody waits for (a question on the terminal) must not hold the process, and giving the
    // memory of 1,000 records back piece by piece takes longer than reading them.
    std::process::exit(status.into())
}

async fn run(cli: Cli, io: &mut Io) -> u8 {
    let (overrides, environment) = (&overrides(&cli.global), &Environment::from_process());
    let config = LazyCell::new(|| Config::load(overrides, environment));
    let validate =
        |path: &Path| app::validate_profile(config.as_ref().map_err(Error::clone)?, path);
    let doctor = |claim| {
        async move { Ok(app::doctor::examine(overrides, environment, claim).await) }.boxed()
    };
    // Without a log, and silent where there is no configuration: it answers a key press.
    let client = || app::local(config.as_ref().ok()?).ok().map(|app| app.client);
    let local = Local { validate_profile: &validate, doctor: &doctor };
    if let Some(status) = cli::alone(&cli, client, &local, io).await {
        return status;
    }
    let opened =
        config.as_ref().map_err(Error::clone).and_then(|config| Ok((config, open(config)?)));
    let (config, app) = match opened {
        Ok(opened) => opened,
        Err(problem) => return cli::report(&problem, &cli, io),
    };
    let interactive = io.terminals.stdin && io.terminals.stdout;
    if let Some(args) = cli.wants_dashboard(interactive) {
        return dashboard(&cli, args, (config, environment), &app, io).await;
    }
    let delivers = cli.delivers_meanwhile();
    if delivers {
        app.deliver_in_background();
    }
    let status = cli::run(cli, Arc::clone(&app.client), &local, io).await;
    if !io.leave_at_once {
        app.deliver_after_command(delivers).await;
        app.client.close().await;
        // The process ends with it: see `main`.
        std::mem::forget(app);
    }
    status
}

fn overrides(global: &Global) -> Overrides {
    Overrides {
        config: global.config.clone(),
        profiles_dir: global.profiles_dir.clone(),
        extensions_dir: global.extensions_dir.clone(),
        data_dir: global.data_dir.clone(),
        log_file: global.log_file.clone(),
        actor: global.actor.clone(),
    }
}

fn open(config: &Config) -> Result<App, Error> {
    let filter = config.log_filter.as_deref();
    log::start(&config.paths.log_file, filter).map_err(|error| {
        let text = filter.unwrap_or_default();
        Error::new(Code::InvalidConfig, format!("SANDBOXER_LOG={text:?} is no filter of a log"))
            .because(error)
            .hint("write a level (error, warn, info, debug, trace), or one of a part: sandboxer::manager=debug")
            .detail("variable", "SANDBOXER_LOG")
    })?;
    app::local(config)
}

async fn dashboard(
    cli: &Cli,
    args: &cli::DashboardArgs,
    (config, environment): (&Config, &Environment),
    app: &App,
    io: &mut Io,
) -> u8 {
    let ended = match app::dashboard_options(config, environment, &cli.global, args) {
        Ok(options) => {
            app.settle_behind_start();
            app.deliver_in_background();
            tui::run(Arc::clone(&app.client), options).await
        }
        Err(error) => Err(error),
    };
    let limit = match &ended {
        Ok(tui::Ended::By(signal)) => signal.rollback_limit(),
        Ok(tui::Ended::Left) | Err(_) => None,
    };
    let closed = if let Some(limit) = limit {
        tokio::time::timeout(limit, app.client.close()).await.is_ok()
    } else {
        app.client.close().await;
        true
    };
    if !closed {
        tracing::warn!("what could not be rolled back is left to `sandboxer recover`");
    }
    match ended {
        Ok(tui::Ended::Left) => 0,
        Ok(tui::Ended::By(signal)) => {
            let problem = Error::new(
                Code::Cancelled,
                format!("the dashboard was ended by {}", signal.name()),
            );
            cli::report(&problem, cli, io);
            signal.exit_status()
        }
        Err(error) => cli::report(&error, cli, io),
    }
}
