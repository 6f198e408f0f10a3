//! Mirrors of first and last packets, answers and CNPs only, for switches whose filters match the opcode of the BTH (its first byte: 8 bytes
//! behind the begin of the UDP header). Middles are left out by three entries; the rest of UDP port 4791 is mirrored.
//!
//! SONiC since 202305: `BTH_OPCODE` as value and mask (sonic-buildimage 13340, sonic-swss 2617). A table type of one's own has to name the action
//! `COUNTER`, or its rules may fail (sonic-swss 3599).
//! NX-OS: `udf` and `filter access-group` are those of the Nexus 9000 command reference, release 9.3(x). Names of regions are those of the table
//! "Features per ACL TCAM Region" (security guide, release 10.3(x)). Nothing public says which region of Cloud Scale takes the field.

use core::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use super::sonic::text;
use super::step::Step;
use crate::inventory::SwitchKind;

/// Opcodes of Middles: of SEND, WRITE and READ response, reliable connection (IBTA table 38).
const MIDDLES: [u8; 3] = [0x01, 0x07, 0x0e];
/// Name of the filter and the session.
const NAME: &str = "ROCE_ENDS";

/// Ends of a mirror's tunnel: the switch's own address and that of the host that captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MirrorTunnel {
    /// Address of the switch.
    pub from: Ipv4Addr,
    /// Address of the host that captures.
    pub to: Ipv4Addr,
}

/// Commands that mirror what enters these interfaces, without Middles.
///
/// # Errors
/// Text for a family whose filters are not known to match the opcode.
pub fn mirror(kind: SwitchKind, tunnel: MirrorTunnel, interfaces: &[String]) -> Result<Vec<Step>, String> {
    match kind {
        SwitchKind::Nexus => Ok(nexus(tunnel, interfaces)),
        SwitchKind::Sonic => Ok(sonic(tunnel, interfaces)),
        SwitchKind::Eos => Err(
            "EOS: user-defined fields of its filters are those of some platforms (7280R3), and no command that matches the BTH's opcode in a mirror is known here"
                .to_owned(),
        ),
        SwitchKind::Cumulus => {
            Err("Cumulus Linux: its ACLs match addresses and ports, not the BTH's opcode".to_owned())
        }
        SwitchKind::Other => Err("the filters of this system are not known here".to_owned()),
    }
}

fn nexus(tunnel: MirrorTunnel, interfaces: &[String]) -> Vec<Step> {
    let mut filter = Step::new(&[
        "The filter leaves out Middles of SEND, WRITE and READ response. Undo: no ip access-list ROCE_ENDS",
        "Try it first: no capture of the mirror may hold a Middle, opcode 0x01, 0x07 or 0x0e.",
    ])
    .run(format!("ip access-list {NAME}"));
    for (at, opcode) in MIDDLES.iter().enumerate() {
        filter = filter.run(format!(
            "  {} deny udp any any eq 4791 udf ROCE_OPCODE {opcode:#04x} 0xff",
            10 * (at + 1)
        ));
    }
    let mut session = Step::new(&[
        "ERSPAN of what enters the ports. The capture is thin: roce-analyze --sampled ends. Undo: no monitor session 1",
    ])
    .run(format!("monitor erspan origin ip-address {} global", tunnel.from))
    .run("monitor session 1 type erspan-source")
    .run("  erspan-id 1")
    .run("  vrf default")
    .run(format!("  destination ip {}", tunnel.to));
    for interface in interfaces {
        session = session.run(format!("  source interface {interface} rx"));
    }
    vec![
        Step::new(&[
            "A user-defined field: the BTH's opcode, 8 bytes behind the begin of the outer UDP header.",
            "Try it first: the region is ifacl for switched ports and racl for routed ones. Chips since 9300-EX (Cloud Scale) may want ing-ifacl,",
            "ing-l2-span-filter or ing-l3-span-filter; show hardware access-list tcam region lists theirs. It needs a reload. Undo: no before each line",
        ])
        .run("udf ROCE_OPCODE header outer l4 8 1")
        .run("hardware access-list tcam region ifacl qualify udf ROCE_OPCODE")
        .run("copy running-config startup-config")
        .run("reload"),
        filter.run("  40 permit udp any any eq 4791"),
        session
            .run(format!("  filter access-group {NAME}"))
            .run("  no shut"),
    ]
}

