//! Who is late: a rank that begins after the others, a receiver that gives no credit, or the network. The input are
//! messages that their receiver asked for; the rules are those of NCCL's network transport.

mod clocks;
mod cut;
mod graph;
mod inputs;
mod job;
mod needs;
mod normal;
mod port;
mod roots;
mod starts;

/// Of a collective, messages may be left out: one of so many. With more of them, nothing is said about it.
pub(crate) const MAX_LEFT_OUT_DIVISOR: u64 = 20;

use roce_model::CreditedConnection;

pub fn debug(connections: &[CreditedConnection]) {
    let clocks = clocks::HostClocks::new(connections, |_| None);
    for mut job in job::jobs(connections, &clocks, &[]) {
        let is_cut = cut::cut(&mut job);
        inputs::find_inputs(&mut job);
        println!("job: {} ranks {} links cut {is_cut} {:?} left out {:?}", job.ranks.len(), job.links.len(), job.starts, job.left_out);
        for link in &job.links { println!(" {}>{} depth {} inputs {:?} unc {}", link.sender, link.receiver, link.depth, link.inputs, link.uncertainty); }
        let graph = graph::Graph::new(&job);
        let usual = normal::UsualLags::new(&graph);
        let ends = graph.collective_ends(job.collectives(), |e| graph.time(e));
        let first = graph.events.iter().filter(|e| e.time != job::UNKNOWN).map(|e| e.time).min().unwrap();
        let length = ends.iter().max().unwrap() - first;
        if std::env::var("DUMP").is_ok() {
            let u = usual.without(&graph, &Default::default());
            for (id, e) in graph.events.iter().enumerate() {
                if let Some(n) = graph.last_need(id as u32) && e.owner != graph::NOBODY && !e.is_blind {
                    let x = n.lag - u.lag(e, n);
                    if x > 200_000 {
                        let (a, b, c) = e.needs;
                        let mut m = id / 6; let mut l = 0;
                        while l < job.links.len() && m >= job.links[l].messages.len() { m -= job.links[l].messages.len(); l += 1; }
                        println!("  coll {} link {l} msg {} mark {} owner {:?} {:?} lag {} us excess {} us; needs {:?}", e.collective, m % 12, id % 6, graph.owners[e.owner as usize], n.kind, n.lag / 1000, x / 1000,
                            (a..c).map(|p| { let n = graph.needs[p as usize]; format!("{:?} {}{}", n.kind, n.lag / 1000, if p == b { "*" } else { "" }) }).collect::<Vec<_>>());
                    }
                }
            }
        }
        println!(" length {:.3} ms", length as f64 / 1e6);
        for root in roots::RootSearch::new(&job, (&graph, &usual), length, is_cut).roots() {
            println!(" ROOT {:?} {:.3} ms {:?}", root.place, root.cost as f64 / 1e6, root.costs.iter().map(|c| c / 1000).collect::<Vec<_>>());
        }
    }
}
