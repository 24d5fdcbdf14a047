//! URLs, and what is told of them.

use super::super::NetConfig;

#[test]
fn urls_are_read() {
    for (url, shown) in [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://a:s3cret@10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
        ("rediss://:s3cret@[::1]:7000", "rediss://[::1]:7000/0"),
        ("rediss://:s3c@/ret@h/", "rediss://h:6379/0"),
        ("redis+cluster://a:s3cret@h:1,i:2", "redis+cluster://h:1,i:2"),
        ("rediss+cluster://h", "rediss+cluster://h:6379"),
    ] {
        let config = NetConfig::parse(url).unwrap();
        assert_eq!(config.to_string(), shown);
        let debug = format!("{config:?}");
        assert!(!debug.contains("s3c") && debug.contains(shown), "{debug}");
    }
    let config = NetConfig::parse("redis://us%3Aer:p%40%25ss@h").unwrap();
    assert_eq!((config.user.as_deref(), config.password.as_deref()), (Some("us:er"), Some("p@%ss")));
}

#[test]
fn what_is_wrong_is_told_without_the_password() {
    for url in [
        "http://a:s3cret@h",
        "a:s3cret@h",
        "redis://a:s3cret@",
        "redis://a:s3cret@h:port",
        "redis://a:s3cret@h:0",
        "redis://a:s3cret@h:70000",
        "redis://a:s3cret@h/db",
        "redis://a:s3cret@h?x=1",
        "redis://a:s3cret@h#insecure",
        "redis://a:s3cret%@h",
        "redis://a:s3cret%f@h",
        "redis://a:s3cret%ff@h",
        "redis://a:s3cret@h,i",
        "redis://s3cret@h",
        "redis://a:@h",
        "redis://a:s3cret@[::1:7",
        "redis://a:s3cret@::1",
        "redis+cluster://a:s3cret@h/1",
        "redis+cluster://a:s3cret@h,,i",
        "",
    ] {
        let why = NetConfig::parse(url).unwrap_err();
        assert!(!why.contains("s3cret") && why.len() > 40, "{url}: {why}");
    }
}
