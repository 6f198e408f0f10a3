//! Marks and CNPs of RDMA ports.

use roce_model::{Counter, Severity};
use roce_spelling::{counted, whole};

use super::growth::{Growths, share_text};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Marked packets without a CNP that are judged: readings of two counters are some packets apart.
const MIN_MARKS: f64 = 10.0;
/// CNPs without a mark that are judged.
const MIN_CNPS: f64 = 10.0;
/// Share of CNPs without a mark from which on they are judged; a receiver sends one CNP for a marked packet at most.
const UNMARKED_SHARE: f64 = 0.10;
/// Share of the CNPs that came from which on a sender that ignores them does not slow down.
pub const IGNORED_SHARE: f64 = 0.5;
/// CNPs ignored from which on they are judged: some come when their queue pair has just gone.
pub const MIN_IGNORED: f64 = 10.0;
/// Share from which on two counts are taken for one.
const ALL_SHARE: f64 = 0.95;

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.cnp_not_sent",
        title: "marked packets arrive and no CNP is sent",
        meaning: "The receiver does not notify the senders: they do not slow down until packets are lost or PFC stops them.",
        method: "10 marked packets or more, and no CNP: critical",
        source: "IBTA annex A17 (RoCEv2 congestion management); mlx5 counters np_ecn_marked_roce_packets and np_cnp_sent",
        next: "Turn congestion control on at this receiver (mlx5: roce_np), for the priority of the data.",
        severity: Severity::Critical,
        run: by(not_sent),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.cnp_unmarked",
        title: "CNPs are sent without marks",
        meaning: "A receiver sends one CNP for a marked packet at most. More of them come from the adapter itself: of packets out of sequence, or \
                  of its slow restart. Senders are slowed although no switch marked anything.",
        method: "CNPs sent beyond the marked packets: 10 or more, and 10 % of all: warning",
        source: "IBTA annex A17.9.2: a CNP answers a packet with CE; DCQCN (SIGCOMM 2015) section 3.1",
        next: "Look at out_of_sequence and roce_slow_restart_cnps of this adapter, and whether marks are counted at all (firmware, virtual function).",
        severity: Severity::Warning,
        run: by(unmarked),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.cnp_slow_restart",
        title: "all CNPs are those of slow restarts",
        meaning: "The adapter makes these CNPs itself, when a flow begins again after it was idle. They are no sign of congestion.",
        method: "CNPs by slow restart are 95 % or more of the CNPs sent or handled, 10 or more, and not one is explained by a mark: warning",
        source: "NVIDIA, Understanding mlx5 Linux counters: roce_slow_restart_cnps",
        next: "Do not look for congestion. To gain the first microseconds after a pause, turn roce_slow_restart off (mlxreg, ROCE_ACCL) and measure.",
        severity: Severity::Warning,
        run: by(slow_restart),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.cnp_ignored",
        title: "CNPs are ignored",
        meaning: "Receivers ask this sender to slow down, and it does not.",
        method: "10 CNPs or more ignored between two readings, and half of all that came: critical; fewer, or a smaller share: note",
        source: "mlx5 counter rp_cnp_ignored, irdma counter cnpIgnored",
        next: "Turn congestion control on at this sender (mlx5: roce_rp), for the priority of the data.",
        severity: Severity::Critical,
        run: by(ignored),
        ..NO_TEXTS
    },
];

/// CNPs sent, marked packets, and CNPs of slow restarts.
struct PortNotices {
    sent: f64,
    marked: Option<f64>,
    handled: f64,
    by_restart: f64,
}

fn notices(growths: &Growths<'_>, object: &str) -> PortNotices {
    let sum = |counter| growths.sum(counter, object);
    PortNotices {
        sent: sum(Counter::PortCnpSent).unwrap_or(0.0),
        marked: sum(Counter::PortEcnMarkedPacketsReceived),
        handled: sum(Counter::PortCnpHandled).unwrap_or(0.0),
        by_restart: sum(Counter::PortSlowRestartCnps).unwrap_or(0.0),
    }
}

