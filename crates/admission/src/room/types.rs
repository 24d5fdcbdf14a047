//! The words of the waiting room: what is handed in, what is answered. Nothing here decides anything.

use holdfast_domain::Time;

/// What tells a ticket from all others, and all that its text says but for the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketId(pub [u8; 32]);

/// How those are ordered who join before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderRule {
    /// By the draw, which anybody can recompute afterwards.
    #[default]
    Draw,
    /// By the moment of joining.
    Fifo,
}

/// What the operator decides about a room. Everything may change while it is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomRules {
    /// How many may have a turn or a session at once.
    pub max_active: u32,
    /// How many turns are given in a second at most; 0 gives none.
    pub admit_per_second: u32,
    /// How long a turn waits to be claimed.
    pub turn_seconds: u32,
    /// How long a session lasts after the claim.
    pub session_seconds: u32,
    /// How long before the start the doors open.
    pub prequeue_seconds: u32,
    /// How those are ordered who join before the start.
    pub order: OrderRule,
    /// When turns begin; `None` is "at once".
    pub starts_at: Option<Time>,
    /// When nobody is let in any more.
    pub ends_at: Option<Time>,
}

/// What is known of the units that this sale can sell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StockSignal {
    /// False until the stock has been read once; then nobody is given a turn and nothing is called sold out.
    pub known: bool,
    /// Units that a hold could take now.
    pub available: u64,
    /// Units in holds, which may come back.
    pub held: u64,
}

/// What a ticket is made of when it joins, and again when it is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joining {
    /// Its name.
    pub id: TicketId,
    /// When it joined.
    pub joined_at: Time,
    /// Its number among those of the same millisecond, so that first come is first served to the last one.
    pub sequence: u32,
    /// Whose it is, as a hash the caller made; the same identity has one place.
    pub identity: Option<u64>,
    /// HMAC-SHA256 of the ticket's text under the sale's seed.
    pub draw: [u8; 32],
}

/// Which part of the queue a ticket belongs to. Fixed when it joins, and to be kept in the signed ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Joined before the start under [`OrderRule::Draw`]: first of all, in the order of the draw.
    Drawn,
    /// Joined before the start under [`OrderRule::Fifo`]: next, in the order of joining.
    Early,
    /// Joined after the start: behind, in the order of joining.
    Late,
}

/// Where a ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketState {
    /// Waits for the start.
    Prequeue,
    /// Waits for its turn.
    Waiting,
    /// May claim its pass.
    Turn,
    /// Has claimed it, and shops.
    Admitted,
    /// Has finished, or its session has ended.
    Done,
    /// Missed its turn, or was away for too long.
    Expired,
    /// Went away by its own wish.
    Left,
}

/// What the room as a whole does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomState {
    /// Has not started.
    Prequeue,
    /// Gives turns.
    Open,
    /// Was paused by the operator.
    Paused,
    /// Every unit is reserved and some may come back; the order is kept.
    Held,
    /// Every unit is sold. A restock opens the room again.
    SoldOut,
    /// The sale has ended.
    Closed,
}

/// How long it will take, from how fast the room has really moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Eta {
    /// False until enough has moved to tell; the rest is 0 then.
    pub known: bool,
    /// As likely too long as too short.
    pub p50_s: u64,
    /// A careful guess.
    pub p90_s: u64,
}

/// What one shopper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Where the ticket stands.
    pub state: TicketState,
    /// Its place, from 1, among those present; only while it waits after the start.
    pub position: Option<u64>,
    /// How many of those present are before it.
    pub ahead: u64,
    /// How many are present and wait.
    pub waiting_total: u64,
    /// How long it will take.
    pub eta: Eta,
    /// Until when the turn can be claimed; only in turn.
    pub claim_by: Option<Time>,
    /// Until when the session lasts; only when admitted.
    pub session_until: Option<Time>,
    /// When to ask again.
    pub poll_after_ms: u64,
    /// What the room does.
    pub room: RoomState,
}

/// What became of somebody who wants to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// A new place. The class belongs into the signed ticket.
    Joined(Class),
    /// This identity, or this very ticket, has a place already: the ticket it is known by.
    Same(TicketId),
    /// The doors are not open yet.
    TooEarly {
        /// When they will be.
        opens_at: Time,
    },
    /// The sale has ended.
    Ended,
    /// The room has as many tickets as it can remember.
    Full,
}

/// What became of a signed ticket that was brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// It is in its own place again.
    Placed,
    /// The room knows it.
    Known,
    /// Its identity has another ticket that is further ahead: that one goes on.
    Other(TicketId),
    /// The room has lost nothing of that time, so this ticket has ended and been forgotten.
    Refused,
    /// The room has as many tickets as it can remember.
    Full,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It has a session; asking again gives the same one.
    Admitted {
        /// Until when.
        session_until: Time,
    },
    /// It is not its turn.
    NotYet(View),
    /// The turn has passed, or the ticket was away for too long. It may join again, at the back.
    Missed,
    /// It is done or has left.
    Over,
    /// The room does not know it.
    Unknown,
}

/// The room in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    /// Waiting before the start.
    pub prequeue: u64,
    /// Present and waiting after the start.
    pub waiting: u64,
    /// Absent for a while; their order is kept.
    pub aside: u64,
    /// In turn.
    pub turn: u64,
    /// Admitted, with and without a hold.
    pub admitted: u64,
    /// Admitted and with a hold.
    pub holding: u64,
    /// Tickets that ever joined or were restored.
    pub joined_total: u64,
    /// Turns ever given.
    pub turns_total: u64,
    /// Tickets that ever ended as done.
    pub done_total: u64,
    /// Tickets that ever expired.
    pub expired_total: u64,
    /// Tickets that ever left.
    pub left_total: u64,
    /// Turns a second, as measured.
    pub rate: f64,
    /// Tickets in memory, the ended ones included that are still told about.
    pub remembered: u64,
}
