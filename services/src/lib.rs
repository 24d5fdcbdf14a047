//! For tests only: real servers in temporary folders, on free ports of the loopback address.
//!
//! A server is found where Debian or the path has it, runs as an unprivileged user where we are root, and is stopped and
//! removed when its handle is dropped. Nothing here installs anything or touches a server that it has not started.

mod clock;
mod mariadb;
mod postgres;
mod process;
mod redis;
mod resp;

pub use clock::{WALL_CLOCK_FILE, wall_clock};
pub use mariadb::MariaDb;
pub use postgres::Postgres;
pub use process::Signal;
pub use redis::{Redis, RedisCluster};
