//! As much of an HTTP/1.1 client as a load generator needs: one connection, one request under way, no copies.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Room for an answer before the buffer grows.
const ROOM: usize = 16 * 1024;
/// An answer larger than this is a mistake.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// A request as it goes over the wire, with its length told even when there is no body.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        // Writing into a string cannot fail.
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "content-length: {}\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Where an answer lies in the bytes that were parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The body starts here.
    pub(crate) body: usize,
    /// The body ends here, and so does the answer.
    pub(crate) end: usize,
    /// The server will close the connection.
    pub(crate) close: bool,
}

/// Reads the first answer in the bytes; `None` when more bytes are needed.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Answer>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let body = match response.parse(bytes) {
        Ok(httparse::Status::Complete(body)) => body,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("no HTTP answer: {error}")),
    };
    let status = response.code.unwrap_or_default();
    let mut length = matches!(status, 100..=199 | 204 | 304).then_some(0);
    let mut close = false;
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") && length.is_none() {
            let text = std::str::from_utf8(header.value).unwrap_or_default();
            length = Some(text.trim().parse::<usize>().map_err(|_| format!("content-length is {text:?}"))?);
        } else if header.name.eq_ignore_ascii_case("connection") {
            close = header.value.eq_ignore_ascii_case(b"close");
        }
    }
    let length = length.ok_or("an answer without content-length")?;
    if length > MAX_ANSWER {
        return Err(format!("an answer of {length} bytes"));
    }
    let end = body + length;
    Ok((bytes.len() >= end).then_some(Answer { status, body, end, close }))
}

/// A kept-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The bytes not looked at yet: from here to the end of `buffer`.
    next: usize,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(ROOM), next: 0 })
    }

    /// Sends a request and waits for its answer: the status, the body, and whether the connection can go on.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, &[u8], bool)> {
        self.stream.write_all(request).await?;
        loop {
            if let Some(answer) = parse(&self.buffer[self.next..]).map_err(io::Error::other)? {
                let start = self.next;
                self.next += answer.end;
                if !(100..200).contains(&answer.status) {
                    let body = &self.buffer[start + answer.body..start + answer.end];
                    return Ok((answer.status, body, !answer.close));
                }
                continue;
            }
            if self.next > 0 {
                self.buffer.drain(..self.next);
                self.next = 0;
            }
            self.buffer.reserve(ROOM / 2);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\ncontent-length: 2\r\n\r\n{}";

    #[test]
    fn an_answer_split_anywhere_is_read_once_it_is_whole() {
        for cut in 0..HELD.len() {
            assert_eq!(parse(&HELD[..cut]), Ok(None), "after {cut} bytes");
        }
        let whole = Answer { status: 201, body: HELD.len() - 2, end: HELD.len(), close: false };
        assert_eq!(parse(HELD), Ok(Some(whole)));
    }

    #[test]
    fn bytes_after_the_answer_belong_to_the_next() {
        let refused = b"HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n";
        let both = [HELD, refused].concat();
        let first = parse(&both).unwrap().unwrap();
        assert_eq!((first.status, first.end), (201, HELD.len()));
        let second = parse(&both[first.end..]).unwrap().unwrap();
        assert_eq!((second.status, second.body, second.end, second.close), (409, refused.len(), refused.len(), true));
    }

    #[test]
    fn an_answer_of_unknown_length_is_an_error_unless_it_has_no_body() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").is_err());
        assert!(parse(b"220 mail.example ESMTP\r\n\r\n").is_err());
        assert_eq!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().unwrap().status, 204);
    }

    #[tokio::test]
    async fn answers_in_pieces_and_two_at_once_are_told_apart() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 3];
            stream.read_exact(&mut request).await.unwrap();
            for piece in HELD.chunks(7) {
                stream.write_all(piece).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(&[b"HTTP/1.1 100 Continue\r\n\r\n", HELD, HELD].concat()).await.unwrap();
            stream.read_exact(&mut request).await.unwrap();
        });
        let mut connection = Connection::open(to).await.unwrap();
        for _ in 0..3 {
            let (status, body, goes_on) = connection.exchange(b"ask").await.unwrap();
            assert_eq!((status, body, goes_on), (201, &b"{}"[..], true));
        }
        server.await.unwrap();
        assert!(connection.exchange(b"ask").await.is_err(), "closed");
    }
}
