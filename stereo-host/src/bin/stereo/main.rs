//! The `stereo` command.

fn main() {}
