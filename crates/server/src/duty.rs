//! Who of several nodes does a chore. With lock nodes, the one that has its lease; without them, each of them.
//!
//! Never more than that: every chore may be done by any number of nodes at once, so a lease that is lost too late costs
//! work done twice and nothing else.

use holdfast_engine::lease::{Guard, LeaseError, LeaseSettings, Leases};
use std::time::Duration;

/// A node that dies is replaced after this time.
const TTL: Duration = Duration::from_secs(5);

/// The leases on the chores of one deployment.
#[derive(Clone)]
pub(crate) struct Duties(Option<(Leases, String)>);

/// One chore, as this node sees it.
pub(crate) struct Duty {
    leases: Option<Leases>,
    resource: String,
    guard: Option<Guard>,
    /// The lock nodes cannot tell: everybody does it then.
    is_open: bool,
}

impl Duties {
    /// `scope` tells deployments apart that use the same lock nodes.
    ///
    /// # Errors
    /// In words, when a lock node cannot be one.
    pub(crate) fn new(lock_nodes: &[String], scope: &str) -> Result<Self, String> {
        if lock_nodes.is_empty() {
            return Ok(Self(None));
        }
        let leases = Leases::new(lock_nodes, LeaseSettings::default()).map_err(|error| error.to_string())?;
        Ok(Self(Some((leases, scope.to_owned()))))
    }

    pub(crate) fn duty(&self, chore: &str) -> Duty {
        let scope = self.0.as_ref().map(|(_, scope)| scope.as_str()).unwrap_or_default();
        Duty {
            leases: self.0.as_ref().map(|(leases, _)| leases.clone()),
            resource: format!("{scope}/{chore}"),
            guard: None,
            is_open: false,
        }
    }
}

impl Duty {
    /// Whether this node does it now.
    pub(crate) async fn is_ours(&mut self) -> bool {
        let Some(leases) = &self.leases else { return true };
        if self.guard.as_ref().is_some_and(|guard| !guard.is_lost()) {
            return true;
        }
        if self.guard.take().is_some() {
            tracing::info!(chore = self.resource, "another node may do this from now on");
        }
        let was_open = std::mem::take(&mut self.is_open);
        match leases.acquire(&self.resource, TTL, Duration::ZERO).await {
            Ok(guard) => {
                tracing::info!(chore = self.resource, fence = guard.fence(), "this node does this for all");
                self.guard = Some(guard);
            }
            Err(LeaseError::Busy) => {}
            Err(why) => {
                if !was_open {
                    tracing::warn!(chore = self.resource, %why, "the lock nodes cannot say who does this, so all do");
                }
                self.is_open = true;
            }
        }
        self.guard.is_some() || self.is_open
    }
}
