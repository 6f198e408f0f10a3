//! Findings: verdicts over the whole run, one for each rule that fires. A rule stands in one place, in the file of its
//! family: what it means, how it is computed, where that comes from, its thresholds, and the code.
//!
//! There is one finding for an id, about all hosts and flows: it names the worst of them and counts the rest. Sums
//! leave out rows with `counted = false`, whose traffic another tap saw, too. What only one place on the way can show
//! (CE behind the switch, a rate at the sender) is taken from whichever tap shows it, once for each flow. No rule
//! claims an absence that its tap could not have seen.

mod adapter;
mod alone;
mod between;
mod blind;
mod causes;
mod class;
mod clock;
mod cnp;
mod collective;
mod ecn;
mod ended;
mod faulty;
mod flow_sums;
mod gpu;
mod idle;
mod imbalance;
mod incast;
mod job;
mod late;
mod loss;
mod losses_there;
mod missed;
mod mrc;
mod one_class;
mod origin;
mod overlaps;
mod overrun;
mod path;
mod pause;
mod plan;
mod program;
mod quality;
mod receiver;
pub(crate) mod rule;
mod sentence;
mod setup;
mod shortest;
mod silences;
mod stall;
mod stuck;
mod sure;
mod switch;
mod thin;
mod trimmed;
mod unpassed;
mod unseen;
mod waste;
mod window;
mod worst;

use std::collections::HashSet;

use roce_lateness::Lateness;
use roce_model::{
    EventRow, FindingRow, FlowId, FlowRow, PauseFrame, RunSummary, SampleColumns, SampleRow, Service,
    Severity, TapId,
};

use super::arrivals::Arrivals;
use super::directory::Directory;
use super::episodes::Episode;
use super::pauses::ConcludedPauses;
use crate::settings::Settings;
use crate::thresholds::Thresholds;
use causes::{FlowSigns, FlowsByRule};
pub use causes::{MECHANISMS, Mechanism};
use losses_there::Losses;
use one_class::losing_class;
use overrun::{GapDistances, losses_by_destination};
use rule::{Context, MAX_MANAGEMENT_QPN, Rule};
pub use sentence::NO_TROUBLE;
use silences::Silences;
pub(crate) use thin::ThinCapture;

/// All rules, causes before what follows from them: the order in which findings of one severity are listed.
pub const RULES: &[Rule] = &[
    blind::BLIND,
    clock::CLOCK,
    job::COMPLETION,
    stuck::STUCK,
    ended::FAILED,
    setup::SETUP,
    receiver::NAK_FATAL,
    program::NO_ANSWER,
    mrc::QP_FAILED,
    mrc::PORT_DOWN,
    mrc::SWITCH_SUSPECT,
    mrc::PATH_DEAD,
    mrc::LOSS_SILENT,
    mrc::TRIM_FABRIC,
    mrc::TRIM_LASTHOP,
    mrc::TIMEOUT,
    mrc::SPURIOUS,
    mrc::RESPONDER,
    faulty::FAULTY,
    unpassed::UNPASSED,
    plan::PLAN,
    trimmed::TRIMMED,
    loss::NETWORK,
    unseen::UNSEEN,
    switch::DROPS,
    loss::TIMEOUT,
    waste::WASTE,
    receiver::RNR,
    pause::STORM,
    origin::ORIGIN,
    incast::INCAST,
    stall::STALL,
    late::NETWORK,
    late::RANK,
    late::RECEIVER,
    shortest::LAST,
    late::CANNOT_TELL,
    incast::UNFAIR,
    ecn::MARKS_WITHOUT_CNP,
    cnp::IGNORED,
    cnp::PACING,
    class::CNP_CLASS,
    class::DSCP_MISMATCH,
    plan::NONE,
    ecn::NOT_CAPABLE,
    switch::THRESHOLD,
    imbalance::IMBALANCE,
    mrc::PATH_MARKED,
    mrc::PATH_SLOW,
    mrc::PLANE_UNEVEN,
    path::ENTROPY,
    path::SPREAD,
    path::MTU,
    adapter::IDLE,
    gpu::WAITS,
    collective::SLOWED,
    quality::ICRC,
    thin::THIN,
    loss::CAPTURE,
    quality::CAPTURE,
    ecn::WORKING,
    idle::NOT_NETWORK,
];

