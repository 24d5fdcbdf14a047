//! What the page is told of a room and of a ticket, in plain values: the page knows nothing of how they come about.

/// Where a ticket is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TicketState {
    Prequeue,
    Waiting,
    Turn,
    Admitted,
    Done,
    Expired,
    Left,
}

impl TicketState {
    /// As the API writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Prequeue => "prequeue",
            Self::Waiting => "waiting",
            Self::Turn => "turn",
            Self::Admitted => "admitted",
            Self::Done => "done",
            Self::Expired => "expired",
            Self::Left => "left",
        }
    }
}

/// What the room as a whole does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Prequeue,
    Open,
    Paused,
    Held,
    SoldOut,
    Closed,
}

impl Room {
    /// As the API writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Prequeue => "prequeue",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Held => "held",
            Self::SoldOut => "sold_out",
            Self::Closed => "closed",
        }
    }
}

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StockState {
    Available,
    Low,
    Held,
    SoldOut,
}

impl StockState {
    /// As the API writes it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Low => "low",
            Self::Held => "held",
            Self::SoldOut => "sold_out",
        }
    }
}

/// A ticket as its holder sees it. Moments are milliseconds since 1970.
#[derive(Debug, Clone)]
pub(crate) struct Ticket<'a> {
    pub(crate) id: &'a str,
    pub(crate) state: TicketState,
    pub(crate) position: Option<u64>,
    pub(crate) ahead: Option<u64>,
    pub(crate) waiting_total: u64,
    /// The seconds that half and nine tenths of those in this place wait at most; `None` while unknown.
    pub(crate) eta: Option<(u64, u64)>,
    pub(crate) stock: StockState,
    pub(crate) likely_gone: bool,
    /// Also told of a turn that was missed.
    pub(crate) claim_by: Option<i64>,
    /// When the visit of an admitted shopper ends.
    pub(crate) expires_at: Option<i64>,
    pub(crate) poll_after_ms: u64,
}

/// Who looks at the page.
#[derive(Debug, Clone)]
pub(crate) enum Visitor<'a> {
    /// Somebody without a ticket. With JavaScript, the page takes one at once.
    New,
    /// Somebody who gave a ticket back.
    Left,
    /// Somebody with a ticket that this room does not know.
    Lost,
    /// Somebody with a ticket.
    Holding(Ticket<'a>),
}

/// What to say of a form that could not be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Busy,
    NotYet,
}

impl Trouble {
    /// Its name among the words of the template.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NotYet => "not_yet",
        }
    }
}
