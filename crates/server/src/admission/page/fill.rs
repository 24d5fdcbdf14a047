//! Filling a template in, and making any text safe in the place where it goes.

use std::fmt::Write as _;

/// What is filled in for a name in the template.
pub(super) enum Slot {
    /// Text of whatever origin; it is escaped.
    Text(String),
    /// Markup of our own making.
    Markup(String),
}

impl Slot {
    /// The attribute that hides a part which is not shown.
    pub(super) fn shown(is_shown: bool) -> Self {
        Self::Markup(if is_shown { "" } else { " hidden" }.to_owned())
    }
}

/// The template with every `{{name}}` filled in. What is filled in is not looked at again.
pub(super) fn fill(template: &str, mut value: impl FnMut(&str, &mut String)) -> String {
    let mut out = String::with_capacity(template.len() * 3);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        value(name, &mut out);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Text in HTML, also within quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML has no way to write this one.
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON within a script element: nothing in it can end the element or open a comment.
pub(super) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A style sheet that cannot end the element it is in.
pub(super) fn without_style_end(css: &str) -> String {
    css.replace("</", "<\\/")
}

/// A segment of a path, or a value in a query: every byte but the unreserved ones, percent-encoded.
pub(super) fn path_part(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    })
}

/// The origin of a web address, if it has a plain one: no user, only what a host and a port are made of.
pub(super) fn origin(url: &str) -> Option<&str> {
    let scheme =
        ["https://", "http://"].into_iter().find(|s| url.get(..s.len()).is_some_and(|u| u.eq_ignore_ascii_case(s)))?;
    let rest = &url[scheme.len()..];
    let host = rest.split(['/', '?', '#']).next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    (!host.is_empty() && host.chars().all(is_plain)).then(|| &url[..scheme.len() + host.len()])
}

/// The address with this query parameter, in the place of any of the same name.
pub(super) fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (address, fragment) = url.split_once('#').map_or((url, None), |(a, f)| (a, Some(f)));
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_other = |part: &&str| !part.is_empty() && part.split('=').next() != Some(name);
    let mut out = format!("{path}?");
    query.split('&').filter(is_other).for_each(|part| {
        let _ = write!(out, "{part}&");
    });
    let _ = write!(out, "{name}={}", path_part(value));
    if let Some(fragment) = fragment {
        let _ = write!(out, "#{fragment}");
    }
    out
}
