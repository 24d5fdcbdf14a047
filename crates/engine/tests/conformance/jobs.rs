//! Scenarios: what becomes of refunds, voids and captures.

use crate::common::lab::Lab;
use crate::common::make::{
    authorized, canceled, captured, cart, payment, reference, refund_failed, refund_succeeded, refunded, refunded_by,
};
use holdfast_engine::domain::{
    Command, EntryKind, Job, JobKind, JobReason, JobReport, JobState, JobTurn, OrderStatus, Outcome, PaymentStatus,
    Refusal, Settlement,
};

async fn report(lab: &mut Lab, id: &str, kind: JobKind, turn: JobTurn) -> Result<Job, Refusal> {
    let report = JobReport { payment: payment(id), kind, turn };
    lab.ask(Command::Job(Box::new(report))).await.map(|outcome| match outcome {
        Outcome::Job(job) => job,
        other => panic!("{other:?}"),
    })
}

async fn take(lab: &mut Lab, id: &str, kind: JobKind) -> Job {
    report(lab, id, kind, JobTurn::Take { seconds: 30 }).await.unwrap()
}

/// A payment of an order that goes back, because nothing is left.
async fn late(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.release(hold.id).await.unwrap();
    lab.held(cart("O2", &[("A", 1)])).await;
    lab.pay(captured("pi_1").hold(hold.id).brings(100, "EUR")).await;
}

pub async fn a_job_is_taken_by_one_at_a_time(lab: &mut Lab) {
    late(lab).await;
    let due = lab.due("stripe").await;
    assert_eq!(due.len(), 1);
    let taken = take(lab, "pi_1", JobKind::Refund).await;
    assert_eq!((taken.state, taken.attempts, taken.reason), (JobState::Requested, 1, JobReason::StockGone));
    assert_eq!(lab.due("stripe").await, []);
    let second = report(lab, "pi_1", JobKind::Refund, JobTurn::Take { seconds: 30 }).await;
    assert_eq!(second, Err(Refusal::JobNotDue(JobState::Requested)));
    lab.wait(29);
    report(lab, "pi_1", JobKind::Refund, JobTurn::Keep { attempt: 1, seconds: 30 }).await.unwrap();
    lab.wait(29);
    assert_eq!(lab.due("stripe").await, [], "whoever took it is still about it");
    lab.wait(1);
    assert_eq!(lab.due("stripe").await.len(), 1, "whoever took it is gone");
    assert_eq!(take(lab, "pi_1", JobKind::Refund).await.attempts, 2);
    let stale = JobTurn::Failed { attempt: 1, error: "late".into() };
    assert_eq!(report(lab, "pi_1", JobKind::Refund, stale).await, Err(Refusal::JobNotDue(JobState::Requested)));
    let stale = JobTurn::Keep { attempt: 1, seconds: 30 };
    assert_eq!(report(lab, "pi_1", JobKind::Refund, stale).await, Err(Refusal::JobNotDue(JobState::Requested)));
    let other = report(lab, "pi_1", JobKind::Void, JobTurn::Done { attempt: 1, reference: None }).await;
    assert_eq!(other, Err(Refusal::JobNotDue(JobState::Requested)), "it is no void");
    assert_eq!(report(lab, "pi_9", JobKind::Refund, JobTurn::Retry).await, Err(Refusal::NotFound));
    assert_eq!(lab.count(EntryKind::RefundRequested).await, 1);
}

pub async fn a_refund_that_was_carried_out_ends_its_payment(lab: &mut Lab) {
    late(lab).await;
    take(lab, "pi_1", JobKind::Refund).await;
    let later = JobTurn::Later { attempt: 1, error: "busy".into(), seconds: 5 };
    let job = report(lab, "pi_1", JobKind::Refund, later).await.unwrap();
    assert_eq!((job.state, job.error.as_deref()), (JobState::Requested, Some("busy")));
    assert_eq!(lab.due("stripe").await, []);
    lab.wait(5);
    take(lab, "pi_1", JobKind::Refund).await;
    let done = JobTurn::Done { attempt: 2, reference: Some(reference("re_1")) };
    let job = report(lab, "pi_1", JobKind::Refund, done.clone()).await.unwrap();
    assert_eq!((job.state, job.error, job.reference), (JobState::Succeeded, None, Some(reference("re_1"))));
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    assert_eq!(lab.due("stripe").await, []);
    lab.wait(1000);
    let again = report(lab, "pi_1", JobKind::Refund, JobTurn::Take { seconds: 1 }).await;
    assert_eq!(again, Err(Refusal::JobNotDue(JobState::Succeeded)));
    let retry = report(lab, "pi_1", JobKind::Refund, JobTurn::Retry).await;
    assert_eq!(retry, Err(Refusal::JobNotDue(JobState::Succeeded)));
    let again = report(lab, "pi_1", JobKind::Refund, done).await;
    assert_eq!(again, Err(Refusal::JobNotDue(JobState::Succeeded)));
    assert_eq!(lab.pay(refunded("pi_1", 100)).await, Settlement::Duplicate, "the provider tells what we did");
    assert_eq!(lab.count(EntryKind::RefundSucceeded).await, 1);
}

