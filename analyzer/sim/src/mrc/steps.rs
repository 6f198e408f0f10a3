//! Steps of a run of MRC: sending, carrying, answering.

mod answer;
mod carry;
mod ports;
mod send;
mod wire;
