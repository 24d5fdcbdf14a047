//! The databases, and the Redis servers, that the tests use: found, or installed where we may, started on free ports, stopped at the end.
//!
//! Where one is missing, a CI run fails; elsewhere its tests are skipped, and say so.

use crate::steps::{Failed, Steps};
use crate::tools;
use holdfast_services::{MariaDb, Postgres, Redis, RedisCluster};
use std::process::Command;

/// What runs.
#[derive(Default)]
pub(crate) struct Services {
    postgres: Option<Postgres>,
    mariadb: Option<MariaDb>,
    redis: Option<(Redis, RedisCluster)>,
}

impl Services {
    pub(crate) fn start(steps: &mut Steps) -> Result<Self, Failed> {
        let mut missing = Vec::new();
        if !Postgres::is_here() {
            missing.push(Postgres::PACKAGE);
        }
        if !MariaDb::is_here() {
            missing.push(MariaDb::PACKAGE);
        }
        if !Redis::is_here() {
            missing.push(Redis::PACKAGE);
        }
        if !missing.is_empty() && tools::may_install() {
            tools::install(steps, &missing)?;
        }
        let mut services = Self::default();
        println!("\n==> databases, Redis");
        if Postgres::is_here() {
            services.postgres = Some(Postgres::start(&[]).map_err(Failed::new)?);
        } else {
            without(steps, "PostgreSQL", Postgres::PACKAGE)?;
        }
        if MariaDb::is_here() {
            services.mariadb = Some(MariaDb::start(&[]).map_err(Failed::new)?);
        } else {
            without(steps, "MariaDB", MariaDb::PACKAGE)?;
        }
        if Redis::is_here() {
            let one = Redis::start().map_err(Failed::new)?;
            services.redis = Some((one, RedisCluster::start().map_err(Failed::new)?));
        } else {
            without(steps, "Redis", Redis::PACKAGE)?;
        }
        for (name, value) in services.variables() {
            println!("{name}={value}");
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
        postgres.chain(mariadb).chain(redis).collect()
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
