//! A ledger entry as a CloudEvents 1.0 event. What an entry is called and which id it has never changes.

use crate::view::{EntryView, Moment};
use holdfast_domain::{Entry, EntryKind, Time};
use holdfast_engine::NumberedEntry;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// What the events of one deployment have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The deployment, as a URI reference. With an event's id it tells the event from every other.
    pub source: Arc<str>,
    /// What a type begins with, in reverse-DNS order.
    pub type_prefix: Arc<str>,
}

impl Default for Identity {
    fn default() -> Self {
        Self { source: "/holdfast".into(), type_prefix: "dev.holdfast".into() }
    }
}

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// The entry's number.
    pub seq: u64,
    /// What the entry records.
    pub kind: EntryKind,
    /// The number again, padded with zeros so that ids sort as text.
    pub id: String,
    /// See [`Identity::source`].
    pub source: Arc<str>,
    /// `<prefix>.<kind>.v1`.
    pub event_type: String,
    /// `order/<id>` or `sku/<sku>`; entries that concern neither have none.
    pub subject: Option<String>,
    /// When it happened.
    pub at: Time,
    /// The same in RFC 3339, UTC, milliseconds.
    pub time: String,
    /// Events with the same key are told in order: the order's id, else the SKU, else the hold.
    pub key: Option<String>,
    /// The entry itself.
    pub entry: Entry,
    /// The entry in JSON, as the ledger's list shows it.
    pub data: Box<RawValue>,
}

impl Event {
    /// The event of this entry.
    ///
    /// # Errors
    /// When the entry cannot be written as JSON, which no entry of the domain is known to do.
    pub fn new(numbered: &NumberedEntry, identity: &Identity) -> Result<Self, serde_json::Error> {
        let entry = &numbered.entry;
        let order = entry.order.as_ref().map(holdfast_domain::OrderId::as_str);
        let sku = entry.sku.as_ref().map(holdfast_domain::Sku::as_str);
        let subject = order.map(|id| format!("order/{id}")).or_else(|| sku.map(|sku| format!("sku/{sku}")));
        let time: String = serde_json::from_value(serde_json::to_value(Moment(entry.at))?)?;
        Ok(Self {
            seq: numbered.seq,
            kind: entry.kind,
            id: padded(numbered.seq),
            source: identity.source.clone(),
            event_type: format!("{}.{}.v1", identity.type_prefix, entry.kind.as_str()),
            subject,
            at: entry.at,
            time,
            key: order.or(sku).map(str::to_owned).or_else(|| entry.hold.map(|hold| hold.to_string())),
            entry: entry.clone(),
            data: to_raw_value(&EntryView::new(numbered))?,
        })
    }

    /// Its attributes by name: what protocols with headers put there.
    pub fn attributes(&self) -> Vec<(&'static str, &str)> {
        let mut all = vec![
            ("specversion", "1.0"),
            ("id", self.id.as_str()),
            ("source", &*self.source),
            ("type", self.event_type.as_str()),
            ("time", self.time.as_str()),
            ("sequence", self.id.as_str()),
        ];
        all.extend(self.subject.as_deref().map(|subject| ("subject", subject)));
        all.extend(self.key.as_deref().map(|key| ("partitionkey", key)));
        all
    }

    /// All of it in one JSON object: what is sent as `application/cloudevents+json`.
    ///
    /// # Errors
    /// As [`Event::new`].
    pub fn structured(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Structured {
            specversion: "1.0",
            id: &self.id,
            source: &self.source,
            event_type: &self.event_type,
            subject: self.subject.as_deref(),
            time: &self.time,
            datacontenttype: DATA_TYPE,
            partitionkey: self.key.as_deref(),
            sequence: &self.id,
            data: &self.data,
        })
    }
}

/// What [`Event::data`] is.
pub(super) const DATA_TYPE: &str = "application/json";
/// What [`Event::structured`] is.
pub(super) const STRUCTURED_TYPE: &str = "application/cloudevents+json";

/// A number as text that sorts like it.
pub(super) fn padded(seq: u64) -> String {
    format!("{seq:020}")
}

#[derive(Serialize)]
struct Structured<'a> {
    specversion: &'a str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: &'a str,
    datacontenttype: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitionkey: Option<&'a str>,
    sequence: &'a str,
    data: &'a RawValue,
}

/// Cuts events into runs in which no key comes twice. The events of a run may be under way at once without one of them
/// overtaking another of its key.
pub(super) fn runs(events: &[Event]) -> Vec<&[Event]> {
    let (mut runs, mut start) = (Vec::new(), 0);
    let mut seen = std::collections::HashSet::new();
    for (index, event) in events.iter().enumerate() {
        if !seen.insert(event.key.as_deref()) {
            runs.push(&events[start..index]);
            start = index;
            seen.clear();
            seen.insert(event.key.as_deref());
        }
    }
    if start < events.len() {
        runs.push(&events[start..]);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::{Entry, OrderId, Sku};
    use serde_json::{Value, json};

    fn numbered(seq: u64, order: Option<&str>) -> NumberedEntry {
        let entry = Entry {
            at: Time::from_millis(1_764_504_000_123),
            kind: EntryKind::Held,
            sku: Some(Sku::new("a/b \"ü\"").unwrap()),
            available: -2,
            held: 2,
            sold: 0,
            hold: None,
            order: order.map(|id| OrderId::new(id).unwrap()),
            reason: None,
        };
        NumberedEntry { seq, entry }
    }

    #[test]
    fn an_event_is_what_the_ledger_shows_in_an_envelope() {
        let event = Event::new(&numbered(17, Some("O-1")), &Identity::default()).unwrap();
        let told: Value = serde_json::from_slice(&event.structured().unwrap()).unwrap();
        let data = json!({"seq": 17, "at": "2025-11-30T12:00:00.123Z", "kind": "held", "sku": "a/b \"ü\"", "available": -2,
            "held": 2, "sold": 0, "hold_id": null, "order_id": "O-1", "reason": null});
        assert_eq!(
            told,
            json!({"specversion": "1.0", "id": "00000000000000000017", "source": "/holdfast",
                "type": "dev.holdfast.held.v1", "subject": "order/O-1", "time": "2025-11-30T12:00:00.123Z",
                "datacontenttype": "application/json", "partitionkey": "O-1", "sequence": "00000000000000000017",
                "data": data})
        );
        for (name, value) in event.attributes() {
            assert_eq!(told[name], value);
        }
        let event = Event::new(&numbered(18, None), &Identity::default()).unwrap();
        assert_eq!((event.subject.as_deref(), event.key.as_deref()), (Some("sku/a/b \"ü\""), Some("a/b \"ü\"")));
    }

    #[test]
    fn no_run_has_a_key_twice() {
        let orders = ["a", "b", "c", "b", "b", "a", "c"];
        let events: Vec<Event> = orders
            .iter()
            .zip(1..)
            .map(|(order, seq)| Event::new(&numbered(seq, Some(order)), &Identity::default()).unwrap())
            .collect();
        let cut: Vec<Vec<u64>> = runs(&events).iter().map(|run| run.iter().map(|e| e.seq).collect()).collect();
        assert_eq!(cut, [vec![1, 2, 3], vec![4], vec![5, 6, 7]]);
        assert!(runs(&[]).is_empty());
    }
}
