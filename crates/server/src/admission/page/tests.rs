//! The page in every scene: whole, safe for any text, and sufficient in itself.

use super::words::{count, day_and_time, grouped, range, rfc3339, word};
use super::*;

const NOW: i64 = 1_795_978_800_000;

fn ticket(state: TicketState) -> Ticket<'static> {
    Ticket {
        id: "01890a5d-ac96-774b-bcce-b302099a8057",
        state,
        position: Some(1234),
        ahead: Some(1233),
        waiting_total: 58_211,
        eta: Some((310, 520)),
        stock: StockState::Available,
        likely_gone: false,
        claim_by: (state == TicketState::Turn).then_some(NOW + 60_000),
        expires_at: (state == TicketState::Admitted).then_some(NOW + 600_000),
        poll_after_ms: 7_500,
    }
}

fn page(visitor: Visitor<'_>, room: Room) -> WaitPage<'_> {
    WaitPage {
        sale: "drop 1/é",
        title: "The Winter Chair",
        brand: Some("Holm & Sons"),
        visitor,
        room,
        opens_at: Some(NOW - 1000),
        starts_at: Some(NOW + 754_000),
        commitment: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        return_url: Some("/chairs?x=1&y=2"),
        now: NOW,
        nonce: "bm9uY2U",
        events: false,
        custom_css: None,
        trouble: None,
    }
}

fn holding(state: TicketState, room: Room) -> WaitPage<'static> {
    page(Visitor::Holding(ticket(state)), room)
}

fn scenes() -> Vec<(&'static str, WaitPage<'static>)> {
    use TicketState::{Admitted, Done, Expired, Left, Prequeue, Turn, Waiting};
    let missed = Ticket { claim_by: Some(NOW - 5000), ..ticket(Expired) };
    vec![
        ("early", WaitPage { opens_at: Some(NOW + 60_000), ..page(Visitor::New, Room::Prequeue) }),
        ("join", page(Visitor::New, Room::Open)),
        ("prequeue", holding(Prequeue, Room::Prequeue)),
        ("waiting", holding(Waiting, Room::Open)),
        ("held", holding(Waiting, Room::Held)),
        ("paused", holding(Waiting, Room::Paused)),
        ("turn", holding(Turn, Room::Held)),
        ("admitted", holding(Admitted, Room::Closed)),
        ("done", holding(Done, Room::SoldOut)),
        ("sold_out", holding(Waiting, Room::SoldOut)),
        ("closed", page(Visitor::New, Room::Closed)),
        ("missed", page(Visitor::Holding(missed), Room::Open)),
        ("lapsed", holding(Expired, Room::Open)),
        ("left", holding(Left, Room::Open)),
        ("left", page(Visitor::Left, Room::Open)),
        ("lost", page(Visitor::Lost, Room::Open)),
    ]
}

/// Attributes `name="value"` of the markup between the style sheet and the data.
fn markup(html: &str) -> &str {
    let from = html.find("</style>").unwrap();
    &html[from..html.find("<script type=\"application/json\"").unwrap()]
}

#[test]
fn every_scene_shows_its_section_and_no_other() {
    for (scene, page) in scenes() {
        assert_eq!(page.scene(), scene);
        let html = page.render();
        let shown: Vec<&str> = markup(&html)
            .split("<section data-scene=\"")
            .skip(1)
            .filter(|s| !s.split('>').next().unwrap().ends_with(" hidden"))
            .map(|s| s.split('"').next().unwrap())
            .collect();
        assert_eq!(shown, [scene]);
        assert!(html.contains(&format!("<body class=\"wr-page\" data-scene=\"{scene}\">")));
        assert!(!html.contains("<title> –"), "{scene} has a title");
        assert!(!markup(&html).contains("{{"), "{scene}");
    }
}

#[test]
fn the_page_needs_nothing_from_anywhere_and_runs_nothing_but_its_script() {
    for (scene, page) in scenes() {
        let html = page.render();
        for foreign in ["http:", "https:", "//cdn", "@import", "url(", "src=", "<iframe", "<img"] {
            assert!(!html.contains(foreign), "{foreign} in {scene}");
        }
        assert_eq!(html.matches("<link").count(), html.matches("<link rel=\"icon\" href=\"data:,\">").count());
        assert_eq!((html.matches("<style").count(), html.matches("<script").count()), (1, 2));
        assert_eq!(html.matches("nonce=\"bm9uY2U\"").count(), 2);
        assert_eq!((html.matches("</style").count(), html.matches("</script").count()), (1, 2));
        let tags = markup(&html).split('<').filter_map(|t| t.split('>').next());
        for tag in tags {
            assert!(!tag.contains(" on") && !tag.contains("javascript:") && !tag.contains("style="), "<{tag}>");
        }
    }
}