impl PortNotices {
    /// The CNPs that slow restarts made all of, with their verb.
    fn all_by_restart(&self) -> Option<(&'static str, f64)> {
        let is_all =
            |count: f64| count >= MIN_CNPS && (self.by_restart - count).abs() <= count * (1.0 - ALL_SHARE);
        let marked = self.marked.unwrap_or(0.0);
        if is_all(self.sent) && marked < self.sent * (1.0 - ALL_SHARE) {
            Some(("sent", self.sent))
        } else if is_all(self.handled) {
            Some(("handled", self.handled))
        } else {
            None
        }
    }
}

fn not_sent(growths: &Growths<'_>) -> Vec<CounterSign> {
    let objects = growths.objects(&[Counter::PortCnpSent]);
    let found = objects.into_iter().filter_map(|object| {
        let sent = growths.sum(Counter::PortCnpSent, object)?;
        let marked = growths.sum(Counter::PortEcnMarkedPacketsReceived, object)?;
        (sent == 0.0 && marked >= MIN_MARKS && !growths.is_total()).then(|| {
            let text = format!("{} and no CNP", counted(marked, "marked packet"));
            CounterSign::new(growths, Severity::Critical, object, &text)
                .and("the senders are not slowed")
                .number("marked_packets", marked)
        })
    });
    found.collect()
}

fn unmarked(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let objects = growths.objects(&[Counter::PortCnpSent]);
    let found = objects.into_iter().filter_map(|object| {
        let notices = notices(growths, object);
        // Marks that were not read, or that began again, may have been there.
        let marked = notices.marked?;
        let beyond = notices.sent - marked;
        if beyond < MIN_CNPS || beyond < notices.sent * UNMARKED_SHARE || notices.all_by_restart().is_some() {
            return None;
        }
        let text = if marked == 0.0 {
            format!(
                "{} sent and no marked packet received",
                counted(notices.sent, "CNP")
            )
        } else {
            format!(
                "{} sent for {}: {} have no mark",
                counted(notices.sent, "CNP"),
                counted(marked, "marked packet"),
                share_text(beyond / notices.sent)
            )
        };
        let by_restart = if notices.by_restart > 0.0 {
            format!("; {} of them by slow restart", whole(notices.by_restart))
        } else {
            String::new()
        };
        let follows = format!("the adapter itself slows the senders, no switch asked for it{by_restart}");
        let sign = CounterSign::new(growths, Severity::Warning, object, &text).and(&follows);
        Some(
            sign.number("cnps_sent", notices.sent)
                .number("marked_packets", marked),
        )
    });
    found.collect()
}

fn slow_restart(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let objects = growths.objects(&[Counter::PortSlowRestartCnps]);
    let found = objects.into_iter().filter_map(|object| {
        let notices = notices(growths, object);
        let (verb, count) = notices.all_by_restart()?;
        let text = format!(
            "{} {verb}, and slow restart made {} of them",
            counted(count, "CNP"),
            whole(notices.by_restart.min(count))
        );
        let sign = CounterSign::new(growths, Severity::Warning, object, &text);
        let sign = sign.and("they are the adapter's own, after idle times, and no sign of congestion");
        Some(
            sign.number("cnps", count)
                .number("slow_restart_cnps", notices.by_restart),
        )
    });
    found.collect()
}

fn ignored(growths: &Growths<'_>) -> Vec<CounterSign> {
    if growths.is_total() {
        return Vec::new();
    }
    let found = growths.risen(Counter::PortCnpIgnored).map(|(object, ignored)| {
        let handled = growths.sum(Counter::PortCnpHandled, object);
        let all = handled.map(|handled| ignored + handled);
        let is_most = all.is_none_or(|all| ignored / all >= IGNORED_SHARE) && ignored >= MIN_IGNORED;
        let share = all.map_or_else(String::new, |all| {
            format!(" of {} ({})", whole(all), share_text(ignored / all))
        });
        let text = format!("{}{share} ignored", counted(ignored, "CNP"));
        let (severity, follows) = if is_most {
            (Severity::Critical, "this sender does not slow down")
        } else {
            (
                Severity::Info,
                "the rest slowed this sender; a CNP that comes when its queue pair has gone is ignored, too",
            )
        };
        CounterSign::new(growths, severity, object, &text)
            .and(follows)
            .number("cnps_ignored", ignored)
    });
    found.collect()
}
