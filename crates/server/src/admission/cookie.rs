//! The cookie by which a browser keeps its ticket: one place for all its tabs.

use axum::http::{HeaderMap, HeaderValue, header};

/// A browser gives a place up after so many seconds at the latest.
const MAX_AGE: u32 = 7 * 24 * 3600;
/// Browsers take this prefix only from HTTPS, for this host, and for all of it: no neighbour can plant one.
const HOST: &str = "__Host-";

/// The ticket that a browser has for a sale.
pub(crate) fn cookie_of<'a>(headers: &'a HeaderMap, sale: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| name.strip_prefix(HOST).unwrap_or(name).strip_prefix("wr-") == Some(sale)).map(|(_, t)| t)
}

/// Gives a browser its ticket. Names of sales and tickets are plain, so this can be written as it is.
pub(crate) fn set_cookie(sale: &str, ticket: &str, is_https: bool) -> HeaderValue {
    let (prefix, secure) = if is_https { (HOST, "; Secure") } else { ("", "") };
    let cookie = format!("{prefix}wr-{sale}={ticket}; Path=/; Max-Age={MAX_AGE}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&cookie).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_its_own_ticket_back() {
        for is_https in [false, true] {
            let set = set_cookie("drop~1", "abc-_", is_https);
            let pair = set.to_str().unwrap().split(';').next().unwrap().to_owned();
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, format!("a=b; {pair}; wr-drop=other").parse().unwrap());
            assert_eq!(cookie_of(&headers, "drop~1"), Some("abc-_"));
            assert_eq!((cookie_of(&headers, "drop"), cookie_of(&headers, "x")), (Some("other"), None));
        }
    }
}
