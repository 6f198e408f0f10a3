//! Numbers of drivers that are statuses of completions.

use super::fields::Fields;
use super::program::Program;
use super::status::Status;

/// The status for a number that is a driver's own.
pub(super) fn of_driver(fields: Fields<'_>, program: Program) -> Option<&'static Status> {
    // CQ_REQ_STATUS_* from 1 on (Linux drivers/infiniband/hw/bnxt_re/roce_hsi.h; ib_verbs.c translates them).
    const BNXT: [u32; 11] = [7, 1, 2, 4, 21, 9, 10, 11, 13, 12, 5];
    let number = match program {
        Program::Bnxt => {
            let place = fields.number(&["with status"])?.checked_sub(1)?;
            *BNXT.get(usize::try_from(place).ok()?)?
        }
        // HNS_ROCE_CQE_V2_* are the numbers of mlx5's syndromes (Linux drivers/infiniband/hw/hns/hns_roce_hw_v2.h).
        Program::Hns => return Status::of_syndrome(fields.number(&["cqe status"])?),
        Program::Irdma => of_irdma_event(fields.number(&["ae_id"])?)?,
        _ => return None,
    };
    Status::of(number)
}

/// The status for an asynchronous event of irdma (Linux drivers/infiniband/hw/irdma/user.h, `irdma_ae_to_qp_err_code`, with the numbers of
/// defs.h; hw.c translates its codes to statuses).
fn of_irdma_event(event: u32) -> Option<u32> {
    Some(match event {
        0x0132 | 0x0134 | 0x0135 | 0x0303 | 0x0305 => 1,
        0x0133 | 0x020a => 2,
        0x0102..=0x010a | 0x011c => 4,
        0x0114..=0x011b | 0x011e | 0x0120 => 6,
        0x0208 => 9,
        0x0112 | 0x020d => 10,
        0x020e => 11,
        0x050a => 12,
        0x050f => 13,
        // Catastrophic ones of a queue pair, of the function, of the adapter.
        0x020f | 0x0700..=0x0705 | 0x0b0b => 19,
        _ => return None,
    })
}
