//! The decoder as its users see it: published vectors, captured frames, and built ones.

mod builder;
mod captured;
mod icrc;
mod lengths;
mod stacks;
mod transports;

/// Bytes of a hexadecimal string.
fn hex(text: &str) -> Vec<u8> {
    let text = text.trim();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

/// A frame of `frames.txt`.
fn frame(name: &str) -> Vec<u8> {
    let line = include_str!("frames.txt")
        .lines()
        .find(|line| line.split(' ').next() == Some(name));
    hex(line
        .and_then(|line| line.split(' ').nth(1))
        .expect("a frame of that name"))
}

/// All frames of `frames.txt`.
fn frames() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = include_str!("frames.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, bytes)| (name, hex(bytes)))
}
