//! Types of the running kernel: offsets of fields, and names of numbers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use roce_abi::{ABSENT, Layout};

use crate::ProbeError;
use crate::btf::Btf;

/// Folder of the kernel's types: one file for itself, one for each module.
const FOLDER: &str = "/sys/kernel/btf";

/// The modules whose structures are read, where they are no part of the kernel itself.
const MODULES: [&str; 5] = ["ib_core", "ib_uverbs", "rdma_cm", "rdma_rxe", "mlx5_ib"];

/// Offsets and names.
pub(crate) struct KernelTypes {
    pub(crate) layout: Layout,
    /// Asynchronous events.
    pub(crate) async_events: Names,
    /// Events of the connection manager.
    pub(crate) cm_events: Names,
    /// Why packets are dropped.
    pub(crate) drop_reasons: Names,
    /// The reason that says nothing.
    pub(crate) no_reason: u32,
}

/// Names of an enumeration's numbers.
#[derive(Default, Debug)]
pub(crate) struct Names(HashMap<u32, Arc<str>>);

impl Names {
    /// Names from the first kernel that has the enumeration; without `prefix`, in lower case if so wanted.
    fn from_enumeration(kernels: &[Arc<Btf>], enumeration: &str, prefix: &str, lower: bool) -> Self {
        let found = kernels
            .iter()
            .map(|btf| btf.enumeration(enumeration))
            .find(|names| !names.is_empty());
        let names = found.unwrap_or_default().into_iter().map(|(name, number)| {
            let name = name.strip_prefix(prefix).unwrap_or(&name);
            let name = if lower {
                name.to_ascii_lowercase()
            } else {
                name.to_owned()
            };
            (number, Arc::from(name))
        });
        Self(names.collect())
    }

    /// The name of a number; of one that has none, the number.
    pub(crate) fn name(&self, number: u32) -> Arc<str> {
        self.0
            .get(&number)
            .cloned()
            .unwrap_or_else(|| number.to_string().into())
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.0
            .iter()
            .find(|(_, found)| &***found == name)
            .map(|(number, _)| *number)
    }
}

impl KernelTypes {
    /// Reads the types of the running kernel and its modules.
    ///
    /// # Errors
    /// The kernel has no BTF (it was built without CONFIG_DEBUG_INFO_BTF).
    pub(crate) fn read() -> Result<Self, ProbeError> {
        let folder = Path::new(FOLDER);
        let vmlinux = Arc::new(Btf::open(&folder.join("vmlinux"), None)?);
        let mut all: Vec<Arc<Btf>> = MODULES
            .iter()
            .filter_map(|module| Btf::open(&folder.join(module), Some(Arc::clone(&vmlinux))).ok())
            .map(Arc::new)
            .collect();
        if all.is_empty() {
            all.push(vmlinux);
        }
        Ok(Self::from_kernels(&all))
    }

    fn from_kernels(all: &[Arc<Btf>]) -> Self {
        let mut layout = Layout::UNKNOWN;
        for (offset, structure, path) in layout.each() {
            let found = all.iter().find_map(|btf| btf.offset(structure, path));
            *offset = found.unwrap_or(ABSENT);
        }
        let drop_reasons = Names::from_enumeration(all, "skb_drop_reason", "SKB_DROP_REASON_", false);
        Self {
            layout,
            async_events: Names::from_enumeration(all, "ib_event_type", "IB_EVENT_", true),
            cm_events: Names::from_enumeration(all, "rdma_cm_event_type", "RDMA_CM_EVENT_", true),
            no_reason: drop_reasons.number("NOT_SPECIFIED").unwrap_or(u32::MAX),
            drop_reasons,
        }
    }
}

/// Offsets in libibverbs of the fields in [`Layout`]. Its structures are its ABI (infiniband/verbs.h of
/// rdma-core), so they never change.
pub(crate) const LIBIBVERBS: Layout = Layout {
    // struct ibv_device, after two pointers and two enumerations.
    device_name: 24,
    // struct ibv_qp: the context, whose first field is the device.
    qp_device: 0,
    qp_number: 52,
    qp_type: 60,
    // struct ibv_qp_attr.
    attribute_state: 0,
    attribute_path_mtu: 8,
    attribute_rq_psn: 20,
    attribute_sq_psn: 24,
    attribute_destination: 28,
    attribute_gid: 56,
    attribute_source_index: 76,
    attribute_traffic_class: 78,
    attribute_min_rnr_timer: 128,
    attribute_port: 129,
    attribute_timeout: 130,
    attribute_retry_count: 131,
    attribute_rnr_retry: 132,
    ..Layout::UNKNOWN
};
