//! Reads files in blocks of 1 MiB and does nothing with them: the floor that readers are measured against.
//!
//!     read_alone FILE...

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

fn main() -> io::Result<()> {
    let mut block = vec![0; 1 << 20];
    for path in std::env::args_os().skip(1) {
        let mut file = File::open(path)?;
        while file.read(&mut block)? > 0 {
            black_box(&block);
        }
    }
    Ok(())
}