/// The place of a rule among all.
fn place_of(id: &str) -> usize {
    RULES.iter().take_while(|rule| rule.id != id).count()
}

/// The rule of an id; one that needs every packet where there is none.
fn rule_of(id: &str) -> Rule {
    RULES
        .iter()
        .find(|rule| rule.id == id)
        .copied()
        .unwrap_or(Rule::TALLIED)
}

/// Tallies of all rules.
#[derive(Debug)]
pub(super) struct Findings {
    settings: Settings,
    blind: blind::BlindTally,
    ecn: ecn::EcnTally,
    cnp: cnp::CnpTally,
    class: class::ClassTally,
    loss: loss::LossTally,
    receiver: receiver::ReceiverTally,
    path: path::PathTally,
    faulty: faulty::FaultyTally,
    plan: plan::PlanTally,
    pause: pause::PauseTally,
    quality: quality::QualityTally,
    waste: waste::WasteTally,
    trimmed: trimmed::TrimmedTally,
    unpassed: unpassed::UnpassedTally,
    unseen: unseen::UnseenTally,
    gpu: gpu::GpuTally,
    adapter: adapter::AdapterTally,
    signs: FlowSigns,
    gaps: GapDistances,
    idle: idle::IdleTally,
    thin: thin::ThinTally,
}

/// Findings of a run, and the first sentence about them.
#[derive(Debug, Default)]
pub(super) struct Conclusion {
    /// The findings: roots before what they explain.
    pub(super) findings: Vec<FindingRow>,
    /// The first sentence.
    pub(super) sentence: String,
    /// The capture holds some packets only.
    pub(super) thin: bool,
}

/// True of a flow that the rules of RoCE judge. They conclude from gaps, CNPs and ports: MRC has gaps on every path, no CNPs and a port
/// for each packet.
fn is_judged(row: &FlowRow) -> bool {
    row.destination_qpn > MAX_MANAGEMENT_QPN && row.service != Service::Mrc.name()
}

