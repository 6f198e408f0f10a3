//! Recognition of symptoms by the words of a line, and kinds of symptoms.

use super::symptom::Symptom;
use super::{adapter_symptoms, connection_symptoms};

/// Symptoms of lines of known drivers and programs that say no more than that something failed, or did not end.
static TIMED_OUT: Symptom = Symptom {
    name: "operation timed out",
    meaning: "something did not end in time: look for drops, the link, and whether the other side lives",
    is_consequence: false,
    words: &[],
};
static FAILED: Symptom = Symptom {
    name: "operation failed",
    meaning: "an operation failed: look for the lines before it, and the log of the other side",
    is_consequence: false,
    words: &[],
};

/// Symptoms; the first whose words fit counts.
fn symptoms() -> impl Iterator<Item = &'static Symptom> {
    adapter_symptoms::SYMPTOMS
        .iter()
        .chain(connection_symptoms::SYMPTOMS)
}

/// A server of NFS that did not answer and does again.
pub(super) static SERVER_BACK: Symptom = Symptom {
    name: "server was silent",
    meaning: "a server of NFS did not answer for a while and answers again: look for drops and the link at that time, if it comes often",
    is_consequence: false,
    words: &[],
};

/// A request of NVMe over RDMA that was not answered.
static REQUEST_TIMEOUT: Symptom = Symptom {
    name: "request timeout",
    meaning: "the target did not answer a request in time: look for drops, the link, and whether the target's program lives",
    is_consequence: false,
    words: &[],
};

impl Symptom {
    /// True if it is an event, after which requests may fail or not.
    pub fn is_event(&self) -> bool {
        matches!(
            self.name,
            "GID changed"
                | "adapter event"
                | "link down"
                | "PCIe bandwidth limited"
                | "transport not available"
                | "no driver library"
        )
    }

    /// True if it is a state or an event that harms no request: a note.
    pub fn is_harmless(&self) -> bool {
        matches!(
            self.name,
            "client reregistration"
                | "PCIe error corrected"
                | "no cable"
                | "openib not used"
                | "server was silent"
                | "no GPUDirect RDMA"
        )
    }

    /// True if a number beside its words is the connection manager's reason (IBTA 12.6.7.2), and no status of a completion.
    pub(super) fn has_reason(&self) -> bool {
        matches!(
            self.name,
            "connection rejected"
                | "peer unreachable"
                | "address not resolved here"
                | "no RDMA device for the address"
                | "route not resolved here"
                | "connection failed"
                | "connection lost"
                | "command refused"
                | "queue pair error event"
                | "firmware command timed out"
                | "no pages for firmware"
                | "no cable"
                | "PCIe bandwidth limited"
                | "PCIe error"
                | "no provider"
                | "listener not set up"
                | "test failed"
                | "PCIe error corrected"
                | "client reregistration"
                | "module failed"
                | "firmware failed"
                | "fatal firmware error"
                | "queue pair not set up"
                | "operation failed"
                | "operation timed out"
        )
    }

    /// True if it does not say what happened: the words of the line do.
    pub(super) fn needs_words(&self) -> bool {
        self.is_unnamed()
            || matches!(
                self.name,
                "queue pair error event" | "command refused" | "call refused" | "adapter event"
            )
    }

    /// True if it says no more than that something failed.
    pub(super) fn is_unnamed(&self) -> bool {
        *self == TIMED_OUT || *self == FAILED
    }

    /// The symptom of a line of a known program that says no more than that something failed.
    pub(super) fn unnamed(lower: &str) -> &'static Self {
        if lower.contains("timed out") || lower.contains("timeout") {
            &TIMED_OUT
        } else {
            &FAILED
        }
    }

    /// The symptom whose words are in a text in small letters.
    pub(super) fn in_text(lower: &str) -> Option<&'static Self> {
        let by_words = symptoms().find(|symptom| {
            let has_all = |words: &&[&str]| words.iter().all(|word| lower.contains(word));
            symptom.words.iter().any(has_all)
        });
        by_words.or_else(|| is_nvme_timeout(lower).then_some(&REQUEST_TIMEOUT))
    }
}

/// `nvme nvme0: I/O tag 12 (300c) opcode 0x2 (Read) QID 4 timeout`, or `I/O 12 QID 4 timeout` of older kernels (Linux
/// drivers/nvme/host/rdma.c). Those of NVMe over PCI go on behind `timeout`, and those over TCP have a type.
fn is_nvme_timeout(lower: &str) -> bool {
    lower.contains("nvme")
        && lower.contains("i/o ")
        && lower.contains(" qid ")
        && !lower.contains(" type ")
        && lower.trim_end().ends_with(" timeout")
}
