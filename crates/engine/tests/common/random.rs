//! Random shops: few SKUs, orders, customers and payments, so that they collide all the time.

use super::dice::Dice;
use super::make::{customer, lines, money, order_id, payment, reference, sku, ttl};
use holdfast_engine::domain::{
    Command, HoldId, HoldRequest, JobKind, JobReport, JobTurn, Lines, Money, OrderRef, PaymentFact, PaymentKind,
    SetStock, Total, Ttl,
};

const SKUS: [&str; 3] = ["A", "B c", "Ä"];

/// What happens next.
#[derive(Debug, Clone)]
pub enum Step {
    /// So many milliseconds pass.
    Wait(i64),
    /// These are asked in one batch.
    Batch(Vec<Ask>),
    /// An engine that keeps its things on a disk is closed and opened again.
    Reopen,
}

/// A command; a hold's id is the number of the hold instead, since every engine makes ids of its own.
#[derive(Debug, Clone)]
pub struct Ask {
    pub command: Command,
    hold: Option<usize>,
}

impl Ask {
    /// The command with the id that this engine gave to the hold.
    pub fn resolve(&self, ids: &[HoldId]) -> Command {
        let unknown = HoldId::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001);
        let id = match self.hold {
            // The latest holds are the ones that something can still be done with.
            Some(back) if !ids.is_empty() => ids[ids.len() - 1 - back % ids.len()],
            _ => unknown,
        };
        let mut command = self.command.clone();
        match &mut command {
            Command::Change { hold, .. }
            | Command::Extend { hold, .. }
            | Command::Release { hold }
            | Command::Confirm { hold, .. } => *hold = id,
            Command::Settle(fact) => {
                if let Some(OrderRef::Hold(hold)) = &mut fact.order {
                    *hold = id;
                }
            }
            _ => {}
        }
        command
    }
}

/// Throws steps. Orders are taken from a window that moves on, because confirmed orders soon end every story.
pub struct Shop {
    pub dice: Dice,
    pub window: u64,
    pub reopens: bool,
    pub deadlines: u64,
}

impl Shop {
    pub fn step(&mut self) -> Step {
        match self.dice.below(20) {
            0..=3 => Step::Wait(self.dice.one_of(&[1, 5, 30, 30, 60, 300, 901, 8000]) * 1000 + 1),
            4 if self.reopens => Step::Reopen,
            5..=9 => Step::Batch((0..=self.dice.below(12)).map(|_| self.ask()).collect()),
            _ => Step::Batch(vec![self.ask()]),
        }
    }

    pub fn ask(&mut self) -> Ask {
        let nobody = HoldId::from_u128(0);
        let back = self.dice.below(8) as usize * usize::from(!self.dice.once_in(3));
        let hold = (!self.dice.once_in(40)).then_some(back);
        let command = match self.dice.below(34) {
            0..=2 => self.set(),
            3 | 4 => self.adjust(),
            5 => Command::RemoveStock { sku: sku(self.sku()), if_version: self.version() },
            6..=13 => self.hold(),
            14 | 15 => Command::Change {
                hold: nobody,
                lines: (!self.dice.once_in(4)).then(|| self.lines()),
                amount: self.dice.once_in(4).then(|| 100 + self.dice.below(2)),
                payment_ref: self.dice.once_in(8).then(|| "pi".into()),
            },
            16 => Command::Extend { hold: nobody, ttl: self.ttl(&[0, 1, 10, 56, 150]) },
            17 | 18 => Command::Release { hold: nobody },
            19..=21 => Command::Confirm { hold: nobody, payment_ref: self.dice.once_in(5).then(|| "pi".into()) },
            22 | 23 => Command::Return {
                order: order_id(&self.order()),
                lines: self.lines(),
                key: self.dice.once_in(2).then(|| reference(&format!("r{}", self.dice.below(4)))),
            },
            24 => Command::Sweep { limit: self.dice.one_of(&[0, 1, 2, 100]) },
            25..=28 => self.job(),
            _ => self.settle(),
        };
        Ask { command, hold }
    }

    /// No two deadlines are alike: which of two holds that lapsed at one moment is expired first is nobody's promise.
    fn ttl(&mut self, minutes: &[u64]) -> Ttl {
        self.deadlines += 1;
        ttl(1 + self.dice.one_of(minutes) * 64 + self.deadlines % 64)
    }