impl Findings {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            pause: pause::PauseTally::new(settings.link_rate.is_some()),
            cnp: cnp::CnpTally::new(settings.link_rate.is_some()),
            settings,
            blind: blind::BlindTally::default(),
            ecn: ecn::EcnTally::default(),
            class: class::ClassTally::default(),
            loss: loss::LossTally::default(),
            receiver: receiver::ReceiverTally::default(),
            path: path::PathTally::default(),
            faulty: faulty::FaultyTally::default(),
            plan: plan::PlanTally::default(),
            quality: quality::QualityTally::default(),
            waste: waste::WasteTally::default(),
            trimmed: trimmed::TrimmedTally::default(),
            unpassed: unpassed::UnpassedTally::default(),
            unseen: unseen::UnseenTally::default(),
            gpu: gpu::GpuTally::default(),
            adapter: adapter::AdapterTally::default(),
            signs: FlowSigns::default(),
            gaps: GapDistances::default(),
            idle: idle::IdleTally::default(),
            thin: thin::ThinTally::default(),
        }
    }

    pub(super) fn event(&mut self, event: &EventRow) {
        self.loss.event(event);
        self.trimmed.event(event);
        self.faulty.event(event);
        self.pause.event(event);
        self.receiver.event(event);
        self.signs.event(event);
        self.gaps.event(event);
        self.unpassed.event(event);
        self.unseen.event(event);
    }

    /// Adds bytes that were sent at a tap in the current cell.
    #[inline]
    pub(super) fn sent(&mut self, tap: TapId, wire_bytes: u64) {
        self.pause.sent(tap, wire_bytes);
    }

    /// All rows of the cell were given.
    pub(super) fn end_cell(&mut self) {
        self.pause.end_cell();
    }

    /// A reading of a counter of the host that captures.
    pub(super) fn sample(&mut self, row: &SampleRow) {
        self.blind.sample(row);
    }

    pub(super) fn pause(&mut self, frame: &PauseFrame) {
        self.pause.frame(frame);
    }

    /// Readings of counters and gauges.
    pub(super) fn samples(&mut self, rows: &SampleColumns) {
        self.gpu.samples(rows);
        self.adapter.samples(rows);
    }

    /// A flow that is complete.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        let thresholds = &self.settings.thresholds;
        self.quality.flow(row);
        self.thin.flow(row);
        if !is_judged(row) {
            return;
        }
        self.ecn.flow(row, thresholds);
        self.cnp.flow(row, thresholds);
        // Packets that a capture lost are missing there, whatever other taps show.
        self.loss.captured(row);
        self.receiver.flow(row);
        self.waste.flow(row);
        self.unseen.flow(row);
        self.trimmed.flow(row);
        self.signs.flow(row);
        if row.counted {
            self.idle.flow(row, self.settings.link_rate);
            self.class.flow(row, self.settings.least_class_packets());
            self.loss.flow(row);
            self.unpassed.flow(row);
            self.path.flow(row, thresholds);
            self.faulty.flow(row, thresholds);
            self.plan.flow(row);
        }
    }

    /// The findings that nothing later can take back, the worst first: those of rules that conclude from what was seen, neither from
    /// what never came nor from how the run went on the whole. `live`: the flows that are not complete.
    pub(super) fn snapshot(
        &self,
        live: &[FlowRow],
        run: &RunSummary,
        directory: &Directory,
        episodes: &[Episode],
    ) -> Vec<FindingRow> {
        let (mut loss, mut receiver, mut quality) =
            (self.loss.clone(), self.receiver.clone(), self.quality.clone());
        let (mut signs, mut trimmed) = (self.signs.clone(), self.trimmed.clone());
        let counted = |row: &&FlowRow| row.counted && is_judged(row);
        for row in live.iter().filter(|row| is_judged(row)) {
            loss.captured(row);
            signs.flow(row);
            trimmed.flow(row);
        }
        for row in live.iter().filter(counted) {
            loss.flow(row);
            receiver.flow(row);
        }
        for row in live {
            quality.flow(row);
        }
        let (none, silent, base) = (Losses::new(), Silences::default(), (run, &self.settings));
        let context = Context {
            losing_class: losing_class(directory),
            ..Context::new(base, directory, episodes, (&none, &silent))
        };
        let losses = losses_by_destination(&self.gaps, &context);
        let silences = stall::silences(&context);
        let context = Context {
            losses: &losses,
            silences: &silences,
            ..context
        };
        let findings = [
            receiver.fatal(&context),
            trimmed.trimmed(),
            loss.network(&context)
                .filter(|_| !loss.are_explained(&context, quality.asked_again())),
            loss.timeout(&context),
            receiver.rnr(&context),
            incast::incast(&context),
            stall::stall(&context, loss.missed(), loss.sure_of_timeouts()),
        ];
        let thin = ThinCapture::new(self.settings.sampled, loss.missed(), run);
        let shown =
            |row: &FindingRow| thin.is_none_or(|thin: ThinCapture| thin.proves(rule_of(row.id).needs));
        let related = causes::relate(
            findings.into_iter().flatten().filter(shown),
            (&signs, &FlowsByRule::new()),
            &context,
            place_of,
        );
        related.into_iter().map(|finding| finding.row).collect()
    }

    /// The findings and the first sentence. The summary lacks only them and the episodes.
    pub(super) fn conclude(
        self,
        run: &RunSummary,
        (directory, arrivals, fabric, lateness): (&Directory, &Arrivals, &ConcludedPauses, &Lateness),
        (episodes, dropped): (&[Episode], u64),
        only: Option<&HashSet<FlowId>>,
    ) -> Conclusion {
        let (none, silent, base) = (Losses::new(), Silences::default(), (run, &self.settings));
        let context = Context {
            losing_class: losing_class(directory),
            dropped,
            fabric: Some(fabric),
            lateness: Some(lateness),
            only,
            ..Context::new(base, directory, episodes, (&none, &silent))
        };
        let losses = losses_by_destination(&self.gaps, &context);
        let silences = stall::silences(&context);
        let context = Context {
            losses: &losses,
            silences: &silences,
            ..context
        };
        let thin = ThinCapture::new(self.settings.sampled, self.loss.missed(), run);
        let icrc = self.quality.icrc(&context);
        // Packets that a receiver dropped for their ICRC were lost for that: one finding.
        let loss = self.loss.network(&context);
        let loss = loss.filter(|_| !self.loss.are_explained(&context, self.quality.asked_again()));
        let planned = self.plan.class(&context);
        // A direction in another class than planned is why the directions differ.
        let mismatch = self.class.mismatch(&context).filter(|_| planned.is_none());
        let drops = switch::drops(&context, loss.as_ref());
        let (unpassed, too_long) = self.unpassed.unpassed().unzip();
        let (faulty, on_faulty_paths) = self.faulty.faulty(directory).unzip();
        let findings = [
            self.blind.blind(&context),
            clock::clock(&context),
            job::completion(&context, &self.settings.job),
            ended::failed(&context),
            setup::setup(&context),
            program::no_answer(&context),
            self.receiver.fatal(&context),
            unpassed,
            faulty,
            self.trimmed.trimmed(),
            loss,
            self.unseen.unseen(&context),
            drops,
            self.loss.timeout(&context),
            self.waste.waste(&context),
            self.receiver.rnr(&context),
            self.pause.storm(&context),
            origin::origin(&context),
            incast::incast(&context),
            stall::stall(&context, self.loss.missed(), self.loss.sure_of_timeouts()),
            incast::unfair(&context),
            self.ecn.marks_without_cnp(&context),
            self.cnp.ignored(&context),
            self.cnp.pacing(&context),
            class::cnp_class(&context),
            planned,
            mismatch,
            self.plan.no_class(&context),
            self.ecn.not_capable(&context),
            switch::threshold(&context),
            imbalance::imbalance(&context),
            self.path.entropy(&context),
            self.path.spread(),
            match context.expectation.mtu {
                Some(_) => self.plan.mtu(&context),
                None => self.path.mtu(),
            },
            self.adapter.idle(&context),
            self.gpu.waits(&context),
            icrc,
            self.loss.capture(&context),
            self.quality
                .capture(&context, thin.is_none().then(|| self.loss.missed())),
            thin.map(|thin| self.thin.finding(thin, &context, RULES)),
            self.ecn.working(&context, &arrivals.conclude(directory)),
        ];
        let mut findings: Vec<FindingRow> = findings.into_iter().flatten().collect();
        findings.extend(late::late(&context));
        findings.extend(mrc::mrc(&context));
        findings.extend(self.idle.not_network(&context, &findings));
        if let Some(thin) = thin {
            findings.retain(|row| thin.proves(rule_of(row.id).needs));
        }
        let flows = FlowsByRule::from([
            (unpassed::UNPASSED.id, too_long.into_iter().flatten().collect()),
            (faulty::FAULTY.id, on_faulty_paths.into_iter().flatten().collect()),
        ]);
        let mut related = causes::relate(findings, (&self.signs, &flows), &context, place_of);
        if thin.is_some() {
            // A price is time between packets.
            for finding in &mut related {
                finding.row.waited_ns = None;
            }
        }
        Conclusion {
            sentence: sentence::first_sentence(&related, &context, thin),
            findings: related.into_iter().map(|finding| finding.row).collect(),
            thin: thin.is_some(),
        }
    }
}