fn sonic(tunnel: MirrorTunnel, interfaces: &[String]) -> Vec<Step> {
    let rule = |at: usize| format!("{NAME}|RULE_{at}");
    let mut rules: Map<String, Value> = Map::new();
    for (at, opcode) in MIDDLES.iter().enumerate() {
        rules.insert(
            rule(at + 1),
            json!({
                "PRIORITY": (900 - at).to_string(),
                "L4_DST_PORT": "4791",
                "BTH_OPCODE": format!("{opcode:#04x}/0xff"),
                "PACKET_ACTION": "FORWARD",
            }),
        );
    }
    rules.insert(
        rule(MIDDLES.len() + 1),
        json!({ "PRIORITY": "100", "L4_DST_PORT": "4791", "MIRROR_INGRESS_ACTION": NAME }),
    );
    let kind = json!({
        "MATCHES": ["L4_DST_PORT", "BTH_OPCODE"],
        "ACTIONS": ["PACKET_ACTION", "MIRROR_INGRESS_ACTION", "COUNTER"],
        "BIND_POINTS": ["PORT"],
    });
    let table = json!({ "policy_desc": NAME, "type": NAME, "stage": "ingress", "ports": interfaces });
    let session = json!({
        "type": "ERSPAN", "src_ip": tunnel.from, "dst_ip": tunnel.to,
        "gre_type": "0x88be", "dscp": "8", "ttl": "64", "queue": "0",
    });
    let tables = Map::from_iter([
        ("MIRROR_SESSION".to_owned(), json!({ NAME: session })),
        ("ACL_TABLE_TYPE".to_owned(), json!({ NAME: kind })),
        ("ACL_TABLE".to_owned(), json!({ NAME: table })),
        ("ACL_RULE".to_owned(), rules.into()),
    ]);
    vec![
        Step::new(&[
            "A mirror of what enters the ports, without Middles of SEND, WRITE and READ response.",
            "Try it first: SONiC matches BTH_OPCODE since 202305, and the chip has to support it. Unmirrored packets of these ports pass as before.",
            "The capture is thin: roce-analyze --sampled ends. Link: stays up. Undo: load the former config_db.json.",
        ])
        .run("cat > roce-mirror.json <<'EOF'")
        .lines(&text(&tables))
        .run("EOF")
        .run("sudo config load -y roce-mirror.json"),
        Step::new(&["See that it works."])
            .run("show mirror_session")
            .run("show acl rule"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_leave_out_middles_alone() {
        let tunnel = MirrorTunnel {
            from: Ipv4Addr::new(10, 0, 0, 1),
            to: Ipv4Addr::new(10, 0, 0, 9),
        };
        let ports = ["Ethernet1/1".to_owned()];
        let lines = |kind| -> Vec<String> {
            let steps = mirror(kind, tunnel, &ports).unwrap();
            steps.into_iter().flat_map(|step| step.commands).collect()
        };
        let nexus = lines(SwitchKind::Nexus);
        // IBTA table 38: 1 SEND Middle, 7 WRITE Middle, 14 READ response Middle.
        for opcode in ["0x01", "0x07", "0x0e"] {
            assert!(
                nexus
                    .iter()
                    .any(|line| line.ends_with(&format!("udf ROCE_OPCODE {opcode} 0xff")))
            );
        }
        assert!(nexus.contains(&"  destination ip 10.0.0.9".to_owned()));
        let sonic = lines(SwitchKind::Sonic);
        let document = sonic[1..].iter().take_while(|line| *line != "EOF").cloned();
        let document: Value = serde_json::from_str(&document.collect::<String>()).unwrap();
        let rules = document["ACL_RULE"].as_object().unwrap();
        let mirrored = rules
            .values()
            .filter(|rule| rule.get("MIRROR_INGRESS_ACTION").is_some());
        assert_eq!((rules.len(), mirrored.count()), (4, 1));
        assert_eq!(document["MIRROR_SESSION"]["ROCE_ENDS"]["dst_ip"], "10.0.0.9");
        for kind in [SwitchKind::Eos, SwitchKind::Cumulus] {
            assert!(mirror(kind, tunnel, &ports).unwrap_err().contains("opcode"));
        }
    }
}
