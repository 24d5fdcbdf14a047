//! Holds whose order and SKUs live in several partitions: put together part by part, under the rule that a cart counts
//! from the moment on at which its home says so.
//!
//! *Open* at the home of the order, *take* the parts in order of partition, *seal* at home, *fix* the parts, *complete* at
//! home; only then it is answered. What was taken and not sealed is given back; what was sealed is made whole, or undone
//! if a part is gone. Whoever finds a cart that was left half-way does the same (`recover.rs`).

use super::core::{Core, Done, unreadable};
use super::holds::{Logged, Open, Verdict, cart_text, made, read_no, rest_text};
use super::script::{Call, Reply};
use crate::EngineError;
use futures_util::future::try_join_all;
use holdfast_domain::{Hold, HoldId, HoldRequest, Lines, Outcome, Refusal, Short, Sku, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A cart on its way.
struct Cart {
    open: Open,
    home: u32,
    parts: Vec<u32>,
    /// Where parts of it were taken.
    taken: Vec<u32>,
    hold: Option<Hold>,
    verdict: Option<Verdict>,
}

impl Cart {
    fn id(&self) -> HoldId {
        self.open.1
    }

    fn asked(&self) -> &HoldRequest {
        &self.open.2
    }

    fn is_open(&self) -> bool {
        self.verdict.is_none()
    }
}

type Replies = BTreeMap<usize, Reply>;

impl Core {
    pub(super) async fn hold_apart(
        &self,
        open: Vec<Open>,
        now: Option<Time>,
        logged: &mut Vec<Logged>,
    ) -> Result<Vec<(Open, Verdict)>, EngineError> {
        if self.partitions.all().any(|part| self.waiting(part) > self.backlog) {
            return Err(EngineError::Overloaded);
        }
        let mut done = Vec::with_capacity(open.len());
        if now.is_some() {
            // In order, to the letter.
            for one in open {
                done.extend(self.put_together(vec![one], now, logged).await?);
            }
            return Ok(done);
        }
        self.put_together(open, now, logged).await
    }

    async fn put_together(
        &self,
        open: Vec<Open>,
        now: Option<Time>,
        logged: &mut Vec<Logged>,
    ) -> Result<Vec<(Open, Verdict)>, EngineError> {
        let mut carts: Vec<Cart> = open.into_iter().map(|open| self.cart(open, now)).collect();
        self.open_carts(&mut carts, now).await?;
        self.take_parts(&mut carts, now).await?;
        self.give_back(&mut carts, now).await?;
        self.seal(&mut carts, now).await?;
        self.fix(&mut carts, now, logged).await?;
        self.complete(&mut carts, now).await?;
        let verdict = |cart: Cart| (cart.open, cart.verdict.unwrap_or(Verdict::Again));
        Ok(carts.into_iter().map(verdict).collect())
    }

    /// Each attempt has an id of its own.
    fn cart(&self, (at, _, asked): Open, now: Option<Time>) -> Cart {
        let home = self.partitions.of_order(&asked.order_id);
        let parts = self.partitions.of_lines(&asked.lines);
        let open = (at, self.fresh_id(now, home), asked);
        Cart { open, home, parts: parts.into_iter().collect(), taken: Vec::new(), hold: None, verdict: None }
    }

    /// Runs verbs for carts, all partitions at once; the answers by cart.
    async fn ask(
        &self,
        verbs: Vec<(usize, u32, &'static str, Vec<String>)>,
        now: Option<Time>,
        mut logged: Option<&mut Vec<Logged>>,
    ) -> Result<Vec<(usize, u32, Reply)>, EngineError> {
        let mut calls: BTreeMap<u32, (Vec<usize>, Call)> = BTreeMap::new();
        for (cart, part, verb, args) in verbs {
            let (carts, call) = calls.entry(part).or_default();
            carts.push(cart);
            call.verb(verb, args);
        }
        let run = |(part, (carts, call)): (u32, (Vec<usize>, Call))| async move {
            let Done { epoch, answers, seq, .. } = self.call(part, &call, now).await?;
            Ok::<_, EngineError>(((part, epoch, seq), carts, answers))
        };
        let mut replies = Vec::new();
        for (at, carts, answers) in try_join_all(calls.into_iter().map(run)).await? {
            if let Some(logged) = logged.as_deref_mut() {
                logged.push(at);
            }
            replies.extend(carts.into_iter().zip(answers).map(|(cart, reply)| (cart, at.0, reply)));
        }
        Ok(replies)
    }

    async fn open_carts(&self, carts: &mut [Cart], now: Option<Time>) -> Result<(), EngineError> {
        let verb = |(n, cart): (usize, &Cart)| {
            let asked = cart.asked();
            let args = vec![
                cart.id().to_string(),
                asked.order_id.to_string(),
                cart_text(&asked.lines, asked.customer_id.as_ref(), asked.money),
                rest_text(asked.payment_ref.as_deref(), asked.metadata.as_deref()),
                (i64::from(asked.ttl.seconds()) * 1000).to_string(),
                asked.customer_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            ];
            (n, cart.home, "open", args)
        };
        let verbs = carts.iter().enumerate().map(verb).collect();
        for (n, _, reply) in self.ask(verbs, now, None).await? {
            let cart = &mut carts[n];
            if reply.text(0) == Some("opened") {
                let time = |at| reply.number(at).map(Time::from_millis).ok_or_else(unreadable);
                cart.hold = Some(made(cart.id(), cart.asked(), time(1)?, time(2)?));
            } else {
                cart.verdict = Some(read_no(&reply)?);
            }
        }
        Ok(())
    }

    /// In order of partition, so that two carts do not take from one another what neither can use.
    async fn take_parts(&self, carts: &mut [Cart], now: Option<Time>) -> Result<(), EngineError> {
        let rounds = carts.iter().map(|cart| cart.parts.len()).max().unwrap_or(0);
        for round in 0..rounds {
            let verb = |(n, cart): (usize, &Cart)| {
                let (part, hold) = (*cart.parts.get(round)?, cart.hold.as_ref()?);
                let args = [
                    cart_text(&hold.lines, hold.customer_id.as_ref(), hold.money),
                    rest_text(hold.payment_ref.as_deref(), hold.metadata.as_deref()),
                    hold.created_at.millis().to_string(),
                    hold.expires_at.millis().to_string(),
                    hold.customer_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                ];
                let first = [hold.id.to_string(), hold.order_id.to_string()];
                let lines = self.lines_here(&hold.lines, part);
                cart.is_open().then(|| (n, part, "take", first.into_iter().chain(args).chain(lines).collect()))
            };
            let verbs = carts.iter().enumerate().filter_map(verb).collect();
            let mut refused: Vec<(usize, Verdict)> = Vec::new();
            for (n, part, reply) in self.ask(verbs, now, None).await? {
                if reply.text(0) == Some("taken") {
                    carts[n].taken.push(part);
                } else {
                    refused.push((n, read_no(&reply)?));
                }
            }
            for (n, verdict) in refused {
                carts[n].verdict = Some(self.refused(&carts[n], round, verdict, now).await?);
            }
        }
        Ok(())
    }

    fn lines_here(&self, lines: &Lines, part: u32) -> Vec<String> {
        let here = lines.iter().filter(|line| self.partitions.of_sku(&line.sku) == part);
        here.flat_map(|line| [line.sku.to_string(), line.quantity.get().to_string()]).collect()
    }

    /// A refusal tells of the whole cart: the partitions that were not asked yet are asked too.
    async fn refused(
        &self,
        cart: &Cart,
        round: usize,
        verdict: Verdict,
        now: Option<Time>,
    ) -> Result<Verdict, EngineError> {
        let mut all = vec![verdict];
        let customer = cart.asked().customer_id.as_ref().map(ToString::to_string).unwrap_or_default();
        for part in cart.parts.iter().skip(round + 1) {
            let lines = self.lines_here(&cart.asked().lines, *part);
            let call = Call::one("check", [customer.clone()].into_iter().chain(lines));
            let done = self.call(*part, &call, now).await?;
            let reply = done.answers.first().ok_or_else(unreadable)?;
            if reply.text(0) != Some("fine") {
                all.push(read_no(reply)?);
            }
        }
        Ok(all.into_iter().reduce(first_of).unwrap_or(Verdict::Again))
    }

    /// What was taken for carts that are refused, and their records.
    async fn give_back(&self, carts: &mut [Cart], now: Option<Time>) -> Result<(), EngineError> {
        let mut verbs = Vec::new();
        for (n, cart) in carts.iter().enumerate().filter(|(_, cart)| !cart.is_open() && cart.hold.is_some()) {
            verbs.extend(cart.taken.iter().map(|part| (n, *part, "drop", vec![cart.id().to_string()])));
        }
        self.ask(verbs, now, None).await?;
        let refused = carts.iter().enumerate().filter(|(_, cart)| !cart.is_open() && cart.hold.is_some());
        let verbs = refused.map(|(n, cart)| (n, cart.home, "abort", abort_args(cart.id(), "opening"))).collect();
        self.ask(verbs, now, None).await.map(|_| ())
    }

    async fn at_home(&self, carts: &[Cart], verb: &'static str, now: Option<Time>) -> Result<Replies, EngineError> {
        let open = carts.iter().enumerate().filter(|(_, cart)| cart.is_open());
        let verbs = open.map(|(n, cart)| (n, cart.home, verb, vec![cart.id().to_string()])).collect();
        Ok(self.ask(verbs, now, None).await?.into_iter().map(|(n, _, reply)| (n, reply)).collect())
    }

    async fn seal(&self, carts: &mut [Cart], now: Option<Time>) -> Result<(), EngineError> {
        for (n, reply) in self.at_home(carts, "seal", now).await? {
            if reply.text(0) != Some("sealed") {
                // Given up by somebody who thought that we were gone.
                carts[n].verdict = Some(Verdict::Again);
            }
        }
        let mut verbs = Vec::new();
        for (n, cart) in carts.iter().enumerate().filter(|(_, c)| matches!(c.verdict, Some(Verdict::Again))) {
            verbs.extend(cart.taken.iter().map(|part| (n, *part, "drop", vec![cart.id().to_string()])));
        }
        self.ask(verbs, now, None).await.map(|_| ())
    }

    async fn fix(&self, carts: &mut [Cart], now: Option<Time>, logged: &mut Vec<Logged>) -> Result<(), EngineError> {
        let mut verbs = Vec::new();
        for (n, cart) in carts.iter().enumerate().filter(|(_, cart)| cart.is_open()) {
            verbs.extend(cart.taken.iter().map(|part| (n, *part, "fix", vec![cart.id().to_string()])));
        }
        let replies = self.ask(verbs, now, Some(logged)).await?;
        let gone: BTreeSet<usize> =
            replies.iter().filter(|(_, _, reply)| reply.text(0) != Some("fixed")).map(|(n, ..)| *n).collect();
        for n in gone {
            if let Some(hold) = carts[n].hold.clone() {
                self.undo(&hold, now).await?;
            }
            carts[n].verdict = Some(Verdict::Again);
        }
        Ok(())
    }

    async fn complete(&self, carts: &mut [Cart], now: Option<Time>) -> Result<(), EngineError> {
        for (n, reply) in self.at_home(carts, "complete", now).await? {
            let cart = &mut carts[n];
            cart.verdict = Some(match (reply.text(0), cart.hold.clone()) {
                (Some("complete"), Some(hold)) if reply.number(3) == Some(0) => {
                    Verdict::Answer(Ok(Outcome::Held { hold, replay: false }))
                }
                (Some("complete"), Some(hold)) => Verdict::Awaited(hold),
                _ => Verdict::Again,
            });
        }
        Ok(())
    }

    /// Makes a sealed cart whole; false when a part is gone and it had to be undone.
    pub(super) async fn finish_cart(&self, hold: &Hold, now: Option<Time>) -> Result<bool, EngineError> {
        let id = [hold.id.to_string()];
        for part in self.partitions.of_lines(&hold.lines) {
            let fixed = self.call(part, &Call::one("fix", &id), now).await?;
            if fixed.answers.first().and_then(|reply| reply.text(0)) != Some("fixed") {
                self.undo(hold, now).await?;
                return Ok(false);
            }
        }
        self.call(self.partitions.of_hold(hold.id), &Call::one("complete", &id), now).await?;
        Ok(true)
    }

    /// Gives up a cart that was not sealed; then its parts.
    pub(super) async fn abort_cart(&self, hold: &Hold, now: Option<Time>) -> Result<(), EngineError> {
        let call = Call::one("abort", abort_args(hold.id, "opening"));
        let told = self.call(self.partitions.of_hold(hold.id), &call, now).await?;
        if matches!(told.answers.first().and_then(|reply| reply.text(0)), Some("aborted" | "gone")) {
            self.drop_parts(hold, now).await?;
        }
        Ok(())
    }

    /// A sealed cart of which a part is gone never was. Its home says so first and forgets it last: whoever dies in between
    /// leaves a cart that is recovered.
    pub(super) async fn undo(&self, hold: &Hold, now: Option<Time>) -> Result<(), EngineError> {
        let (id, home) = ([hold.id.to_string()], self.partitions.of_hold(hold.id));
        let told = self.call(home, &Call::one("undo", &id), now).await?;
        match told.answers.first().and_then(|reply| reply.text(0)) {
            Some("undone") => {}
            Some("gone") => return self.drop_parts(hold, now).await,
            _ => return Ok(()),
        }
        for part in self.partitions.of_lines(&hold.lines) {
            self.call(part, &Call::one("void", &id), now).await?;
        }
        self.call(home, &Call::one("abort", abort_args(hold.id, "undone")), now).await.map(|_| ())
    }

    async fn drop_parts(&self, hold: &Hold, now: Option<Time>) -> Result<(), EngineError> {
        for part in self.partitions.of_lines(&hold.lines) {
            self.call(part, &Call::one("drop", [hold.id.to_string()]), now).await?;
        }
        Ok(())
    }

    /// Ends a hold everywhere, whether or not it has lapsed: a part of it has.
    pub(super) async fn lapse(&self, hold: &Hold, now: Option<Time>) -> Result<(), EngineError> {
        for part in self.partitions.of_whole_hold(hold) {
            self.call(part, &Call::one("lapse", [hold.id.to_string(), "1".into()]), now).await?;
        }
        Ok(())
    }

    /// Expires what has lapsed in any partition, those that lapsed first, first.
    pub(super) async fn expire_apart(&self, limit: u32, now: Option<Time>) -> Result<Outcome, EngineError> {
        let mut due: BTreeMap<HoldId, (i64, BTreeSet<u32>)> = BTreeMap::new();
        // A hold is due at its home and in each of its parts.
        let most = (u64::from(limit) * 2 + 2).min(2000);
        for part in self.partitions.all() {
            let done = self.call(part, &Call::one("due", [most.to_string()]), now).await?;
            let reply = done.answers.first().ok_or_else(unreadable)?;
            for at in (0..reply.len()).step_by(2) {
                let deadline = reply.number(at).ok_or_else(unreadable)?;
                let id = reply.text(at + 1).and_then(HoldId::parse).ok_or_else(unreadable)?;
                due.entry(id).or_insert_with(|| (deadline, BTreeSet::new())).1.insert(part);
            }
        }
        let mut order: Vec<(i64, HoldId)> = due.iter().map(|(id, (deadline, _))| (*deadline, *id)).collect();
        order.sort_unstable();
        let more = order.len() > limit as usize;
        order.truncate(limit as usize);
        let mut verbs = Vec::new();
        for (n, (_, id)) in order.iter().enumerate() {
            let parts = due.get(id).into_iter().flat_map(|(_, parts)| parts);
            verbs.extend(parts.map(|part| (n, *part, "lapse", vec![id.to_string(), String::new()])));
        }
        let expired = u32::try_from(order.len()).unwrap_or(u32::MAX);
        self.ask(verbs, now, None).await?;
        Ok(Outcome::Swept { expired, more })
    }
}

fn abort_args(id: HoldId, state: &str) -> Vec<String> {
    vec![id.to_string(), state.to_owned()]
}

/// Of two partitions' refusals of one cart, the one that comes first; of the same kind, both.
fn first_of(one: Verdict, other: Verdict) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Busy(_) | Verdict::Again | Verdict::Awaited(_) => 0,
        Verdict::Answer(Err(Refusal::UnknownSku(_))) => 1,
        Verdict::Answer(Err(Refusal::CustomerRequired(_))) => 2,
        Verdict::Answer(Err(Refusal::CustomerLimit { .. })) => 3,
        Verdict::Answer(_) => 4,
    };
    if rank(&one) != rank(&other) {
        return if rank(&one) < rank(&other) { one } else { other };
    }
    let Verdict::Answer(Err(one)) = one else { return one };
    let Verdict::Answer(Err(other)) = other else { return other };
    Verdict::Answer(Err(both(one, other)))
}

fn both(one: Refusal, other: Refusal) -> Refusal {
    let skus = |mut all: Vec<Sku>, more: Vec<Sku>| {
        all.extend(more);
        all.sort();
        all
    };
    match (one, other) {
        (Refusal::UnknownSku(a), Refusal::UnknownSku(b)) => Refusal::UnknownSku(skus(a, b)),
        (Refusal::CustomerRequired(a), Refusal::CustomerRequired(b)) => Refusal::CustomerRequired(skus(a, b)),
        (Refusal::SoldOut { items: mut a, may_return }, Refusal::SoldOut { items: b, may_return: too }) => {
            a.extend(b);
            a.sort_by(|x: &Short, y: &Short| x.sku.cmp(&y.sku));
            Refusal::SoldOut { items: a, may_return: may_return && too }
        }
        (Refusal::CustomerLimit { sku: a, .. }, ref limit @ Refusal::CustomerLimit { sku: ref b, .. }) if *b < a => {
            limit.clone()
        }
        (one, _) => one,
    }
}