    fn sku(&mut self) -> &'static str {
        if self.dice.once_in(30) { "X" } else { self.dice.one_of(&SKUS) }
    }

    fn order(&mut self) -> String {
        format!("O{}", self.window + self.dice.below(4))
    }

    fn version(&mut self) -> Option<u64> {
        self.dice.once_in(5).then(|| 1 + self.dice.below(4))
    }

    fn lines(&mut self) -> Lines {
        let asked: Vec<_> = (0..=self.dice.below(3)).map(|_| (self.sku(), 1 + self.dice.below(3))).collect();
        lines(&asked)
    }

    fn money(&mut self) -> Money {
        match self.dice.below(8) {
            0 => money(99, "EUR"),
            1 => money(100, "USD"),
            2 => Money::default(),
            _ => money(100, "EUR"),
        }
    }

    fn set(&mut self) -> Command {
        Command::SetStock(SetStock {
            sku: sku(self.sku()),
            total: Total::new(self.dice.below(16)).unwrap(),
            limit_per_customer: match self.dice.below(6) {
                0 => Some(Some(1 + self.dice.below(4))),
                1 => Some(None),
                _ => None,
            },
            if_version: self.version(),
        })
    }

    fn adjust(&mut self) -> Command {
        Command::AdjustStock {
            sku: sku(self.sku()),
            delta: if self.dice.once_in(20) { i64::MAX } else { self.dice.below(9) as i64 - 4 },
            reason: self.dice.once_in(3).then(|| "count".into()),
            key: self.dice.once_in(3).then(|| reference(&format!("a{}", self.dice.below(4)))),
            create: self.dice.once_in(2),
        }
    }

    fn hold(&mut self) -> Command {
        let order = self.order();
        // Most requests for an order are the same request, so that replays are met as often as conflicts.
        let usual = Dice::new(order.len() as u64 + u64::from(order.as_bytes()[order.len() - 1])).below(3);
        let lines = if self.dice.once_in(2) { self.lines() } else { lines(&[(SKUS[usual as usize], 1 + usual)]) };
        let who = if self.dice.once_in(5) { self.dice.below(3) } else { usual };
        Command::Hold(Box::new(HoldRequest {
            id: HoldId::from_u128(0),
            order_id: order_id(&order),
            lines,
            ttl: self.ttl(&[0, 0, 1, 10, 56]),
            customer_id: (!self.dice.once_in(6)).then(|| customer(&format!("c{who}"))),
            money: if self.dice.once_in(4) { Money::default() } else { money(100, "EUR") },
            payment_ref: self.dice.once_in(6).then(|| "pi".into()),
            metadata: self.dice.once_in(6).then(|| "{\"note\":1}".into()),
        }))
    }

    fn settle(&mut self) -> Command {
        let order = self.order();
        let id = format!("pi-{order}-{}", self.dice.below(2));
        let kind = match self.dice.below(20) {
            0..=4 => PaymentKind::Authorized,
            5..=10 => PaymentKind::Captured,
            11 => PaymentKind::Failed,
            12 => PaymentKind::Canceled,
            13 => PaymentKind::CaptureFailed,
            14 => PaymentKind::RefundFailed,
            15 => self.dice.one_of(&[PaymentKind::Disputed, PaymentKind::Named, PaymentKind::RefundSucceeded]),
            16 => PaymentKind::RefundedBy(self.dice.one_of(&[40, 100])),
            _ => PaymentKind::Refunded(self.dice.one_of(&[40, 100, 100])),
        };
        let event = if self.dice.once_in(4) { self.dice.next() } else { 0 };
        Command::Settle(Box::new(PaymentFact {
            event_id: reference(&format!("{id}-{kind:?}-{event}")),
            payment: payment(&id),
            kind,
            order: match self.dice.below(12) {
                0 => None,
                1 | 2 => Some(OrderRef::Hold(HoldId::from_u128(0))),
                _ => Some(OrderRef::Order(order_id(&order))),
            },
            money: self.money(),
            email: self.dice.once_in(3).then(|| "ann@example.com".into()),
            reference: self.dice.once_in(2).then(|| reference(&format!("re-{}", self.dice.below(2)))),
        }))
    }

    fn job(&mut self) -> Command {
        let order = self.order();
        let attempt = self.dice.below(4) as u32;
        let seconds = self.dice.below(3) as u32;
        Command::Job(Box::new(JobReport {
            payment: payment(&format!("pi-{order}-{}", self.dice.below(2))),
            kind: self.dice.one_of(&[JobKind::Refund, JobKind::Void, JobKind::Capture]),
            turn: match self.dice.below(10) {
                0..=3 => JobTurn::Take { seconds },
                4 => JobTurn::Keep { attempt, seconds },
                5 => JobTurn::Accepted { attempt, reference: Some(reference("re-0")), seconds },
                6 => JobTurn::Done { attempt, reference: self.dice.once_in(2).then(|| reference("re-1")) },
                7 => JobTurn::Later { attempt, error: "busy".into(), seconds },
                8 => JobTurn::Failed { attempt, error: "disputed".into() },
                _ => JobTurn::Retry,
            },
        }))
    }
}

/// The name of a command's variant, and how many there are.
pub fn name(command: &Command) -> &'static str {
    match command {
        Command::SetStock(_) => "set_stock",
        Command::AdjustStock { .. } => "adjust_stock",
        Command::RemoveStock { .. } => "remove_stock",
        Command::Hold(_) => "hold",
        Command::Change { .. } => "change",
        Command::Extend { .. } => "extend",
        Command::Release { .. } => "release",
        Command::Confirm { .. } => "confirm",
        Command::Return { .. } => "return",
        Command::Settle(_) => "settle",
        Command::Job(_) => "job",
        Command::Sweep { .. } => "sweep",
        Command::Record(_) => unreachable!("an engine's word, never a shopper's"),
    }
}

/// Every name that [`name`] gives. A new variant does not compile there until it is named, and belongs here too.
pub const NAMES: [&str; 12] = [
    "set_stock",
    "adjust_stock",
    "remove_stock",
    "hold",
    "change",
    "extend",
    "release",
    "confirm",
    "return",
    "settle",
    "job",
    "sweep",
];

/// Every code of a refusal.
pub const REFUSALS: [&str; 18] = [
    "not_found",
    "idempotency_key_reused",
    "version_mismatch",
    "already_confirmed",
    "order_conflict",
    "hold_expired",
    "extension_limit",
    "unknown_sku",
    "customer_required",
    "customer_limit",
    "sold_out",
    "stock_gone",
    "job_not_due",
    "return_exceeds_order",
    "total_below_committed",
    "insufficient_available",
    "total_too_large",
    "stock_in_use",
];
