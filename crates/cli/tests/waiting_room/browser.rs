//! A real browser, driven as the W3C WebDriver standard says, over the tests' own HTTP client.
//!
//! ```text
//! let Some(driver) = Driver::start() else { return };
//! let page = driver.open(&Look::phone().dark());
//! page.go(&site.url("/wait/drop?return_url=/"));
//! page.sees("h1", "You are in line");
//! page.click("[data-action=claim] button");
//! ```
//!
//! Whatever looks for something waits until it is there, up to [`PATIENCE`], and then fails with what was there.

use crate::support::client::{Answer, Connection};
use crate::support::{eventually, skipped};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The most time for a page to become what a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The member of JSON that holds an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A running `chromedriver`. The last of it and its browsers to be dropped ends it, and with it all that it started.
struct Process {
    child: Child,
    port: u16,
    /// Where all of them keep their files; it goes with them.
    _folder: TempDir,
}

impl Process {
    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost:{}\r\n", self.port);
        let rest = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut connection = Connection::open(self.port);
        connection.send(format!("{head}{rest}").as_bytes());
        connection.answer()
    }

    #[track_caller]
    fn value(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.call(method, path, body);
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        answer.json()["value"].take()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Opens browsers.
pub struct Driver(Arc<Process>);

impl Driver {
    /// `None`, and a line that says so, where there is no `chromedriver`.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("chromedriver");
        command.env("TMPDIR", folder.path());
        command.arg("--port=0").process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            skipped("no chromedriver here (Debian: chromium, chromium-driver, fonts-dejavu-core)");
            return None;
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Process { child, port: 0, _folder: folder };
        let started = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        process.port = started.expect("chromedriver tells its port");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Some(Self(Arc::new(process)))
    }

    /// A new browser with no history, no cookies and this look.
    pub fn open(&self, look: &Look) -> Browser {
        let args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let mut options = json!({"args": args});
        if !look.script {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
        }}});
        let session = self.0.value("POST", "/session", Some(&wanted));
        let path = format!("/session/{}", session["sessionId"].as_str().unwrap());
        let browser = Browser { process: self.0.clone(), path };
        browser.size(look.width, look.height, look.width < 600);
        let feature = |name: &str, value: &str| json!({"name": name, "value": value});
        let scheme = feature("prefers-color-scheme", if look.dark { "dark" } else { "light" });
        let motion = feature("prefers-reduced-motion", if look.still { "reduce" } else { "no-preference" });
        browser.cdp("Emulation.setEmulatedMedia", &json!({"features": [scheme, motion]}));
        browser.cdp("Emulation.setTimezoneOverride", &json!({"timezoneId": "Europe/Zurich"}));
        browser
    }
}

/// How a shopper looks at pages.
#[derive(Debug, Clone)]
pub struct Look {
    width: u32,
    height: u32,
    dark: bool,
    still: bool,
    script: bool,
}

impl Look {
    pub fn desktop() -> Self {
        Self { width: 1280, height: 860, dark: false, still: false, script: true }
    }

    /// A small phone: 360 pixels wide.
    pub fn phone() -> Self {
        Self { width: 360, height: 740, ..Self::desktop() }
    }

    pub fn dark(self) -> Self {
        Self { dark: true, ..self }
    }

    /// Prefers reduced motion.
    pub fn still(self) -> Self {
        Self { still: true, ..self }
    }

    /// Without JavaScript. The test's own [`Browser::run`] works all the same.
    pub fn without_script(self) -> Self {
        Self { script: false, ..self }
    }
}

/// One browser with one window. Dropping it closes it.
pub struct Browser {
    process: Arc<Process>,
    path: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.process.call("DELETE", &self.path, None);
        }
    }
}

impl Browser {
    #[track_caller]
    fn get(&self, path: &str) -> Value {
        self.process.value("GET", &format!("{}{path}", self.path), None)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.process.value("POST", &format!("{}{path}", self.path), Some(body))
    }

