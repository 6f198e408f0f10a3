//! Statuses of completions, once for all programs: their numbers, names, wordings and meaning.

/// Place of a fault, as a status shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request itself, the memory or the program of the side that wrote the line.
    Local,
    /// The other side refused it.
    Remote,
    /// Nothing came back: the network, or the other side is gone.
    Silence,
    /// The other side had no buffer.
    Receiver,
    /// It follows another error.
    Consequence,
    /// It is not known.
    Unclear,
}

/// A status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its number in `enum ibv_wc_status`.
    pub number: u32,
    /// Its name in libibverbs.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub meaning: &'static str,
    /// Who is at fault.
    pub side: Side,
    /// Its code in the completions of mlx5, where it has one.
    syndrome: Option<u32>,
    /// Words of programs for it, in small letters.
    words: &'static [&'static str],
}

/// The statuses of libibverbs (`verbs.h`, `enum ibv_wc_status`), with their meaning from `ibv_poll_cq(3)` and IBTA 1.4, 11.6.2.
///
/// Words: libibverbs `ibv_wc_status_str`, Linux `ib_wc_status_msg`, UCX `ib_mlx5_log.c`, Open MPI `btl_openib_component.c`. Syndromes: Linux
/// `include/linux/mlx5/cq.h`, `MLX5_CQE_SYNDROME_*`.
pub const STATUSES: &[Status] = &[
    Status {
        number: 1,
        name: "IBV_WC_LOC_LEN_ERR",
        meaning: "the request is longer than its buffers or than a message may be",
        side: Side::Local,
        syndrome: Some(0x01),
        words: &["local length error"],
    },
    Status {
        number: 2,
        name: "IBV_WC_LOC_QP_OP_ERR",
        meaning: "the adapter found its own queue pair in disorder",
        side: Side::Local,
        syndrome: Some(0x02),
        words: &["local qp operation err"],
    },
    Status {
        number: 3,
        name: "IBV_WC_LOC_EEC_OP_ERR",
        meaning: "the adapter found its own end-to-end context in disorder",
        side: Side::Local,
        syndrome: None,
        words: &["local ee context operation error", "local eec operation error"],
    },
    Status {
        number: 4,
        name: "IBV_WC_LOC_PROT_ERR",
        meaning: "the memory was not registered, or freed: check memlock and IOMMU; not the network",
        side: Side::Local,
        syndrome: Some(0x04),
        words: &["local protection error", "local protocol error"],
    },
    Status {
        number: 5,
        name: "IBV_WC_WR_FLUSH_ERR",
        meaning: "flushed after another error: look for the first one of this queue pair",
        side: Side::Consequence,
        syndrome: Some(0x05),
        words: &["work request flushed", "wr flushed", "flushed error"],
    },
    Status {
        number: 6,
        name: "IBV_WC_MW_BIND_ERR",
        meaning: "a memory window could not be bound",
        side: Side::Local,
        syndrome: Some(0x06),
        words: &[
            "memory window bind",
            "memory bind operation error",
            "memory management operation error",
        ],
    },
    Status {
        number: 7,
        name: "IBV_WC_BAD_RESP_ERR",
        meaning: "the answer of the peer was not what the request wanted",
        side: Side::Remote,
        syndrome: Some(0x10),
        words: &["bad response"],
    },
    Status {
        number: 8,
        name: "IBV_WC_LOC_ACCESS_ERR",
        meaning: "a write of the peer met memory that does not allow it",
        side: Side::Local,
        syndrome: Some(0x11),
        words: &["local access error"],
    },
    Status {
        number: 9,
        name: "IBV_WC_REM_INV_REQ_ERR",
        meaning: "the peer does not take such a request",
        side: Side::Remote,
        syndrome: Some(0x12),
        words: &["remote invalid request", "invalid request error"],
    },
    Status {
        number: 10,
        name: "IBV_WC_REM_ACCESS_ERR",
        meaning: "the peer does not allow access to this memory",
        side: Side::Remote,
        syndrome: Some(0x13),
        words: &["remote access error"],
    },
    Status {
        number: 11,
        name: "IBV_WC_REM_OP_ERR",
        meaning: "the peer could not carry out the request",
        side: Side::Remote,
        syndrome: Some(0x14),
        words: &["remote operation error"],
    },
    Status {
        number: 12,
        name: "IBV_WC_RETRY_EXC_ERR",
        meaning: "no answer after all retries: look for drops, the link, and rails that are not connected",
        side: Side::Silence,
        syndrome: Some(0x15),
        words: &[
            "retry counter exceeded",
            "retry count exceeded",
            "retry exceeded",
            "retries exceeded",
        ],
    },
    Status {
        number: 13,
        name: "IBV_WC_RNR_RETRY_EXC_ERR",
        meaning: "the receiver had no buffer, after all retries",
        side: Side::Receiver,
        syndrome: Some(0x16),
        words: &[
            "rnr retry counter exceeded",
            "rnr retry count exceeded",
            "rnr retry exceeded",
            "receiver not ready retry",
            "receive-no-ready retry",
        ],
    },
    Status {
        number: 14,
        name: "IBV_WC_LOC_RDD_VIOL_ERR",
        meaning: "the domains of two local objects differ",
        side: Side::Local,
        syndrome: None,
        words: &["local rdd violation error"],
    },
    Status {
        number: 15,
        name: "IBV_WC_REM_INV_RD_REQ_ERR",
        meaning: "the peer refused a reliable datagram",
        side: Side::Remote,
        syndrome: None,
        words: &["remote invalid rd request"],
    },
    Status {
        number: 16,
        name: "IBV_WC_REM_ABORT_ERR",
        meaning: "the peer gave the operation up",
        side: Side::Remote,
        syndrome: Some(0x22),
        words: &["aborted error", "operation aborted", "remote side aborted"],
    },
    Status {
        number: 17,
        name: "IBV_WC_INV_EECN_ERR",
        meaning: "the number of an end-to-end context is not valid",
        side: Side::Local,
        syndrome: None,
        words: &["invalid ee context number"],
    },
    Status {
        number: 18,
        name: "IBV_WC_INV_EEC_STATE_ERR",
        meaning: "an end-to-end context is in a wrong state",
        side: Side::Local,
        syndrome: None,
        words: &["invalid ee context state"],
    },
    Status {
        number: 19,
        name: "IBV_WC_FATAL_ERR",
        meaning: "the adapter failed",
        side: Side::Local,
        syndrome: None,
        words: &["fatal error"],
    },
    Status {
        number: 20,
        name: "IBV_WC_RESP_TIMEOUT_ERR",
        meaning: "no answer came in time",
        side: Side::Silence,
        syndrome: None,
        words: &["response timeout error"],
    },
    Status {
        number: 21,
        name: "IBV_WC_GENERAL_ERR",
        meaning: "the work request failed",
        side: Side::Unclear,
        syndrome: None,
        words: &["general error"],
    },
    Status {
        number: 22,
        name: "IBV_WC_TM_ERR",
        meaning: "a message did not match a posted tag",
        side: Side::Unclear,
        syndrome: None,
        words: &["tm error"],
    },
    Status {
        number: 23,
        name: "IBV_WC_TM_RNDV_INCOMPLETE",
        meaning: "software has to finish a rendezvous of tag matching: no error by itself",
        side: Side::Unclear,
        syndrome: None,
        words: &["tm software rendezvous"],
    },
];

