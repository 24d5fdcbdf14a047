//! An endpoint for webhooks: keeps what arrives, checks each signature, answers what the test says.

use crate::rig::PATIENCE;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

/// One attempt as it arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub event: Value,
    pub second: i64,
    pub signatures: Vec<String>,
    body: Vec<u8>,
}

impl Arrived {
    pub fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }

    pub fn id(&self) -> &str {
        self.event["id"].as_str().unwrap()
    }

    /// Whether one of the signatures was made with this secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let signed = [format!("{}.", self.second).as_bytes(), &self.body].concat();
        self.signatures.contains(&hmac(secret.as_bytes(), &signed))
    }
}

/// Written out here, so that the provider's own way of signing is not compared with itself.
fn hmac(key: &[u8], message: &[u8]) -> String {
    assert!(key.len() <= 64);
    let padded = |pad: u8| -> Vec<u8> {
        let mut block = [pad; 64];
        key.iter().zip(&mut block).for_each(|(byte, at)| *at ^= byte);
        block.to_vec()
    };
    let inner = Sha256::digest([padded(0x36), message.to_vec()].concat());
    let outer = Sha256::digest([padded(0x5c), inner.to_vec()].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

pub struct Endpoint {
    pub url: String,
    arrived: Receiver<Arrived>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl Endpoint {
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/webhooks/stripe", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, arrived) = mpsc::channel();
        let shared = answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tell, answers) = (tell.clone(), shared.clone());
                std::thread::spawn(move || serve(&stream, &tell, &answers));
            }
        });
        Self { url, arrived, answers }
    }

    /// What the next attempts are answered; 200 after that.
    pub fn answers(&self, statuses: &[u16]) {
        self.answers.lock().unwrap().extend(statuses);
    }

    /// The next attempt.
    pub fn next(&self) -> Arrived {
        self.arrived.recv_timeout(PATIENCE).expect("an event arrives")
    }

    /// The next attempts.
    pub fn take(&self, n: usize) -> Vec<Arrived> {
        (0..n).map(|_| self.next()).collect()
    }

    /// The types of the next attempts.
    pub fn kinds(&self, n: usize) -> Vec<String> {
        self.take(n).iter().map(|arrived| arrived.kind().to_owned()).collect()
    }

    /// Nothing that arrived is left unread.
    pub fn is_empty(&self) -> bool {
        self.arrived.try_recv().is_err()
    }
}

fn serve(stream: &TcpStream, tell: &Sender<Arrived>, answers: &Mutex<VecDeque<u16>>) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut signature, mut line) = (0, String::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "stripe-signature" => value.clone_into(&mut signature),
            _ => {}
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let parts: Vec<(&str, &str)> = signature.split(',').filter_map(|part| part.split_once('=')).collect();
    let arrived = Arrived {
        event: serde_json::from_slice(&body).unwrap(),
        second: parts.iter().find(|(name, _)| *name == "t").unwrap().1.parse().unwrap(),
        signatures: parts.iter().filter(|(name, _)| *name == "v1").map(|(_, value)| (*value).to_owned()).collect(),
        body,
    };
    let status = answers.lock().unwrap().pop_front().unwrap_or(200);
    // The test may have ended.
    let _ = tell.send(arrived);
    let _ = (&mut &*stream).write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").as_bytes());
}