pub async fn a_refund_for_a_person_is_tried_again_when_told(lab: &mut Lab) {
    late(lab).await;
    let key = take(lab, "pi_1", JobKind::Refund).await.idempotency_key;
    let failed = JobTurn::Failed { attempt: 1, error: "disputed".into() };
    let job = report(lab, "pi_1", JobKind::Refund, failed).await.unwrap();
    assert_eq!((job.state, job.error.as_deref()), (JobState::NeedsAttention, Some("disputed")));
    assert_eq!(lab.count(EntryKind::RefundNeedsAttention).await, 1);
    lab.wait(1000);
    assert_eq!(lab.due("stripe").await, []);
    let job = report(lab, "pi_1", JobKind::Refund, JobTurn::Retry).await.unwrap();
    assert_eq!((job.state, job.idempotency_key), (JobState::Due, key), "nothing was done under the key");
    assert_eq!(lab.due("stripe").await.len(), 1);
}

pub async fn a_refund_that_failed_at_the_bank_gets_another_key(lab: &mut Lab) {
    late(lab).await;
    let key = take(lab, "pi_1", JobKind::Refund).await.idempotency_key;
    let accepted = JobTurn::Accepted { attempt: 1, reference: Some(reference("re_1")), seconds: 600 };
    assert_eq!(report(lab, "pi_1", JobKind::Refund, accepted).await.unwrap().state, JobState::Requested);
    lab.pay(refunded("pi_1", 100)).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing, "it is not through yet");
    lab.pay(refund_succeeded("pi_1", "re_1")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    lab.pay(refund_failed("pi_1", "re_1")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing, "the shopper has nothing");
    for late in [refunded("pi_1", 100).event("late"), refund_succeeded("pi_1", "re_1").event("later")] {
        lab.pay(late).await;
        assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing);
    }
    let job = report(lab, "pi_1", JobKind::Refund, JobTurn::Retry).await.unwrap();
    assert_eq!((job.state, &*job.idempotency_key), (JobState::Due, &*format!("{key}~2")));
    take(lab, "pi_1", JobKind::Refund).await;
    lab.pay(refunded("pi_1", 100).event("much later")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing, "that was the refund that failed");
    let stale = JobTurn::Done { attempt: 1, reference: None };
    assert_eq!(report(lab, "pi_1", JobKind::Refund, stale).await, Err(Refusal::JobNotDue(JobState::Requested)));
    report(lab, "pi_1", JobKind::Refund, JobTurn::Done { attempt: 2, reference: None }).await.unwrap();
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Refunded);
    lab.pay(refund_failed("pi_1", "re_1").event("again")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing, "a refund of an unknown name may be ours");
}

pub async fn a_capture_that_was_carried_out_settles_once(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    take(lab, "pi_1", JobKind::Capture).await;
    report(lab, "pi_1", JobKind::Capture, JobTurn::Done { attempt: 1, reference: None }).await.unwrap();
    assert!(lab.payment("pi_1").await.captured);
    assert_eq!(lab.pay(captured("pi_1").brings(100, "EUR")).await, Settlement::Duplicate);
    assert_eq!(lab.counts("A").await, (0, 0, 1));
    assert_eq!(lab.count(EntryKind::PaymentCaptured).await, 1);
    let all = lab.everything().await;
    assert_eq!((all.captures[0].state, all.refunds.len()), (JobState::Succeeded, 0));
}

pub async fn a_capture_that_failed_ends_its_order(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    assert_eq!(lab.counts("A").await, (0, 0, 1));
    take(lab, "pi_1", JobKind::Capture).await;
    let failed = JobTurn::Failed { attempt: 1, error: "expired".into() };
    let job = report(lab, "pi_1", JobKind::Capture, failed).await.unwrap();
    assert_eq!(job.state, JobState::NeedsAttention);
    assert_eq!(lab.counts("A").await, (1, 0, 0), "its units are for others");
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::CaptureFailed);
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing);
    let all = lab.everything().await;
    assert_eq!((all.refunds[0].kind, all.refunds[0].reason), (JobKind::Void, JobReason::CaptureFailed));
    assert_eq!(
        report(lab, "pi_1", JobKind::Capture, JobTurn::Retry).await,
        Err(Refusal::JobNotDue(JobState::NeedsAttention)),
        "the order has ended"
    );
    take(lab, "pi_1", JobKind::Void).await;
    report(lab, "pi_1", JobKind::Void, JobTurn::Done { attempt: 1, reference: None }).await.unwrap();
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Voided);
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::CaptureFailed);
}

pub async fn a_capture_that_came_although_it_failed_goes_back(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    take(lab, "pi_1", JobKind::Capture).await;
    report(lab, "pi_1", JobKind::Capture, JobTurn::Failed { attempt: 1, error: "?".into() }).await.unwrap();
    let told = lab.pay(captured("pi_1").brings(100, "EUR")).await;
    assert_eq!(told, Settlement::Reversal { kind: JobKind::Refund, reason: JobReason::CaptureFailed });
    lab.pay(canceled("pi_1")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Reversing, "money that came is not let go");
}

