//! The databases, the Redis servers and the brokers that the tests use: found, or installed where we may, started on free ports, stopped at the end.
//!
//! Where one is missing, a CI run fails; elsewhere its tests are skipped, and say so.

use crate::browser;
use crate::foreign;
use crate::steps::{Failed, Steps};
use crate::tools;
use holdfast_services::{Kafka, MariaDb, Nats, Postgres, RabbitMq, Redis, RedisCluster};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// What runs.
#[derive(Default)]
pub(crate) struct Services {
    postgres: Option<Postgres>,
    mariadb: Option<MariaDb>,
    redis: Option<(Redis, RedisCluster)>,
    rabbitmq: Option<RabbitMq>,
    nats: Option<Nats>,
    kafka: Option<Kafka>,
    localstripe: Option<PathBuf>,
}

/// What can be started: its name, its package, and whether it is on this machine.
type Kind = (&'static str, &'static str, fn() -> bool);

const KINDS: [Kind; 6] = [
    ("PostgreSQL", Postgres::PACKAGE, Postgres::is_here),
    ("MariaDB", MariaDb::PACKAGE, MariaDb::is_here),
    ("Redis", Redis::PACKAGE, Redis::is_here),
    ("RabbitMQ", RabbitMq::PACKAGE, RabbitMq::is_here),
    ("NATS", Nats::PACKAGE, Nats::is_here),
    ("Kafka's test cluster", Kafka::PACKAGE, Kafka::is_here),
];

impl Services {
    pub(crate) fn start(steps: &mut Steps) -> Result<Self, Failed> {
        let missing: Vec<&str> =
            KINDS.iter().filter(|(_, _, is_here)| !is_here()).map(|(_, package, _)| *package).collect();
        if !missing.is_empty() && tools::may_install() {
            tools::install(steps, &missing)?;
        }
        println!("\n==> databases, Redis, brokers");
        for (name, package, is_here) in KINDS {
            if !is_here() {
                without(steps, name, package)?;
            }
        }
        browser::ensure(steps);
        let localstripe = foreign::localstripe(steps)?;
        let services = Self { localstripe, ..Self::start_all().map_err(Failed::new)? };
        for (name, value) in services.variables() {
            println!("{name}={value}");
        }
        Ok(services)
    }

    /// Side by side: RabbitMQ alone takes as long as all others together.
    fn start_all() -> Result<Self, String> {
        let rabbitmq = thread::spawn(|| RabbitMq::is_here().then(RabbitMq::start).transpose());
        let others = Self::start_others();
        // Waited for in any case: a server that is left to a thread would outlive us.
        let rabbitmq = rabbitmq.join().map_err(|_| "starting RabbitMQ panicked")?;
        Ok(Self { rabbitmq: rabbitmq?, ..others? })
    }

    fn start_others() -> Result<Self, String> {
        let mut services = Self {
            postgres: Postgres::is_here().then(|| Postgres::start(&[])).transpose()?,
            mariadb: MariaDb::is_here().then(|| MariaDb::start(&[])).transpose()?,
            nats: Nats::is_here().then(Nats::start).transpose()?,
            kafka: Kafka::is_here().then(Kafka::start).transpose()?,
            ..Self::default()
        };
        if Redis::is_here() {
            services.redis = Some((Redis::start()?, RedisCluster::start()?));
        }
        Ok(services)
    }

    /// Where they are, as the tests look for them.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let postgres = self.postgres.iter().map(|server| ("HOLDFAST_TEST_POSTGRES", server.url()));
        let mariadb = self.mariadb.iter().map(|server| ("HOLDFAST_TEST_MYSQL", server.url()));
        let redis = self.redis.iter().flat_map(|(one, cluster)| {
            [("HOLDFAST_TEST_REDIS", one.url()), ("HOLDFAST_TEST_REDIS_CLUSTER", cluster.url())]
        });
        let rabbitmq = self.rabbitmq.iter().map(|server| ("HOLDFAST_TEST_RABBITMQ", server.url()));
        let nats = self.nats.iter().map(|server| ("HOLDFAST_TEST_NATS", server.url()));
        let kafka = self.kafka.iter().map(|server| ("HOLDFAST_TEST_KAFKA", server.url().to_owned()));
        let localstripe =
            self.localstripe.iter().map(|program| ("HOLDFAST_TEST_LOCALSTRIPE", program.display().to_string()));
        postgres.chain(mariadb).chain(redis).chain(rabbitmq).chain(nats).chain(kafka).chain(localstripe).collect()
    }

    /// Tells a command where they are.
    pub(crate) fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables())
    }
}

fn without(steps: &mut Steps, name: &str, package: &str) -> Result<(), Failed> {
    let how = format!("{name} is missing (Debian, Ubuntu: apt-get install {package})");
    if std::env::var_os("CI").is_some() {
        return Err(Failed::new(how));
    }
    steps.skip(&format!("tests on {name}"), &how);
    Ok(())
}

/// `cargo xtask services`.
pub(crate) fn run() -> Result<(), Failed> {
    let services = Services::start(&mut Steps::default())?;
    println!("\nSet these variables in another terminal and run `cargo test` there. Enter stops the servers.");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(Failed::new)?;
    drop(services);
    Ok(())
}
