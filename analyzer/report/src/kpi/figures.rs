//! The key figures, from a run's sums.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::cast::float;
use roce_model::{Address, CollectiveWaitRow, FlowRow, RunSummary, Time};

use super::figure::Kpi;
use crate::series::{ShownSeries, Subject};

/// Flows whose data are compared, at most.
const MAX_FLOWS: usize = 1 << 16;
/// Flows with less than this part of the largest are no data but what belongs to it: credits, answers.
const MIN_SHARE: f64 = 0.02;
/// Flows are in balance within this part of their fair share (the draft).
const FAIR: f64 = 0.10;
/// Least number of slots in balance: fewer are chance.
const MIN_FAIR_SLOTS: usize = 4;

/// Sums over the flows of a run.
#[derive(Debug, Default)]
pub(super) struct FlowSums {
    payload: Vec<u64>,
    left_out: u64,
    ack_p99: Option<u64>,
}

impl FlowSums {
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if row.counted && row.payload_bytes > 0 {
            if self.payload.len() < MAX_FLOWS {
                self.payload.push(row.payload_bytes);
            } else {
                self.left_out += 1;
            }
        }
        if row.ack_rtt_kind == Some("rtt") {
            self.ack_p99 = self.ack_p99.max(row.ack_rtt_p99_ns);
        }
    }
}

fn kpi(id: &'static str, name: &'static str, formula: &'static str, unit: &'static str) -> Kpi {
    Kpi {
        id,
        name,
        formula,
        unit,
        value: None,
        inputs: Vec::new(),
        remark: String::new(),
    }
}