pub async fn notes_are_written_by_whoever_read_them_last(lab: &mut Lab) {
    let engine = lab.engine.clone();
    assert_eq!(engine.note("sink/a").await, Ok(None));
    assert_eq!(engine.put_note("sink/a", 1, Some("x")).await, Ok(false), "there is none to be changed");
    assert_eq!(engine.put_note("sink/a", 0, Some("one ä")).await, Ok(true));
    assert_eq!(engine.put_note("sink/a", 0, Some("two")).await, Ok(false));
    assert_eq!(engine.put_note("sink/a", 1, Some("two")).await, Ok(true));
    let note = engine.note("sink/a").await.unwrap().unwrap();
    assert_eq!((note.version, note.text.as_str()), (2, "two"));
    for name in ["sink/", "sink/B", "sink0", "sinj", "sink/ä"] {
        assert_eq!(engine.put_note(name, 0, Some(name)).await, Ok(true));
    }
    let named =
        |found: Vec<(String, holdfast_engine::Note)>| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(named(engine.notes("sink/", None, 10).await.unwrap()), ["sink/B", "sink/a", "sink/ä"]);
    assert_eq!(named(engine.notes("sink/", Some("sink/B"), 1).await.unwrap()), ["sink/a"]);
    assert_eq!(named(engine.notes("sink/", Some("a"), 1).await.unwrap()), ["sink/B"]);
    assert_eq!(engine.put_note("sink/a", 1, None).await, Ok(false));
    assert_eq!(engine.put_note("sink/a", 2, None).await, Ok(true));
    assert_eq!(engine.note("sink/a").await, Ok(None));
}

pub async fn what_somebody_gave_back_by_hand_is_not_given_back_again(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.release(hold.id).await.unwrap();
    lab.held(cart("O2", &[("A", 1)])).await;
    lab.pay(refunded("pi_1", 40).order("O1")).await;
    lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    let job = take(lab, "pi_1", JobKind::Refund).await;
    assert_eq!(job.money.amount, Some(60));
    report(lab, "pi_1", JobKind::Refund, JobTurn::Done { attempt: 1, reference: None }).await.unwrap();
    let payment = lab.payment("pi_1").await;
    assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, 100));
}

pub async fn a_void_that_was_refused_waits_for_a_person(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.release(hold.id).await.unwrap();
    lab.held(cart("O2", &[("A", 1)])).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    take(lab, "pi_1", JobKind::Void).await;
    let accepted = JobTurn::Accepted { attempt: 1, reference: Some(reference("psp_2")), seconds: 60 };
    report(lab, "pi_1", JobKind::Void, accepted).await.unwrap();
    lab.pay(refund_failed("pi_1", "psp_2")).await;
    let all = lab.everything().await;
    assert_eq!((all.refunds[0].kind, all.refunds[0].state), (JobKind::Void, JobState::NeedsAttention));
    // The provider tells that it had captured the money by then.
    lab.pay(captured("pi_1").brings(100, "EUR")).await;
    let all = lab.everything().await;
    assert_eq!((all.refunds[0].kind, all.refunds[0].state), (JobKind::Refund, JobState::Due));
}

pub async fn money_that_comes_of_what_was_let_go_goes_back(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    let hold = lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.release(hold.id).await.unwrap();
    lab.held(cart("O2", &[("A", 1)])).await;
    lab.pay(authorized("pi_1").order("O1").brings(100, "EUR")).await;
    lab.pay(canceled("pi_1")).await;
    assert_eq!(lab.payment_status("pi_1").await, PaymentStatus::Voided);
    let told = lab.pay(captured("pi_1").brings(100, "EUR")).await;
    assert_eq!(told, Settlement::Reversal { kind: JobKind::Refund, reason: JobReason::StockGone });
    lab.pay(authorized("pi_2").order("O3").brings(100, "EUR")).await;
    lab.pay(canceled("pi_2")).await;
    lab.pay(captured("pi_2").brings(100, "EUR")).await;
    assert_eq!(lab.payment_status("pi_2").await, PaymentStatus::Unmatched, "its order may still come");
}

pub async fn a_refund_of_somebody_else_that_fails_counts_no_more(lab: &mut Lab) {
    lab.stocked("A", 1).await;
    lab.held(cart("O1", &[("A", 1)]).costs(100, "EUR")).await;
    lab.pay(captured("pi_1").order("O1").brings(100, "EUR")).await;
    for round in 0..3 {
        lab.pay(refunded_by("pi_1", 40).event(&format!("by {round}"))).await;
        assert_eq!(lab.payment("pi_1").await.refunded, 40);
        lab.pay(refund_failed("pi_1", "re").brings(40, "EUR").event(&format!("failed {round}"))).await;
        assert_eq!(lab.payment("pi_1").await.refunded, 0);
    }
    assert_eq!(lab.order("O1").await.unwrap().status, OrderStatus::Confirmed);
}
