//! For tests only: real servers in temporary folders, on free ports of the loopback address.
//!
//! A server is found where Debian or the path has it, runs as an unprivileged user where we are root, and is stopped and
//! removed when its handle is dropped. Nothing here installs anything or touches a server that it has not started.

mod clock;
mod kafka;
mod mariadb;
mod nats;
mod postgres;
mod process;
mod rabbitmq;
mod redis;
mod resp;

pub use clock::{WALL_CLOCK_FILE, wall_clock};
pub use kafka::Kafka;
pub use mariadb::MariaDb;
pub use nats::Nats;
pub use postgres::Postgres;
pub use process::Signal;
pub use rabbitmq::RabbitMq;
pub use redis::{Redis, RedisCluster};
