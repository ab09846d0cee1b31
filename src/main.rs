//! The `lanekeeper` program.

fn main() {}
