//! Offsets of the fields that the programs read from the kernel's structures.

/// A field that the running kernel does not have.
pub const ABSENT: u32 = u32::MAX;

macro_rules! layout {
    ($( $(#[$meta:meta])* $field:ident = $structure:literal $path:literal, )+) => {
        /// Offsets in bytes, taken from the running kernel's BTF before the programs are loaded. [`ABSENT`]: the kernel has
        /// no such field, or its module is not loaded.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(C)]
        pub struct Layout { $( $(#[$meta])* pub $field: u32, )+ }

        impl Layout {
            /// Nothing is known.
            pub const UNKNOWN: Self = Self { $( $field: ABSENT, )+ };

            /// Each field, the structure that it is in and the path to it.
            #[cfg(feature = "user")]
            pub fn each(&mut self) -> impl Iterator<Item = (&mut u32, &'static str, &'static str)> {
                [ $( (&mut self.$field, $structure, $path), )+ ].into_iter()
            }
        }
    };
}

layout! {
    /// `struct ib_device.name`.
    device_name = "ib_device" "name",
    /// `struct ib_qp.device`.
    qp_device = "ib_qp" "device",
    /// `struct ib_qp.qp_num`.
    qp_number = "ib_qp" "qp_num",
    /// `struct ib_qp.qp_type`.
    qp_type = "ib_qp" "qp_type",
    /// `struct ib_qp.av_sgid_attr`: the source GID of a connected queue pair.
    qp_source = "ib_qp" "av_sgid_attr",
    /// `struct ib_gid_attr.gid`.
    gid = "ib_gid_attr" "gid",
    /// `struct ib_qp_attr.qp_state`.
    attribute_state = "ib_qp_attr" "qp_state",
    /// `struct ib_qp_attr.path_mtu`.
    attribute_path_mtu = "ib_qp_attr" "path_mtu",
    /// `struct ib_qp_attr.rq_psn`.
    attribute_rq_psn = "ib_qp_attr" "rq_psn",
    /// `struct ib_qp_attr.sq_psn`.
    attribute_sq_psn = "ib_qp_attr" "sq_psn",
    /// `struct ib_qp_attr.dest_qp_num`.
    attribute_destination = "ib_qp_attr" "dest_qp_num",
    /// The destination GID of `struct ib_qp_attr.ah_attr`.
    attribute_gid = "ib_qp_attr" "ah_attr.grh.dgid",
    /// The source GID's index.
    attribute_source_index = "ib_qp_attr" "ah_attr.grh.sgid_index",
    /// The traffic class.
    attribute_traffic_class = "ib_qp_attr" "ah_attr.grh.traffic_class",
    /// `struct ib_qp_attr.port_num`.
    attribute_port = "ib_qp_attr" "port_num",
    /// `struct ib_qp_attr.timeout`.
    attribute_timeout = "ib_qp_attr" "timeout",
    /// `struct ib_qp_attr.retry_cnt`.
    attribute_retry_count = "ib_qp_attr" "retry_cnt",
    /// `struct ib_qp_attr.rnr_retry`.
    attribute_rnr_retry = "ib_qp_attr" "rnr_retry",
    /// `struct ib_qp_attr.min_rnr_timer`.
    attribute_min_rnr_timer = "ib_qp_attr" "min_rnr_timer",
    /// `struct ib_event.device`.
    event_device = "ib_event" "device",
    /// `struct ib_event.element`.
    event_element = "ib_event" "element",
    /// `struct ib_event.event`.
    event_number = "ib_event" "event",
    /// `struct rdma_cm_id.device`.
    cm_device = "rdma_cm_id" "device",
    /// `struct rdma_cm_id.qp`.
    cm_qp = "rdma_cm_id" "qp",
    /// `struct rdma_cm_id.route.addr.src_addr`.
    cm_source = "rdma_cm_id" "route.addr.src_addr",
    /// `struct rdma_cm_id.route.addr.dst_addr`.
    cm_destination = "rdma_cm_id" "route.addr.dst_addr",
    /// `struct rdma_id_private.qp_num`.
    cm_qp_number = "rdma_id_private" "qp_num",
    /// `struct rdma_id_private.id`.
    cm_id = "rdma_id_private" "id",
    /// `struct rdma_cm_event.event`.
    cm_event = "rdma_cm_event" "event",
    /// `struct rdma_cm_event.status`.
    cm_status = "rdma_cm_event" "status",
    /// `struct uverbs_attr_bundle.context`.
    bundle_context = "uverbs_attr_bundle" "context",
    /// `struct ib_uobject.context`.
    object_context = "ib_uobject" "context",
    /// `struct ib_ucontext.device`.
    context_device = "ib_ucontext" "device",
    /// `struct rxe_qp.ibqp`.
    rxe_qp = "rxe_qp" "ibqp",
    /// `struct rxe_qp.retrans_timer`.
    rxe_retransmit_timer = "rxe_qp" "retrans_timer",
    /// `struct rxe_qp.rnr_nak_timer`.
    rxe_rnr_timer = "rxe_qp" "rnr_nak_timer",
    /// `struct sk_buff.head`.
    buffer_head = "sk_buff" "head",
    /// `struct sk_buff.network_header`.
    buffer_network = "sk_buff" "network_header",
    /// `struct sk_buff.protocol`.
    buffer_protocol = "sk_buff" "protocol",
    /// `struct sk_buff.dev`.
    buffer_device = "sk_buff" "dev",
    /// `struct net_device.name`.
    interface_name = "net_device" "name",
}
