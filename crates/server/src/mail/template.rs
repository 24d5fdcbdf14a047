//! Templates of mails: texts with placeholders such as `{order_id}`, the built-in ones or the shop's own.
//!
//! What is filled in is escaped in HTML. A placeholder that nobody fills in is refused at the start, with its line,
//! instead of reaching a shopper.

use super::{NoticeKind, one_line};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const MAX_BYTES: usize = 256 * 1024;

/// What placeholders stand for.
pub(super) struct Values {
    pub(super) order_id: String,
    pub(super) amount: String,
    pub(super) shop: String,
    pub(super) reference: String,
}

/// A mail, written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    OrderId,
    Amount,
    Shop,
    Reference,
}

impl Slot {
    const ALL: [(&'static str, Self); 4] =
        [("order_id", Self::OrderId), ("amount", Self::Amount), ("shop", Self::Shop), ("reference", Self::Reference)];

    fn value(self, values: &Values) -> &str {
        match self {
            Self::OrderId => &values.order_id,
            Self::Amount => &values.amount,
            Self::Shop => &values.shop,
            Self::Reference => &values.reference,
        }
    }
}

/// Text, and what follows it.
#[derive(Debug)]
struct Template(Vec<(String, Option<Slot>)>);

impl Template {
    /// `name` is for the error.
    fn parse(text: &str, name: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let (mut rest, mut done) = (text, String::new());
        while let Some(at) = rest.find('{') {
            done.push_str(&rest[..at]);
            let inside = &rest[at + 1..];
            let end = inside.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_');
            let word = end.map_or("", |end| &inside[..end]);
            if word.is_empty() || !inside[word.len()..].starts_with('}') {
                // A brace of a style sheet, or of a text.
                done.push('{');
                rest = inside;
                continue;
            }
            let Some((_, slot)) = Slot::ALL.iter().find(|(known, _)| *known == word) else {
                let read = text.len() - rest.len() + at;
                let line = text[..read].matches('\n').count() + 1;
                let known: Vec<_> = Slot::ALL.iter().map(|(known, _)| format!("{{{known}}}")).collect();
                return Err(format!(
                    "{name}, line {line}: nothing is filled in for {{{word}}}; there are {}",
                    known.join(" ")
                ));
            };
            pieces.push((std::mem::take(&mut done), Some(*slot)));
            rest = &inside[word.len() + 1..];
        }
        done.push_str(rest);
        pieces.push((done, None));
        Ok(Self(pieces))
    }

    fn render(&self, values: &Values, escape: fn(&str, &mut String)) -> String {
        let mut out = String::new();
        for (text, slot) in &self.0 {
            out.push_str(text);
            if let Some(slot) = slot {
                escape(slot.value(values), &mut out);
            }
        }
        out
    }
}

fn plain(text: &str, out: &mut String) {
    out.push_str(text);
}

fn html(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' | '`' | '=' => {
                // Writing to a string does not fail.
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// The three templates of each kind of mail.
#[derive(Debug)]
pub(super) struct Templates(Vec<(NoticeKind, [Template; 3])>);

const PARTS: [&str; 3] = ["subject.txt", "txt", "html"];

impl Templates {
    /// The built-in ones, each replaced by the file of its name where the folder has one.
    pub(super) fn load(folder: Option<&Path>) -> Result<Self, String> {
        if let Some(folder) = folder {
            refuse_unknown(folder)?;
        }
        let load = |kind: NoticeKind| {
            let part = |part: usize| {
                let name = format!("{}.{}", kind.as_str(), PARTS[part]);
                let file = folder.map(|f| f.join(&name)).filter(|f| f.exists());
                let (text, name) = match &file {
                    Some(file) => (read(file)?, file.display().to_string()),
                    None => (built_in(kind)[part].to_owned(), name),
                };
                if part == 0 && text.trim().is_empty() {
                    return Err(format!("{name}: a mail needs a subject"));
                }
                if part == 0 && text.trim().contains('\n') {
                    return Err(format!("{name}, line 2: a subject is one line"));
                }
                Template::parse(&text, &name)
            };
            Ok::<_, String>((kind, [part(0)?, part(1)?, part(2)?]))
        };
        NoticeKind::ALL.into_iter().map(load).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn render(&self, kind: NoticeKind, values: &Values) -> Written {
        let mut written = Written { subject: String::new(), text: String::new(), html: String::new() };
        for (_, [subject, text, page]) in self.0.iter().filter(|(known, _)| *known == kind) {
            written = Written {
                subject: one_line(&subject.render(values, plain)).trim().to_owned(),
                text: text.render(values, plain),
                html: page.render(values, html),
            };
        }
        written
    }
}

fn read(file: &Path) -> Result<String, String> {
    let bad = |why: &str| format!("cannot use the mail template {}: {why}", file.display());
    let bytes = fs::read(file).map_err(|e| bad(&e.to_string()))?;
    if bytes.len() > MAX_BYTES {
        return Err(bad("it is longer than 256 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// A template under a name that nobody looks for would be left out in silence.
fn refuse_unknown(folder: &Path) -> Result<(), String> {
    let entries = fs::read_dir(folder)
        .map_err(|e| format!("cannot read the folder of mail templates {}: {e}", folder.display()))?;
    let known: Vec<_> =
        NoticeKind::ALL.iter().flat_map(|kind| PARTS.map(|part| format!("{}.{part}", kind.as_str()))).collect();
    for entry in entries {
        let name = entry.map_err(|e| e.to_string())?.file_name().to_string_lossy().into_owned();
        let is_template = name.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "txt" | "html"));
        if is_template && !known.contains(&name) {
            return Err(format!(
                "{}: no mail has this name; there are {}",
                folder.join(&name).display(),
                known.join(" ")
            ));
        }
    }
    Ok(())
}

fn built_in(kind: NoticeKind) -> [&'static str; 3] {
    match kind {
        NoticeKind::WindowLapsed => [
            include_str!("templates/window-lapsed.subject.txt"),
            include_str!("templates/window-lapsed.txt"),
            include_str!("templates/window-lapsed.html"),
        ],
        NoticeKind::RefundDone => [
            include_str!("templates/refund-done.subject.txt"),
            include_str!("templates/refund-done.txt"),
            include_str!("templates/refund-done.html"),
        ],
    }
}
