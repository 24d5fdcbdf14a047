//! Kafka's protocol, as librdkafka's test cluster speaks it: one broker that keeps its topics in memory.

use crate::process::{Folder, find, run};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// A program around the test cluster: it tells the broker's address, does what it is told line by line, and ends with
/// its input, so with whoever started it. The library's functions are declared here, so its headers are not needed.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_mock_cluster_s cluster_t;
rd_kafka_conf_t *rd_kafka_conf_new(void);
rd_kafka_t *rd_kafka_new(int type, rd_kafka_conf_t *conf, char *error, size_t size);
cluster_t *rd_kafka_mock_cluster_new(rd_kafka_t *handle, int brokers);
const char *rd_kafka_mock_cluster_bootstraps(const cluster_t *cluster);
int rd_kafka_mock_topic_create(cluster_t *cluster, const char *topic, int partitions, int replicas);
int rd_kafka_mock_broker_set_down(cluster_t *cluster, int broker);
int rd_kafka_mock_broker_set_up(cluster_t *cluster, int broker);
int rd_kafka_mock_push_request_errors_array(cluster_t *cluster, short request, size_t count, const int *errors);

int main(void) {
    char line[512], topic[256];
    int number;
    rd_kafka_t *handle = rd_kafka_new(0, rd_kafka_conf_new(), line, sizeof line);
    cluster_t *cluster = handle ? rd_kafka_mock_cluster_new(handle, 1) : NULL;
    if (!cluster) return 1;
    printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int failed = 1;
        if (strcmp(line, "down\n") == 0) failed = rd_kafka_mock_broker_set_down(cluster, 1);
        else if (strcmp(line, "up\n") == 0) failed = rd_kafka_mock_broker_set_up(cluster, 1);
        else if (sscanf(line, "topic %255s %d", topic, &number) == 2)
            failed = rd_kafka_mock_topic_create(cluster, topic, number, 1);
        else if (sscanf(line, "fail %d", &number) == 1) {
            rd_kafka_mock_push_request_errors_array(cluster, 0, 1, &number);
            failed = 0;
        }
        printf("%d\n", failed);
        fflush(stdout);
    }
    _Exit(0);
}
"#;

/// A test cluster of one broker.
#[derive(Debug)]
pub struct Kafka {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    url: String,
    _folder: Folder,
}

impl Kafka {
    /// How to get it where it is missing. With it comes the library that has the cluster.
    pub const PACKAGE: &'static str = "kcat";

    /// Whether it is on this machine, and a C compiler to reach it.
    pub fn is_here() -> bool {
        find("kcat", &[]).is_some() && compiler().is_some()
    }

    /// A new cluster. Topics come to be when a client asks for them, with four partitions.
    ///
    /// # Errors
    /// When the library or a C compiler is not on this machine.
    pub fn start() -> Result<Self, String> {
        let missing = "Kafka's test cluster is not on this machine (Debian: apt-get install kcat gcc libc6-dev)";
        let folder = Folder::new("kafka", None)?;
        let (source, program) = (folder.0.join("cluster.c"), folder.0.join("cluster"));
        std::fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
        let mut build = Command::new(compiler().ok_or(missing)?);
        run(build.arg("-O1").arg("-o").arg(&program).arg(&source).arg("-l:librdkafka.so.1"))
            .map_err(|e| format!("{missing}\n{e}"))?;
        let mut start = Command::new(&program);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = start.spawn().map_err(|e| format!("{start:?}: {e}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the cluster has no pipes".into());
        };
        let mut output = BufReader::new(output);
        let url = line(&mut output)?;
        Ok(Self { child, pipes: Mutex::new((input, output)), url, _folder: folder })
    }

    /// Where it is, for a client: host and port.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub fn topic(&self, name: &str, partitions: u32) -> Result<(), String> {
        self.tell(&format!("topic {name} {partitions}"))
    }

    /// Closes all connections and accepts none, until told otherwise. What was acknowledged stays.
    ///
    /// # Errors
    /// When the cluster has ended.
    pub fn down(&self) -> Result<(), String> {
        self.tell("down")
    }

    /// Ends what [`Kafka::down`] began.
    ///
    /// # Errors
    /// When the cluster has ended.
    pub fn up(&self) -> Result<(), String> {
        self.tell("up")
    }

    /// Answers the next request to produce with this error of the protocol.
    ///
    /// # Errors
    /// When the cluster has ended.
    pub fn fail(&self, code: i16) -> Result<(), String> {
        self.tell(&format!("fail {code}"))
    }

    fn tell(&self, what: &str) -> Result<(), String> {
        let mut pipes = self.pipes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (input, output) = &mut *pipes;
        writeln!(input, "{what}").map_err(|e| format!("the cluster has ended: {e}"))?;
        match line(output)?.as_str() {
            "0" => Ok(()),
            code => Err(format!("{what}: the cluster answers {code}")),
        }
    }

    /// Everything in a topic of such a cluster as another client reads it, a JSON object a line.
    ///
    /// # Errors
    /// When kcat does not come to the end.
    pub fn read_at(url: &str, topic: &str) -> Result<String, String> {
        let mut kcat = Command::new("kcat");
        let output = run(kcat.args(["-C", "-b", url, "-t", topic, "-J", "-e", "-q", "-o", "beginning"]))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn compiler() -> Option<std::path::PathBuf> {
    match std::env::var_os("CC") {
        Some(named) => Some(named.into()),
        None => find("cc", &[]),
    }
}

fn line(output: &mut impl BufRead) -> Result<String, String> {
    let mut line = String::new();
    match output.read_line(&mut line) {
        Ok(0) => Err("the cluster has ended".into()),
        Ok(_) => Ok(line.trim().to_owned()),
        Err(e) => Err(format!("the cluster cannot be read: {e}")),
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // It keeps nothing, and one that has ended needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_broker_goes_down_and_comes_back() {
        let is_here = Kafka::is_here();
        assert!(is_here || std::env::var_os("CI").is_none(), "{} is missing", Kafka::PACKAGE);
        if !is_here {
            return;
        }
        let kafka = Kafka::start().unwrap();
        kafka.topic("t", 2).unwrap();
        assert!(kafka.topic("t", 2).is_err(), "it is there already");
        let produce = format!("echo told | kcat -P -b {} -t t -p 1 -k key -H a=b", kafka.url());
        run(Command::new("sh").args(["-c", &produce])).unwrap();
        kafka.down().unwrap();
        assert!(TcpStream::connect(kafka.url()).is_err());
        kafka.up().unwrap();
        let read = Kafka::read_at(kafka.url(), "t").unwrap();
        assert!(read.contains("\"partition\":1") && read.contains("\"payload\":\"told\""), "{read}");
    }
}
