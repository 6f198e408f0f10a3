//! Errors of programs that are no statuses of completions, by their words. Those are in two tables.
//!
//! Sources: those named with each program in [`super`]; NCCL `src/misc/ibvwrap.cc`, `src/transport/net_ib.cc` (`ncclIbAsyncThreadMain`) and
//! `src/misc/socket.cc`; Linux `drivers/net/ethernet/mellanox/mlx5/core/cmd.c`, `.../en_main.c`, `drivers/infiniband/hw/irdma/hw.c`,
//! `fs/nfs`; `drivers/net/ethernet/broadcom/bnxt/bnxt_hwrm.c` and `bnxt.c`, `drivers/infiniband/hw/bnxt_re/qplib_rcfw.c`.

/// An error that is no status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symptom {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub meaning: &'static str,
    /// It follows another error.
    pub(super) is_consequence: bool,
    /// Words of programs for it, in small letters: those of one entry stand together in a line.
    pub(super) words: &'static [&'static [&'static str]],
}