/// Fills in which collectives of merged traces were slowed, and adds the finding about them. Their episodes are known, and the summary has
/// all other findings.
pub fn add_slowed_collectives(run: &mut RunSummary, thresholds: &Thresholds) {
    let Some(finding) = collective::slowed(run, thresholds) else {
        return;
    };
    // A thin capture shows too little of what happened meanwhile.
    if run.findings.iter().any(|finding| finding.id == thin::THIN.id) {
        return;
    }
    let findings = core::mem::take(&mut run.findings).into_iter().chain([finding]);
    run.findings = causes::in_order(findings.collect(), |row| row, place_of);
}

/// Adds the findings that documents of the job lead to, with what the packets show of them. The summary has all other findings, and the
/// states that documents give.
pub fn add_stuck_job(run: &mut RunSummary) {
    let stuck = stuck::stuck(run);
    if let Some(finding) = stuck
        .as_ref()
        .filter(|finding| finding.severity == Severity::Critical)
    {
        run.sentence = sentence::sentence_of(&finding.summary);
    }
    let found: Vec<FindingRow> = stuck.into_iter().chain(shortest::last(run)).collect();
    if !found.is_empty() {
        let findings = core::mem::take(&mut run.findings).into_iter().chain(found);
        run.findings = causes::in_order(findings.collect(), |row| row, place_of);
    }
}

#[cfg(test)]
mod tests;