#[test]
fn any_text_stays_text() {
    let nasty = "</script></style><img src=x onerror=alert(1)>\"'&{{css}}\0\u{2028}";
    let mut page = WaitPage {
        sale: nasty,
        title: nasty,
        brand: Some(nasty),
        commitment: Some(nasty),
        nonce: nasty,
        custom_css: Some("</style><script>alert(1)</script>"),
        ..page(Visitor::Holding(Ticket { id: nasty, ..ticket(TicketState::Waiting) }), Room::Open)
    };
    let html = page.render();
    assert_eq!((html.matches("</style>").count(), html.matches("</script>").count()), (1, 2));
    assert!(!html.contains("<img") && !html.contains('\0'));
    assert!(html.contains("&lt;/script&gt;") && html.contains("{{css}}"));
    let data = html.split("id=\"wr-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["title"], &data["ticket"]["ticket"]), (&json!(nasty), &json!(nasty)));
    for url in ["javascript:alert(1)", "//evil.example/", "/\\evil.example", "/\t/evil.example", "data:text/html,x", ""]
    {
        page.return_url = Some(url);
        assert_eq!(page.data()["return_url"], Value::Null, "{url:?}");
        assert!(!page.render().contains("name=\"return_url\""), "{url:?}");
    }
}

#[test]
fn the_shop_gets_the_pass_once_and_where_parameters_go() {
    let back = |url| way_back(url, "a.b+c");
    assert_eq!(back("/").as_deref(), Some("/?waiting_room_pass=a.b%2Bc"));
    assert_eq!(back("/x?a=1#part").as_deref(), Some("/x?a=1&waiting_room_pass=a.b%2Bc#part"));
    assert_eq!(back("/?waiting_room_pass=old&a=1").as_deref(), Some("/?a=1&waiting_room_pass=a.b%2Bc"));
    assert_eq!(back("https://shop.example").as_deref(), Some("https://shop.example?waiting_room_pass=a.b%2Bc"));
    assert_eq!(back("javascript:x"), None);
    assert_eq!(back("https://user@evil.example/"), None);
}

#[test]
fn the_policy_names_the_shop_that_a_form_ends_at() {
    let mut page = holding(TicketState::Turn, Room::Open);
    assert!(page.policy().contains("form-action 'self';"));
    page.return_url = Some("https://shop.example:8443/chairs?x");
    assert!(page.policy().contains("form-action 'self' https://shop.example:8443;"));
    page.return_url = Some("https://shop.example;script-src *");
    assert!(page.policy().contains("form-action 'self';"));
}

#[test]
fn a_page_without_script_looks_again_at_the_pace_of_the_server() {
    let refresh = |page: &WaitPage<'_>| {
        let html = page.render();
        let at = html.find("http-equiv=\"refresh\" content=\"")? + 30;
        html[at..].split('"').next().map(str::to_owned)
    };
    let url = "url=/wait/drop%201%2F%C3%A9?return_url=%2Fchairs%3Fx%3D1%26y%3D2";
    assert_eq!(refresh(&holding(TicketState::Waiting, Room::Open)), Some(format!("8; {url}")));
    assert_eq!(refresh(&holding(TicketState::Turn, Room::Open)), Some(format!("10; {url}")));
    assert_eq!(refresh(&holding(TicketState::Waiting, Room::SoldOut)), Some(format!("30; {url}")));
    assert_eq!(refresh(&holding(TicketState::Left, Room::Open)), None);
    assert_eq!(refresh(&page(Visitor::New, Room::Open)), None);
}

#[test]
fn what_is_said_is_true() {
    let mut page = holding(TicketState::Waiting, Room::Open);
    let html = page.render();
    assert!(html.contains(">1,234<") && html.contains(">58,211<") && html.contains("about 5–9 minutes"));
    assert!(html.contains("<title>1,234 in line – The Winter Chair</title>"));
    assert!(html.contains("data-if=\"likely_gone\" hidden"));
    page.visitor = Visitor::Holding(Ticket { eta: None, likely_gone: true, ..ticket(TicketState::Waiting) });
    let html = page.render();
    assert!(html.contains("data-slot=\"eta\">unknown yet<"));
    assert!(html.contains("data-if=\"likely_gone\">"));
    page.commitment = None;
    assert!(page.render().contains("<details class=\"wr-how\" data-if=\"draw\" hidden>"));
    page.trouble = Some(Trouble::NotYet);
    assert!(page.render().contains("role=\"alert\">It is not quite your turn yet."));
}

#[test]
fn ranges_are_as_wide_as_they_are_uncertain() {
    let said = [
        (10, 59),
        (20, 60),
        (40, 61),
        (310, 520),
        (480, 480),
        (1300, 1900),
        (3000, 5400),
        (3000, 5401),
        (7200, 14_000),
    ];
    let said = said.map(|(p50, p90)| range(p50, p90));
    let wanted = [
        "less than a minute",
        "about a minute",
        "about 1–2 minutes",
        "about 5–9 minutes",
        "about 8 minutes",
        "about 20–35 minutes",
        "about 50–90 minutes",
        "about 1–2 hours",
        "about 2–4 hours",
    ];
    assert_eq!(said, wanted);
    assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([-5, 1, 60_000, 3_599_001, 90_061_000].map(count), ["0:00", "0:01", "1:00", "1:00:00", "1 d 1 h"]);
}

#[test]
fn moments_are_told_in_utc() {
    assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(rfc3339(951_782_400_123), "2000-02-29T00:00:00.123Z");
    assert_eq!(day_and_time(NOW), "29 November, 19:00 UTC");
    assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
}

#[test]
fn the_script_finds_every_word_and_every_part_that_it_uses() {
    let used = JS.split("words.").skip(1).filter_map(|r| r.split(|c: char| !c.is_ascii_lowercase() && c != '_').next());
    for name in used {
        assert!(!word(name).is_empty() && !word(name).contains('&'), "{name}");
    }
    for id in ["wr-live", "wr-trouble", "wr-words", "wr-data"] {
        assert!(TEMPLATE.contains(&format!("id=\"{id}\"")) && JS.contains(id), "{id}");
    }
    assert!(!JS.contains("</") && !CSS.contains("</"));
}
