//! URLs of databases: what may be shown of them, and how another program is told the password.

use std::fmt::Write;

/// The URL without user, password and options: each of them may be a secret.
pub(super) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".into() };
    // A password may hold any character, so what counts is the last `@`.
    let place = rest.rsplit('@').next().unwrap_or_default();
    let end = place.find(['?', '&', '#']).unwrap_or(place.len());
    format!("{scheme}://{}", &place[..end])
}

/// The URL with its password taken out, and the password as it is meant.
pub(super) fn without_password(url: &str) -> (String, Option<String>) {
    let parts = || {
        let (scheme, rest) = url.split_once("://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, password) = login.split_once(':')?;
        Some((format!("{scheme}://{user}@{place}"), Some(decoded(password))))
    };
    parts().unwrap_or_else(|| (url.to_owned(), None))
}

/// The command line for the report: without the name of the folder of this program, and without secrets.
pub(super) fn command_line(words: impl Iterator<Item = String>, secrets: &[(String, String)]) -> String {
    let mut line = "holdfast".to_owned();
    for mut word in words.skip(1) {
        for (secret, shown) in secrets.iter().filter(|(secret, _)| !secret.is_empty()) {
            word = word.replace(secret, shown);
        }
        // Writing into a String cannot fail.
        let _ = if word.contains(' ') || word.is_empty() { write!(line, " '{word}'") } else { write!(line, " {word}") };
    }
    line
}

/// Percent-decodes; what is no code stays as it is.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_shown() {
        for (url, told) in [
            ("postgres://u:secret@db.internal:5432/shop", "postgres://db.internal:5432/shop"),
            ("postgres://u:se@cr?et@h/d", "postgres://h/d"),
            ("postgres://h/d?password=secret", "postgres://h/d"),
            ("postgres://h/d?x=a@b&password=secret", "postgres://b"),
            ("mysql://h/d", "mysql://h/d"),
            ("secret", "…"),
        ] {
            assert_eq!(shown(url), told);
        }
    }

    #[test]
    fn a_password_is_handed_over_as_it_is_meant() {
        let told = |url, password: Option<&str>| (url, password.map(str::to_owned));
        let (url, password) = without_password("postgres://u:a%40b%2g@h:1/d?x=y");
        assert_eq!((url.as_str(), password), told("postgres://u@h:1/d?x=y", Some("a@b%2g")));
        assert_eq!(without_password("postgres://u@h/d").1, None);
        assert_eq!(without_password("postgres://h/d").0, "postgres://h/d");
    }

    #[test]
    fn the_command_line_can_be_repeated_but_tells_no_password() {
        let url = "postgres://u:p,w@h/d".to_owned();
        let words = ["/opt/bin/holdfast", "bench", "--engine=postgres://u:p,w@h/d", "--json", "my file"];
        let line = command_line(words.map(str::to_owned).into_iter(), &[(url.clone(), shown(&url))]);
        assert_eq!(line, "holdfast bench --engine=postgres://h/d --json 'my file'");
    }
}
