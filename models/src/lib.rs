//! Models of what several servers do together, small enough to be explored in every order of events. For tests only:
//! nothing here is part of the product.
//!
//! A model says which atomic steps there are (a script in Redis, a transaction in SQL) and who may take them when.
//! [`explore`](explore::explore) takes them in every order, lets any process stop anywhere, and checks the rules in
//! each state. Times are not modelled: whatever depends on a clock may happen at any moment, so no rule that holds
//! here depends on how a time-out was chosen. Each model can be planted with mistakes; tests show that they are found.

pub mod carts;
pub mod explore;
pub mod spread;
pub mod steps;
