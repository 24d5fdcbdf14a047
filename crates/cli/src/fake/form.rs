//! Form bodies and query strings as the provider reads them: every parameter is taken by name, and what is left over
//! is refused. Must never let a misspelt parameter pass.

use super::error::Refused;
use std::collections::BTreeMap;

/// Names and values kept with an object.
pub(super) type Metadata = BTreeMap<String, String>;

/// Parameters that nobody has taken yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    /// Reads a body or a query. `a[]` may come several times; its values are numbered.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            let name = match name.strip_suffix("[]") {
                Some(list) => {
                    let open = format!("{list}[");
                    format!("{open}{}]", fields.keys().filter(|name: &&String| name.starts_with(&open)).count())
                }
                None => name.into_owned(),
            };
            if fields.insert(name.clone(), value.into_owned()).is_some() {
                return Err(Refused::no_form(&format!("{name} is there twice")));
            }
        }
        Ok(Self(fields))
    }

    /// Everything in it, for comparing two requests.
    pub(super) fn print(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(&self.0);
        text.finish()
    }

    /// A text, if it is there. An empty one unsets, which is the same as none for a new object.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }

    /// One of these words.
    pub(super) fn word(&mut self, name: &str, known: &[&'static str]) -> Result<Option<&'static str>, Refused> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let found = known.iter().copied().find(|word| *word == value);
        let known = known.join(", ");
        found.map(Some).ok_or_else(|| Refused::parameter(None, name, format!("Invalid {name}: must be one of {known}")))
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Refused> {
        Ok(self.word(name, &["true", "false"])? == Some("true"))
    }

    /// A whole number of at least 0.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, Refused> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let number = value.parse().map_err(|_| {
            Refused::parameter(Some("parameter_invalid_integer"), name, format!("Invalid integer: {value}"))
        })?;
        Ok(Some(number))
    }

    /// An amount in minor units: at least 1, up to eight digits.
    pub(super) fn amount(&mut self, name: &str) -> Result<Option<u64>, Refused> {
        let Some(amount) = self.number(name)? else { return Ok(None) };
        let fault = match amount {
            0 => "This value must be greater than or equal to 1.",
            1..=99_999_999 => return Ok(Some(amount)),
            _ => "This value must have no more than 8 digits.",
        };
        Err(Refused::parameter(Some("parameter_invalid_integer"), name, fault))
    }

    /// A currency: three letters, told in lower case from here on.
    pub(super) fn currency(&mut self, name: &str) -> Result<String, Refused> {
        let value = self.text(name).ok_or_else(|| Refused::missing_parameter(name))?;
        if value.len() == 3 && value.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Ok(value.to_ascii_lowercase());
        }
        Err(Refused::parameter(None, name, format!("Invalid currency: {value}. It has three letters.")))
    }

    /// `name[key]=value` for any key, within the provider's limits.
    pub(super) fn metadata(&mut self, name: &str) -> Result<Metadata, Refused> {
        let open = format!("{name}[");
        let mine: Vec<String> = self.0.keys().filter(|field| field.starts_with(&open)).cloned().collect();
        let mut metadata = Metadata::new();
        for field in mine {
            let Some(value) = self.0.remove(&field) else { continue };
            let Some(key) = field[open.len()..].strip_suffix(']') else {
                return Err(Refused::parameter(None, &field, format!("Invalid name of metadata: {field}")));
            };
            if key.is_empty() || key.chars().count() > 40 || key.contains(['[', ']']) {
                let fault = "Metadata keys have 1 to 40 characters without square brackets.";
                return Err(Refused::parameter(None, &field, fault));
            }
            if value.chars().count() > 500 {
                return Err(Refused::parameter(None, &field, "Metadata values have up to 500 characters."));
            }
            // An empty value unsets, as the real one has it.
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value);
            }
        }
        if metadata.len() > 50 {
            return Err(Refused::parameter(None, name, "Metadata has up to 50 keys."));
        }
        Ok(metadata)
    }

    /// The values of `name[]` or `name[0]`, `name[1]`, ….
    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        (0..).map_while(|n| self.0.remove(&format!("{name}[{n}]"))).collect()
    }

    /// Whether there is something under `name[n]`.
    pub(super) fn has_item(&self, name: &str, n: usize) -> bool {
        let open = format!("{name}[{n}]");
        self.0.keys().any(|field| field.starts_with(&open))
    }

    /// Refuses what nobody took.
    pub(super) fn done(self) -> Result<(), Refused> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(Refused::unknown_parameter(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        Form::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn brackets_make_maps_and_lists() {
        let mut form = form("metadata[order_id]=A%2F1&expand[]=latest_charge&expand[]=x&metadata%5Bb%5D=2");
        let metadata = form.metadata("metadata").unwrap();
        assert_eq!(
            metadata.into_iter().collect::<Vec<_>>(),
            [("b".into(), "2".into()), ("order_id".into(), "A/1".into())]
        );
        assert_eq!(form.list("expand"), ["latest_charge", "x"]);
        assert!(form.done().is_ok());
    }

    #[test]
    fn what_is_left_over_twice_or_out_of_range_is_refused() {
        assert_eq!(form("amout=3").done().unwrap_err().body("r")["error"]["code"], "parameter_unknown");
        assert!(Form::parse(b"amount=1&amount=2").is_err());
        for bad in ["amount=0", "amount=100000000", "amount=-1", "amount=1.5", "amount="] {
            let refused = form(bad).amount("amount").unwrap_err();
            assert_eq!(refused.body("r")["error"]["code"], "parameter_invalid_integer", "{bad}");
            assert!(!refused.is_kept);
        }
        assert_eq!(form("amount=99999999").amount("amount").unwrap(), Some(99_999_999));
        assert!(form(&format!("metadata[{}]=x", "k".repeat(41))).metadata("metadata").is_err());
        assert!(form(&format!("metadata[k]={}", "v".repeat(501))).metadata("metadata").is_err());
        let many: Vec<String> = (0..51).map(|n| format!("metadata[k{n}]=v")).collect();
        assert!(form(&many.join("&")).metadata("metadata").is_err());
    }

    #[test]
    fn the_order_of_parameters_does_not_tell_requests_apart() {
        assert_eq!(form("a=1&b=2").print(), form("b=2&a=1").print());
        assert_ne!(form("a=1&b=2").print(), form("a=1&b=3").print());
    }
}
