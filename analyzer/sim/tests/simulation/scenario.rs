//! Scenarios that are wrong say what is wrong.

use roce_sim::Scenario;

const MINIMAL: &str =
    "duration = \"1ms\"\n[network]\nhosts = 2\nrate = \"25Gbps\"\n[[flow]]\nfrom = \"h1\"\nto = \"h2\"\n";

#[test]
fn what_is_wrong_is_said() {
    assert!(Scenario::parse(MINIMAL).is_ok());
    for (more, text) in [
        ("speed = 3", "unknown field `speed`"),
        ("message = \"4 apples\"", "\"4 apples\" is not a size"),
        ("[nic]\nmtu = 1000", "nic.mtu is 1000"),
        ("[switch]\nkmin = \"2MB\"", "switch.kmin is more than switch.kmax"),
        ("service = \"ud\"", "needs op = \"send\""),
        (
            "[[impairment]]\nfrom=\"h1\"\nto=\"leaf1\"\nloss = 2.0",
            "impairment.loss is 2",
        ),
        ("[switch]\npause = \"maybe\"", "unknown variant `maybe`"),
    ] {
        let error = Scenario::parse(&format!("{MINIMAL}{more}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "{more}: {error}");
    }
}

#[test]
fn names_that_are_not_there_are_told() {
    for (more, text) in [
        ("[[tap]]\nat = \"h9\"", "no host \"h9\""),
        ("[[tap]]\nat = \"leaf1:h9\"", "no link from \"leaf1\" to \"h9\""),
        (
            "[[impairment]]\nfrom = \"h1\"\nto = \"h2\"",
            "no link from \"h1\" to \"h2\"",
        ),
    ] {
        let scenario = Scenario::parse(&format!("{MINIMAL}{more}")).unwrap();
        let error = roce_sim::simulate_in_memory(&scenario).unwrap_err().to_string();
        assert!(error.contains(text), "{more}: {error}");
    }
}

#[test]
fn odd_scenarios_come_to_an_end() {
    for more in [
        "message = 0",
        "message = \"1GiB\"\n[switch]\nbuffer = 0",
        "op = \"read\"\nmessage = 0\n[nic]\noutstanding_reads = 0",
        "[nic]\nwindow = 0\ntimeout = 0",
        "[nic]\ntimeout = \"1ns\"\nretries = 3",
        "[[pause]]\nhost = \"h2\"\non = \"1us\"\noff = \"1us\"\n[switch]\npause = \"802.3x\"\nxoff = 0\nxon = 0\nheadroom = 0",
        "[[host]]\nname = \"h2\"\ndrain = \"1bps\"\nxoff = 0\nxon = 0\n[switch]\npause = \"pfc\"\nquanta = 1",
        "[[impairment]]\nfrom = \"leaf1\"\nto = \"h2\"\nloss = 1.0\n[nic]\ntimeout = \"10us\"",
        "[[impairment]]\nfrom = \"leaf1\"\nto = \"h2\"\nreorder = 1.0\nreorder_delay = \"1ms\"",
        "[dcqcn]\ng = 1.0\ninitial_alpha = 1e300\nalpha_timer = 0\nrate_timer = 0\nbyte_counter = 0\n[switch]\nkmin = 0\nkmax = 0",
        "outstanding = 0",
        "qps = 40\nqpn = \"same\"\npsn = \"zero\"\nservice = \"uc\"",
        "reuse = 0\ncm = true",
        "receives = 0\nop = \"send\"",
    ] {
        let scenario = Scenario::parse(&format!("{MINIMAL}{more}")).unwrap();
        let truth = roce_sim::simulate_in_memory(&scenario).unwrap().0;
        let left: u64 = truth
            .flows
            .iter()
            .map(|flow| flow.packets_sent - flow.packets_received - flow.packets_lost)
            .sum();
        assert_eq!(left, truth.in_flight, "{more}");
    }
}
