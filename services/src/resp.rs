//! One command to a Redis server and its answer, as text: enough for tests to look past whatever they test.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// A server that says nothing for so long is told to be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends it on a connection of its own.
pub(crate) fn command(port: u16, words: &[&str]) -> Result<String, String> {
    let place = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |e: std::io::Error| format!("Redis on port {port}: {e}");
    let mut stream = TcpStream::connect_timeout(&place, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    stream.write_all(&request).map_err(failed)?;
    let mut lines = Vec::new();
    read(&mut BufReader::new(stream), &mut lines).map_err(failed)??;
    Ok(lines.join("\n"))
}

/// Reads one answer, a line for each of its values. The inner error is what the server says.
fn read(from: &mut impl BufRead, lines: &mut Vec<String>) -> std::io::Result<Result<(), String>> {
    let mut head = String::new();
    if from.read_line(&mut head)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let head = head.trim_end();
    let (kind, rest) = head.split_at(head.len().min(1));
    let size = || rest.parse::<i64>().map_err(|_| std::io::Error::other(format!("not an answer: {head}")));
    match kind {
        "-" => return Ok(Err(rest.to_owned())),
        "$" => {
            let mut text = Vec::new();
            if let Ok(size) = usize::try_from(size()?) {
                text.resize(size + 2, 0);
                from.read_exact(&mut text)?;
                text.truncate(size);
            }
            lines.push(String::from_utf8_lossy(&text).into_owned());
        }
        "*" => {
            for _ in 0..size()? {
                if let Err(said) = read(from, lines)? {
                    return Ok(Err(said));
                }
            }
        }
        _ => lines.push(rest.to_owned()),
    }
    Ok(Ok(()))
}