    /// Goes to an address and waits until the page is loaded.
    #[track_caller]
    pub fn go(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    pub fn url(&self) -> String {
        self.get("/url").as_str().unwrap().to_owned()
    }

    pub fn title(&self) -> String {
        self.get("/title").as_str().unwrap().to_owned()
    }

    /// The result of a function body in the page.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// A command of Chrome's own protocol.
    #[track_caller]
    pub fn cdp(&self, command: &str, params: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    pub fn size(&self, width: u32, height: u32, mobile: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.cdp("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// What can be seen of what matches, in order; nothing while the page is on its way to another.
    fn seen(&self, css: &str, what: &str) -> Vec<Value> {
        let script = format!(
            "const seen = (e) => e.getClientRects().length > 0 && e.checkVisibility({{visibilityProperty: true}});
            return [...document.querySelectorAll(arguments[0])].filter(seen).map((e) => {what});"
        );
        let body = json!({"script": script, "args": [css]});
        let answer = self.process.call("POST", &format!("{}/execute/sync", self.path), Some(&body));
        match answer.json()["value"].take() {
            Value::Array(seen) => seen,
            _ => Vec::new(),
        }
    }

    /// Whether something that matches can be seen at this moment.
    pub fn shows(&self, css: &str) -> bool {
        !self.seen(css, "1").is_empty()
    }

    /// The texts of what matches and can be seen at this moment, as they are rendered.
    pub fn texts(&self, css: &str) -> Vec<String> {
        let texts = self.seen(css, "e.innerText.trim()");
        texts.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect()
    }

    /// The text of the first that matches and can be seen, once there is one.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        eventually(&format!("{css} is seen"), PATIENCE, || self.texts(css).into_iter().next())
    }

    /// Waits until something that matches can be seen and contains the text.
    #[track_caller]
    pub fn sees(&self, css: &str, text: &str) {
        let mut last = Vec::new();
        for _ in 0..PATIENCE.as_millis() / 50 {
            last = self.texts(css);
            if last.iter().any(|t| t.contains(text)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{css} does not show {text:?} but {last:?} at {}", self.url());
    }

    /// Waits until nothing that matches can be seen.
    #[track_caller]
    pub fn misses(&self, css: &str) {
        eventually(&format!("{css} is gone"), PATIENCE, || (!self.shows(css)).then_some(()));
    }

    /// Waits until the script's result is true.
    #[track_caller]
    pub fn until(&self, script: &str) {
        eventually(script, PATIENCE, || (self.run(script) == true).then_some(()));
    }

    /// Clicks the first that matches and can be seen, as a pointer would: where it is, if nothing lies on it.
    #[track_caller]
    pub fn click(&self, css: &str) {
        let element = eventually(&format!("{css} is seen"), PATIENCE, || self.seen(css, "e").into_iter().next());
        let id = element[ELEMENT].as_str().unwrap();
        self.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses and lets go a key: a character, or one of the standard's private ones such as [`TAB`].
    pub fn press(&self, key: char) {
        let key = key.to_string();
        let keys = json!([{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]);
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": keys}]}));
    }

    /// The element with the focus: its tag and its text.
    pub fn focused(&self) -> String {
        let script = "const e = document.activeElement; return e.localName + ': ' + e.textContent.trim();";
        self.run(script).as_str().unwrap().to_owned()
    }

    /// A picture of the whole page in the folder of the tests' own files.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let size = &self.cdp("Page.getLayoutMetrics", &json!({}))["cssContentSize"];
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let shot = self.cdp("Page.captureScreenshot", &shot);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waiting_room");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.png"));
        std::fs::write(&file, STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()).unwrap();
        file
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        match self.post("/se/log", &json!({"type": kind})) {
            Value::Array(entries) => entries,
            other => panic!("{other} is no log"),
        }
    }

    /// The addresses of everything that was requested since the last look.
    pub fn requests(&self) -> Vec<String> {
        let url = |entry: &Value| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let event = &event["message"];
            let is_request = event["method"] == "Network.requestWillBeSent";
            is_request.then(|| event["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        self.log("performance").iter().filter_map(url).collect()
    }

    /// Errors and warnings of the console since the last look: of scripts, of the network, of broken policies.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.log("browser").into_iter().filter(|e| e["level"] == "SEVERE" || e["level"] == "WARNING");
        entries.map(|e| e["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// The key that moves the focus.
pub const TAB: char = '\u{e004}';
/// The key that presses what has the focus.
pub const ENTER: char = '\u{e007}';