/// Statuses whose words are those of another one with a beginning: that one is looked for first.
const LONGER_WORDS: [u32; 2] = [13, 15];

/// Statuses whose words other errors have, too: they count beside the word "status" or their number.
const COMMON_WORDS: [u32; 5] = [7, 16, 19, 20, 21];

impl Status {
    /// The status with this number.
    pub fn of(number: u32) -> Option<&'static Self> {
        STATUSES.iter().find(|status| status.number == number)
    }

    /// True for words of programs for it, in small letters.
    pub fn is_called(&self, lower: &str) -> bool {
        self.words.contains(&lower)
    }

    /// The status of a syndrome of mlx5.
    pub(super) fn of_syndrome(syndrome: u32) -> Option<&'static Self> {
        STATUSES.iter().find(|status| status.syndrome == Some(syndrome))
    }

    /// The status whose name is in a text: `IBV_WC_RETRY_EXC_ERR`, and with the prefixes of the kernel and of older libraries.
    pub(super) fn named_in(text: &str) -> Option<&'static Self> {
        let words = text.split(|glyph: char| !glyph.is_ascii_alphanumeric() && glyph != '_');
        words.filter(|word| word.ends_with("_ERR")).find_map(|word| {
            STATUSES.iter().find(|status| {
                let bare = status.name.trim_start_matches("IBV_WC_");
                let prefix = word.strip_suffix(bare);
                prefix.is_some_and(|prefix| ["IBV_WC_", "IB_WC_", "WC_", "VAPI_"].contains(&prefix))
            })
        })
    }

    /// The status whose words are in a text in small letters.
    pub(super) fn worded_in(lower: &str) -> Option<&'static Self> {
        let has = |status: &&Self| {
            let is_there = status.words.iter().any(|words| lower.contains(words));
            is_there && (!COMMON_WORDS.contains(&status.number) || status.is_counted_in(lower))
        };
        let longer = LONGER_WORDS.iter().filter_map(|number| Self::of(*number));
        longer.clone().find(has).or_else(|| STATUSES.iter().find(has))
    }

    /// True if a text speaks of a status, or has the number of this one in parentheses.
    fn is_counted_in(&self, lower: &str) -> bool {
        let number = self.number;
        [
            format!("({number})"),
            format!("({number}/"),
            format!("({number},"),
        ]
        .iter()
        .any(|form| lower.contains(form))
            || lower.contains("status")
            || lower.contains("wc error")
    }

    /// True if no other program uses these words: only libibverbs and the kernel do.
    pub(super) fn is_unmistakable_in(&self, lower: &str) -> bool {
        const WORDS: [&str; 8] = [
            "transport retry counter exceeded",
            "transport retry count exceeded",
            "rnr retry counter exceeded",
            "receive-no-ready retry count exceeded",
            "work request flushed error",
            "local qp operation err",
            "local ee context operation error",
            "local rdd violation error",
        ];
        self.words.iter().any(|own| {
            WORDS
                .iter()
                .any(|words| words.contains(own) && lower.contains(words))
        })
    }
}
