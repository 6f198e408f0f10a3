//! Texts that commands about many hosts read. The first byte picks it: 0 an inventory, 1 a plan of traffic, 2
//! the manifest of a fleet's run, 3 answers to the questions before a capture and its report, 4 answers to the
//! questions before traffic.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use roce_jobs::traffic::{
    Endpoint, Facts, MAX_STREAMS, Role, Speeds, TrafficPlan, concerns, loads, streams, words,
};
use roce_remote::fleet::manifest::Manifest;
use roce_remote::fleet::preflight::{self, By};
use roce_remote::fleet::report::Report;
use roce_remote::traffic::HostFacts;
use roce_switches::inventory::Inventory;

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((kind, rest)) = roce_fuzz::kind(data, 5) else {
        return Corpus::Reject;
    };
    let text = String::from_utf8_lossy(rest);
    match kind {
        0 => inventory(&text),
        1 => plan(&text),
        2 => manifest(&text),
        3 => capture(&text),
        _ => traffic(&text),
    }
    Corpus::Keep
});

fn inventory(text: &str) {
    let inventory = match Inventory::parse(text) {
        Ok(inventory) => inventory,
        Err(error) => return check_mistake(text, error.line, &error.text),
    };
    let hosts = inventory.hosts.iter().map(|host| (&host.name, host.address()));
    let switches = inventory.switches.iter().map(|one| (&one.name, one.address()));
    let hypervisors = inventory.hypervisors.iter().map(|one| (&one.name, one.address()));
    for (name, address) in hosts.chain(switches).chain(hypervisors) {
        assert!(!name.is_empty() && !name.contains(['/', ' ']), "{name:?}");
        assert!(!address.is_empty() && !address.starts_with('-'), "{address:?}");
    }
}

fn plan(text: &str) {
    let plan = match TrafficPlan::parse(text) {
        Ok(plan) => plan,
        Err(error) => return check_mistake(text, error.line, &error.text),
    };
    let streams = streams(&plan);
    assert!((1..=MAX_STREAMS).contains(&streams.len()));
    let facts = Facts {
        gid: None,
        peer: "192.0.2.1",
    };
    for stream in streams.iter().take(8) {
        for role in [Role::Server, Role::Client] {
            let words = words(&plan, stream, role, facts);
            assert!(words.len() > 1 && !words.iter().any(|word| word.contains('\0')));
        }
    }
    for concern in concerns(&plan, &[], &Speeds::default(), false) {
        assert!(!concern.text.is_empty());
    }
    let _ = loads(&plan, &Speeds::default());
}

/// Checks that a mistake is in one line, and in the text.
fn check_mistake(text: &str, line: usize, mistake: &str) {
    let lines = text.matches('\n').count() + 1;
    assert!((1..=lines).contains(&line), "{line} of {lines}: {mistake}");
    assert!(!mistake.is_empty() && !mistake.contains('\n'), "{mistake:?}");
}

fn manifest(text: &str) {
    let Ok(manifest) = Manifest::parse(text) else {
        return;
    };
    let written = serde_json::to_string(&manifest).expect("a manifest is written");
    let again = Manifest::parse(&written).expect("what was written is read");
    assert_eq!(again, manifest);
    for host in &manifest.hosts {
        for file in &host.files {
            assert!(
                !file.name.contains('/') && !file.name.starts_with('.'),
                "{file:?}"
            );
            check_remote(&file.remote);
        }
        if let Some(place) = host.place(&manifest.run) {
            let folder = place.folder();
            assert!(folder.starts_with('/') && !folder.contains("/../"), "{folder:?}");
        }
    }
}

fn capture(text: &str) {
    let mut facts = preflight::Facts::default();
    let mut report = Report::default();
    for line in text.lines() {
        facts.take(line);
        report.take(line);
    }
    for by in [By::Any, By::Live, By::Tcpdump] {
        if let Err(unable) = facts.choose("0.1.0", by) {
            assert!(!unable.to_string().is_empty());
        }
    }
    if let Ok(chosen) = facts.chosen(&[]) {
        let _ = facts.speed_mbps(&chosen);
        assert!(chosen.iter().all(|name| !name.contains(['/', ' ', '\''])));
    }
    let _ = (report.reason(), report.dropped());
    let _ = report.rise(|_| true).is_traffic();
    for file in &report.files {
        check_remote(&file.name);
    }
}

/// Checks that a name leads nowhere but below a folder.
fn check_remote(name: &str) {
    let is_odd = |part: &str| part.is_empty() || part == "..";
    assert!(
        !name.split('/').any(is_odd) && !name.contains(['\'', '$', ' ']),
        "{name:?}"
    );
}

fn traffic(text: &str) {
    let facts = HostFacts::parse(text);
    for (device, number) in facts.ports.keys() {
        let Ok(endpoint) = Endpoint::parse(&format!("gpu1:{device}:{number}")) else {
            continue;
        };
        assert!(facts.port(&endpoint).is_some());
        let _ = (facts.gid(&endpoint), facts.speed(&endpoint));
        let _ = (facts.address(&endpoint), facts.interface(&endpoint));
    }
}