impl Kpi {
    fn of(self, value: Option<f64>, inputs: &[(&'static str, f64)]) -> Self {
        Self {
            value: value.filter(|value| value.is_finite()),
            inputs: inputs.to_vec(),
            ..self
        }
    }

    fn but(self, remark: impl Into<String>) -> Self {
        Self {
            remark: remark.into(),
            ..self
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// All figures of the draft, in its order.
pub(super) fn kpis(run: &RunSummary, sums: &FlowSums, (shown, width): (&[ShownSeries], u64)) -> Vec<Kpi> {
    let mut all = collectives(run).to_vec();
    all.extend(rates(run));
    all.extend(losses(run));
    all.extend(delays(run, sums));
    all.extend(congestion(run));
    all.push(balance(sums));
    all.push(convergence(shown, width));
    all.extend(without_packets());
    all
}

/// Collectives of the job that sent most.
struct JobCollectives {
    count: f64,
    mean_ns: f64,
    bytes_of_rank: f64,
}

impl JobCollectives {
    fn new(run: &RunSummary) -> Option<Self> {
        let mut jobs: BTreeMap<u32, Vec<&CollectiveWaitRow>> = BTreeMap::new();
        for row in &run.collective_waits {
            jobs.entry(row.job).or_default().push(row);
        }
        let of = |rows: &Vec<&CollectiveWaitRow>| {
            let hosts: BTreeSet<&str> = rows.iter().map(|row| &*row.address).collect();
            let is_of_job = |host: Address| hosts.contains(host.to_string().as_str());
            let sent = run.credits.iter().filter(|credit| is_of_job(credit.sender));
            let bytes: u64 = sent.clone().map(|credit| credit.bytes).sum();
            let senders: BTreeSet<Address> = sent.map(|credit| credit.sender).collect();
            let mut spans: BTreeMap<u32, (Time, Time)> = BTreeMap::new();
            for row in rows {
                let span = spans
                    .entry(row.collective)
                    .or_insert((row.start_time, row.end_time));
                *span = (span.0.min(row.start_time), span.1.max(row.end_time));
            }
            let count = float(spans.len() as u64);
            let sum: u64 = spans.values().map(|(start, end)| end.since(*start).0).sum();
            Self {
                count,
                mean_ns: float(sum) / count,
                bytes_of_rank: float(bytes) / float(senders.len() as u64) / count,
            }
        };
        let found = jobs.values().map(of).filter(|job| job.bytes_of_rank > 0.0);
        found.max_by(|one, other| {
            (one.bytes_of_rank * one.count).total_cmp(&(other.bytes_of_rank * other.count))
        })
    }
}

fn collectives(run: &RunSummary) -> [Kpi; 2] {
    let jct = kpi(
        "jct_ratio",
        "JCT ratio, for one collective",
        "time of a collective / (S x algo_factor / line rate); S x algo_factor is what a rank sends",
        "",
    );
    let bandwidth = kpi("busbw", "BusBW", "S x algo_factor / time of a collective", "GB/s");
    let Some(job) = JobCollectives::new(run) else {
        let remark = "no collectives with credits were captured: NCCL over RDMA WRITEs, and frames of 78 bytes or more";
        return [jct.but(remark), bandwidth.but(remark)];
    };
    let inputs = [
        ("collectives", job.count),
        ("mean_time_ns", job.mean_ns),
        ("bytes_of_a_rank", job.bytes_of_rank),
    ];
    let option = run.options.iter().find(|(name, _)| name == "link_rate_bps");
    let rate: Option<f64> = option.and_then(|(_, value)| value.parse().ok());
    // Bytes a nanosecond are GB a second.
    let bandwidth = bandwidth.of(ratio(job.bytes_of_rank, job.mean_ns), &inputs);
    let jct = match rate {
        Some(rate) => {
            let ideal_ns = job.bytes_of_rank * 8e9 / rate;
            let [one, two, three] = inputs;
            jct.of(ratio(job.mean_ns, ideal_ns), &[one, two, three, ("line_rate_bps", rate)])
                .but("computing between collectives is left out; the draft does not define algo_factor, bytes on the wire replace it")
        }
        None => jct.but("the run was made without --link-rate"),
    };
    [jct, bandwidth]
}

fn rates(run: &RunSummary) -> [Kpi; 3] {
    let seconds = run.span.map_or(0.0, |span| span.last.since(span.first).seconds());
    let each = |id, name, formula, unit, count: f64, input| {
        let per_second = ratio(count, seconds);
        let value = kpi(id, name, formula, unit).of(per_second, &[(input, count), ("seconds", seconds)]);
        if per_second.is_none() {
            value.but("the capture has no length")
        } else {
            value
        }
    };
    let bits = float(run.totals.new_payload_bytes()) * 8.0;
    [
        each(
            "throughput",
            "Throughput",
            "data without retransmissions / time",
            "bit/s",
            bits,
            "bits",
        ),
        each(
            "retransmissions_per_second",
            "Retransmissions",
            "retransmitted packets / time",
            "packets/s",
            float(run.totals.retransmitted_packets),
            "packets",
        ),
        each(
            "out_of_order_per_second",
            "Out of order",
            "packets that came after later ones / time",
            "packets/s",
            float(run.totals.reordered),
            "packets",
        ),
    ]
}

fn losses(run: &RunSummary) -> [Kpi; 1] {
    let dropped = kpi(
        "drop_rate",
        "Packet drop rate",
        "lost packets / sent packets x 10^6",
        "ppm",
    );
    let lost: u64 = run.hops.iter().map(|hop| hop.lost).sum();
    let matched: u64 = run.hops.iter().map(|hop| hop.matched).sum();
    let sent = float(matched + lost);
    if sent > 0.0 {
        let value = ratio(float(lost) * 1e6, sent);
        return [dropped.of(value, &[("lost", float(lost)), ("sent", sent)])];
    }
    let lost = run.totals.network_lost + run.totals.response_network_lost;
    let sent = float(run.totals.data_packets);
    let value = ratio(float(lost) * 1e6, sent);
    let remark = "a lower bound, from one place on the way: losses that only two taps show are not in it";
    [dropped
        .of(value, &[("lost", float(lost)), ("sent", sent)])
        .but(remark)]
}

fn delays(run: &RunSummary, sums: &FlowSums) -> [Kpi; 4] {
    let one_way = kpi(
        "latency_p99",
        "One-way latency, P99",
        "99th percentile of the time from tap to tap",
        "ns",
    );
    let delay = run
        .hops
        .iter()
        .filter_map(|hop| hop.delay_p99_ns)
        .max_by(f64::total_cmp);
    let one_way = match delay {
        Some(_) => one_way
            .of(delay, &[("hops", float(run.hops.len() as u64))])
            .but("of the slowest flow between two taps"),
        None => one_way.but("no two taps saw the same packets"),
    };
    let credits = float(run.credits.len() as u64);
    let slowest = |of: &dyn Fn(&roce_model::CreditRow) -> Option<u64>| {
        run.credits.iter().filter_map(of).max().map(float)
    };
    let figure = |id, name, formula, value: Option<f64>, without: &str| {
        let figure = kpi(id, name, formula, "ns");
        match value {
            Some(_) => figure
                .of(value, &[("connections", credits)])
                .but("of the slowest connection"),
            None => figure.but(without),
        }
    };
    let cts = figure(
        "cts_delay_p99",
        "CTS delay, P99",
        "credit at the sender's port less the same at the receiver's (the draft has no formula)",
        slowest(&|row| row.cts_delay_p99_ns),
        "needs captures at both ends of a connection with credits",
    );
    let data = figure(
        "credit_to_data_p99",
        "CTS to data, P99",
        "first packet of the data less its credit, at one port (the draft has no formula)",
        slowest(&|row| row.credit_to_data_p99_ns),
        "no connection with credits was captured",
    );
    let ack = kpi(
        "ack_delay_p99",
        "ACK delay, P99",
        "ACK less the packet that asks for it, at the sender's port (the draft has no formula)",
        "ns",
    );
    let ack = match sums.ack_p99 {
        Some(time) => ack.of(Some(float(time)), &[]).but("of the slowest flow"),
        None => ack.but("no tap beside a sender"),
    };
    [one_way, cts, data, ack]
}

fn congestion(run: &RunSummary) -> [Kpi; 3] {
    let (marked, data) = (float(run.totals.data_ce), float(run.totals.data_packets));
    let ecn = kpi(
        "ecn_ratio",
        "ECN marking ratio",
        "data packets with CE / data packets",
        "",
    )
    .of(ratio(marked, data), &[("marked", marked), ("packets", data)]);
    let ecn = if data > 0.0 {
        ecn
    } else {
        ecn.but("no data packets were captured")
    };
    let pfc = kpi("pfc_count", "PFC frames", "number of pause frames", "frames");
    let frames = float(run.totals.pause_frames);
    let pfc = if frames > 0.0 {
        pfc.of(Some(frames), &[]).but("those that passed a tap")
    } else {
        pfc.but("no tap saw one, which few places on the way can: counters of ports and switches have them (--samples)")
    };
    let time = kpi(
        "pause_time",
        "PFC pause time",
        "time in which ports stood still for pauses",
        "ns",
    );
    let waited: u64 = run.waits.iter().filter_map(|row| row.paused_ns).sum();
    let time = if run.waits.is_empty() {
        time.but("no pauses were captured or counted")
    } else {
        time.of(Some(float(waited)), &[("ports", float(run.waits.len() as u64))])
    };
    [ecn, pfc, time]
}

fn balance(sums: &FlowSums) -> Kpi {
    let jain = kpi(
        "jfi",
        "Jain's fairness index",
        "(sum x)^2 / (n sum x^2) over flows",
        "",
    );
    let most = sums.payload.iter().copied().max().unwrap_or_default();
    let bytes = sums.payload.iter().map(|bytes| float(*bytes));
    let data: Vec<f64> = bytes.filter(|bytes| *bytes >= float(most) * MIN_SHARE).collect();
    let (sum, squares) = data
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let flows = float(data.len() as u64);
    let jain = jain.of(ratio(sum * sum, flows * squares), &[("flows", flows)]);
    match (data.is_empty(), sums.left_out) {
        (true, _) => jain.but("no data were captured"),
        (_, 0) => jain.but("the draft's is over links: over flows it is a hint only"),
        (_, more) => jain.but(format!(
            "over flows it is a hint only; {more} more flows are left out"
        )),
    }
}

/// The time until all flows to the busiest receiver have their fair share, from the first slot in which all of them send.
fn convergence(shown: &[ShownSeries], width: u64) -> Kpi {
    let figure = kpi(
        "dcqcn_convergence",
        "DCQCN convergence time",
        "from the first time that all flows send until each is within 10 % of the fair share",
        "ns",
    );
    let mut receivers: BTreeMap<Address, Vec<&ShownSeries>> = BTreeMap::new();
    for one in shown.iter().filter(|one| matches!(one.subject, Subject::Flow(_))) {
        if let Some((_, receiver)) = one.ends() {
            receivers.entry(receiver).or_default().push(one);
        }
    }
    let bytes = |one: &&ShownSeries| {
        one.series
            .slots
            .iter()
            .map(|slot| slot.payload_bytes)
            .sum::<u64>()
    };
    let busiest = receivers.into_values().filter_map(|mut flows| {
        let most = flows.iter().map(bytes).max()?;
        flows.retain(|flow| float(bytes(flow)) >= float(most) * MIN_SHARE);
        (flows.len() > 1).then_some(flows)
    });
    let Some(flows) = busiest.max_by_key(|flows| (flows.len(), flows.iter().map(bytes).sum::<u64>())) else {
        return figure.but("no two flows send data to one receiver");
    };
    let mut slots: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for slot in flows
        .iter()
        .flat_map(|flow| &flow.series.slots)
        .filter(|slot| slot.payload_bytes > 0)
    {
        slots.entry(slot.at).or_default().push(slot.payload_bytes);
    }
    slots.retain(|_, shares| shares.len() == flows.len());
    let is_fair = |shares: &[u64]| {
        let mean = float(shares.iter().sum()) / float(shares.len() as u64);
        shares
            .iter()
            .all(|share| (float(*share) - mean).abs() <= FAIR * mean)
    };
    let fair: Vec<(u64, bool)> = slots.iter().map(|(at, shares)| (*at, is_fair(shares))).collect();
    let inputs = [("flows", float(flows.len() as u64)), ("slot_ns", float(width))];
    let after = fair
        .iter()
        .rposition(|(_, is_fair)| !is_fair)
        .map_or(0, |place| place + 1);
    match (fair.first(), fair.get(after)) {
        (Some((first, _)), Some((at, _))) if fair.len() - after >= MIN_FAIR_SLOTS => {
            figure.of(Some(float((at - first) * width)), &inputs)
        }
        (Some(_), _) => figure
            .of(None, &inputs)
            .but("they were not in balance at the end"),
        (None, _) => figure.but("the flows to the busiest receiver never send at the same time"),
    }
}

/// Figures that packets of one run cannot give.
fn without_packets() -> [Kpi; 6] {
    [
        kpi("mmr", "MMR", "load of the most loaded link / mean load", "")
            .but("needs the loads of all links of the fabric: counters of switches have them"),
        kpi(
            "interference",
            "Interference factor",
            "JCT in contention / JCT alone",
            "",
        )
        .but("two runs: `roce-analyze compare`"),
        kpi("failover", "Failover", "duration of loss, lost packets", "ns")
            .but("two runs: `roce-analyze compare`; losses of this run are the drop rate"),
        kpi(
            "queue_depth",
            "Queue depth",
            "occupancy of a switch's buffer",
            "bytes",
        )
        .but("no packet shows it: telemetry of switches does"),
        kpi("host_load", "CPU, memory, power", "utilization", "").but("no packet shows it"),
        kpi("uet", "UET figures", "those of Ultra Ethernet Transport", "").but("RoCEv2 has none of them"),
    ]
}
