//! A browser for the tests of pages: found, or installed where we may. Without one, those tests are skipped and say so.

use crate::steps::{Steps, works};
use crate::tools;
use std::process::Command;

/// Debian's packages: the browser, what drives it, and letters to show.
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];

/// Looks for one, and installs it where that is harmless.
pub(crate) fn ensure(steps: &mut Steps) {
    if is_here() {
        return;
    }
    let how = format!("no chromedriver here (Debian, Ubuntu: apt-get install {})", PACKAGES.join(" "));
    if !tools::may_install() {
        return steps.skip("tests in a browser", &how);
    }
    if let Err(failed) = tools::install(steps, &PACKAGES) {
        // Pages can be tested elsewhere; everything else is tested here.
        steps.skip("tests in a browser", &format!("{how}: {}", failed.why));
    }
}

fn is_here() -> bool {
    works(Command::new("chromedriver").arg("--version"))
}
