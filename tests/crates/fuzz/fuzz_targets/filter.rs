//! Expressions of `--flow`. Errors point into the text, and an expression that does not need a flow's DSCP gives the same answer with each.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_model::{Filter, FlowKey};
use roce_wire::{Address, Qpn, Service};

fn flow(source: Address, destination: Address, qpn: u32, service: Service) -> FlowKey {
    FlowKey {
        source,
        destination,
        destination_qpn: Qpn::new(qpn),
        source_qpn: Qpn::new(0),
        vlan: (qpn % 2 == 0).then_some(7),
        vni: (qpn % 2 == 1).then_some(9),
        service,
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "{error}");
            return;
        }
    };
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter.clone()));
    let (a, b) = (Address::v4([10, 0, 0, 1]), Address::v6([0xfd; 16]));
    for flow in [
        flow(a, b, 0x11, Service::Rc),
        flow(b, a, 0x12, Service::Ud),
        flow(a, a, 0, Service::Cnp),
    ] {
        if filter.matches_flow(&flow, None) {
            for dscp in 0..64 {
                assert!(filter.matches_flow(&flow, Some(dscp)), "{filter}");
            }
        }
    }
});
