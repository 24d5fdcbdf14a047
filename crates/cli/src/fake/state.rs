//! One provider's state behind one lock, and how a call is carried out on it. Must never let a call see half of
//! another.

use super::books::Books;
use super::courier::Courier;
use super::error::Refused;
use super::form::Form;
use super::keys::{Answer, Keys};
use super::objects::RefundStatus;
use super::script::{Ending, Fault, Operation, Script};
use holdfast_engine::clock::{monotonic, wall};
use parking_lot::Mutex;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A call, read and not yet carried out.
pub(super) struct Call {
    pub(super) operation: Operation,
    /// The object in the path.
    pub(super) id: String,
    pub(super) form: Form,
    /// The idempotency key, where the operation has one.
    pub(super) key: Option<String>,
    /// What tells this request from another under the same key.
    pub(super) print: String,
}

/// What goes back.
pub(super) enum Reply {
    Answer {
        answer: Answer,
        is_replayed: bool,
        after: Duration,
    },
    Refused(Refused),
    /// The connection closes.
    Lost,
}

/// Everything that a call may change.
pub(super) struct State {
    pub(super) books: Books,
    pub(super) keys: Keys,
    pub(super) script: Script,
    pub(super) courier: Courier,
    pub(super) down_until: Option<Instant>,
}

/// What all tasks share.
pub(super) struct Inner {
    pub(super) state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

impl Inner {
    pub(super) fn new(state: State) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), tasks: Mutex::new(JoinSet::new()) })
    }

    /// Runs a task until it ends or the provider goes away.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends everything that was spawned.
    pub(super) fn stop(&self) {
        self.tasks.lock().abort_all();
    }

    /// Answers a call, or says how it is lost.
    pub(super) fn call(self: &Arc<Self>, call: Call, request: &str) -> Reply {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.books.now = wall().millis() / 1000;
        if state.down_until.is_some_and(|until| monotonic() < until) {
            return Reply::Lost;
        }
        let kept = match call.key.as_ref().map_or(Ok(None), |key| state.keys.find(key, &call.print)) {
            Ok(kept) => kept,
            Err(refused) => return Reply::Refused(refused),
        };
        let fault = state.script.for_call(call.operation, kept.is_some(), &mut state.books.random);
        match fault {
            Some(Fault::Down { seconds }) => {
                state.down_until = Some(monotonic() + Duration::from_secs(seconds));
                return Reply::Lost;
            }
            Some(Fault::LostBefore) => return Reply::Lost,
            Some(Fault::RateLimited { seconds }) => return Reply::Refused(Refused::rate_limited(seconds)),
            _ => {}
        }
        let after = match fault {
            Some(Fault::Slow { ms }) => Duration::from_millis(ms),
            _ => Duration::ZERO,
        };
        let is_replayed = kept.is_some();
        let answer = match kept {
            Some(answer) => answer,
            None => match self.first(state, call, fault.as_ref(), request, after) {
                Ok(answer) => answer,
                Err(refused) => return Reply::Refused(refused),
            },
        };
        if fault == Some(Fault::LostAfter) { Reply::Lost } else { Reply::Answer { answer, is_replayed, after } }
    }

    /// Carries a call out for the first time and keeps its answer.
    fn first(
        self: &Arc<Self>,
        state: &mut State,
        call: Call,
        fault: Option<&Fault>,
        request: &str,
        after: Duration,
    ) -> Result<Answer, Refused> {
        let (key, print) = (call.key.clone(), call.print.clone());
        let done = state.carry_out(call, fault);
        if let Ok(view) = &done {
            self.plan(view["id"].as_str().unwrap_or_default(), fault);
        }
        state.publish(self, Some(request), key.as_deref());
        let answer = match &done {
            Ok(view) => Answer { status: 200, body: view.to_string(), request: request.to_owned() },
            Err(refused) if refused.is_kept => {
                Answer { status: refused.status, body: refused.body(request).to_string(), request: request.to_owned() }
            }
            Err(refused) => return Err(refused.clone()),
        };
        if let Some(key) = key {
            state.keys.keep(&key, print, answer.clone(), after);
        }
        Ok(answer)
    }

    /// What is to become of a refund later.
    fn plan(self: &Arc<Self>, refund: &str, fault: Option<&Fault>) {
        let (ms, status, reason) = match fault {
            Some(Fault::RefundPending { ms, then: Some(Ending::Succeeded) }) => (*ms, RefundStatus::Succeeded, None),
            Some(Fault::RefundPending { ms, then: Some(Ending::Failed) }) => (*ms, RefundStatus::Failed, None),
            Some(Fault::RefundFailsLater { ms, reason }) => (*ms, RefundStatus::Failed, reason.clone()),
            _ => return,
        };
        let (inner, refund) = (self.clone(), refund.to_owned());
        self.spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            // Whoever settled it by hand meanwhile was first.
            let _ = inner.change(|books| books.settle_refund(&refund, status, reason.as_deref()));
        });
    }

    /// Something happens that no call of the merchant's caused.
    pub(super) fn change(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Books) -> Result<Value, Refused>,
    ) -> Result<Value, Refused> {
        let mut state = self.state.lock();
        state.books.now = wall().millis() / 1000;
        let done = act(&mut state.books);
        state.publish(self, None, None);
        done
    }
}

impl State {
    pub(super) fn new(books: Books, script: Script, courier: Courier) -> Self {
        Self { books, keys: Keys::default(), script, courier, down_until: None }
    }

    /// Forgets everything that was made.
    pub(super) fn forget(&mut self) {
        self.books.clear();
        self.keys.clear();
        self.courier.clear();
    }

    fn carry_out(&mut self, call: Call, fault: Option<&Fault>) -> Result<Value, Refused> {
        match fault {
            Some(Fault::Error) => return Err(Refused::failure()),
            Some(Fault::Refuse { code }) => return Err(Refused::by_code(code).unwrap_or_else(Refused::failure)),
            _ => {}
        }
        let decline = (fault == Some(&Fault::Decline)).then_some("generic_decline");
        let is_pending = matches!(fault, Some(Fault::RefundPending { .. }));
        let refund = if is_pending { RefundStatus::Pending } else { RefundStatus::Succeeded };
        let Call { operation, id, form, .. } = call;
        let books = &mut self.books;
        let view = match operation {
            Operation::Create => books.create_intent(form, decline),
            Operation::Retrieve => books.retrieve_intent(&id, form),
            Operation::Confirm => books.confirm(&id, form, decline),
            Operation::Capture => books.capture(&id, form),
            Operation::Cancel => books.cancel(&id, form),
            Operation::CreateSession => books.create_session(form),
            Operation::RetrieveSession => books.retrieve_session(&id, form),
            Operation::Expire => books.expire_session(&id, form),
            Operation::Refund => books.create_refund(form, refund),
            Operation::RetrieveRefund => books.retrieve_refund(&id, form),
            Operation::ListRefunds => books.list_refunds(form),
            // No path leads here: these two are for scripts only.
            Operation::Any | Operation::Webhook => Err(Refused::failure()),
        }?;
        if fault == Some(&Fault::ErrorAfter) { Err(Refused::failure()) } else { Ok(view) }
    }
}
