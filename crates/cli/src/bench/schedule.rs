//! When the requests of an open loop are due, and an alarm that wakes up for them to a fraction of a millisecond.

use holdfast_engine::clock::monotonic;
use std::io;
use std::time::{Duration, Instant};

/// No point in waking up more often than this.
const TICK: Duration = Duration::from_micros(50);

/// Requests that are due at even intervals, whatever happens to those before them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    start: Instant,
    interval: f64,
}

impl Schedule {
    /// So many a second from here on; the first at once.
    pub(super) fn new(start: Instant, per_second: f64) -> Self {
        Self { start, interval: 1e9 / per_second }
    }

    /// When the n-th is due, counted from 0.
    pub(super) fn at(&self, n: u64) -> Instant {
        self.start + Duration::from_nanos((n as f64 * self.interval).ceil() as u64)
    }

    /// How many are due by now.
    pub(super) fn due(&self, now: Instant) -> u64 {
        match now.checked_duration_since(self.start) {
            Some(spent) => (spent.as_nanos() as f64 / self.interval) as u64 + 1,
            None => 0,
        }
    }
}

/// Waits until a moment; tokio's own timer is a millisecond late.
pub(super) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// On the current runtime.
    #[allow(deprecated, reason = "the function that replaces `AsyncFd::new` is unsafe; an OwnedFd keeps its promise")]
    pub(super) fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer: tokio::io::unix::AsyncFd::new(timer)? })
    }

    /// Waits until then, and a moment in any case.
    pub(super) async fn until(&mut self, when: Instant) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let wait = when.saturating_duration_since(monotonic()).max(TICK);
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.timer.readable().await?;
            match rustix::io::read(&self.timer, &mut [0; 8]) {
                Err(rustix::io::Errno::AGAIN) => ready.clear_ready(),
                other => return other.map(|_| ()).map_err(Into::into),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// On the current runtime.
    #[allow(clippy::unnecessary_wraps)]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits until then, and a moment in any case.
    pub(super) async fn until(&mut self, when: Instant) -> io::Result<()> {
        tokio::time::sleep(when.saturating_duration_since(monotonic()).max(TICK)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_due_as_the_time_says_even_after_a_stall() {
        let start = monotonic();
        let schedule = Schedule::new(start, 1000.0);
        assert_eq!(schedule.due(start.checked_sub(Duration::from_nanos(1)).unwrap()), 0);
        assert_eq!(schedule.due(start), 1);
        assert_eq!(schedule.due(start + Duration::from_micros(999)), 1);
        assert_eq!(schedule.due(start + Duration::from_millis(1)), 2);
        assert_eq!(schedule.due(start + Duration::from_secs(3)), 3001, "nothing is left out after a stall");
    }

    #[test]
    fn each_is_due_at_its_moment_and_not_before() {
        let start = monotonic();
        for rate in [1.0, 3.0, 977.0, 12_345.6, 1e6] {
            let schedule = Schedule::new(start, rate);
            for n in [0_u64, 1, 2, 3, 1000, 999_983] {
                assert!(schedule.due(schedule.at(n)) > n, "number {n} at {rate}/s");
                assert!(schedule.at(n + 1) > schedule.at(n));
                if n > 0 {
                    let before = schedule.at(n).checked_sub(Duration::from_nanos(2)).unwrap();
                    assert!(schedule.due(before) <= n, "number {n} at {rate}/s");
                }
            }
        }
    }

    #[tokio::test]
    async fn the_alarm_is_never_early() {
        let mut alarm = Alarm::new().unwrap();
        for us in [0, 60, 700, 3000] {
            let when = monotonic() + Duration::from_micros(us);
            alarm.until(when).await.unwrap();
            assert!(monotonic() >= when);
        }
    }
}
