//! Greedy decoding of the beliefs into a one-to-one matching (masda.md, graph).

use std::cmp::Reverse;

use super::messages::Edge;

/// Accepts edges in order of (belief descending, `x` ascending, `d` ascending) while both ends are free and the
/// belief is at least `margin`. The accepted edge of every left pixel of a row of `width`.
///
/// The edges may come in any order.
pub fn decode(mut edges: Vec<Edge>, width: usize, margin: i32) -> Vec<Option<Edge>> {
    edges.sort_by_key(|edge| (Reverse(edge.belief), edge.x, edge.candidate.d));
    let mut matches = vec![None; width];
    let mut taken = vec![false; width];
    for edge in edges {
        if edge.belief >= margin && matches[edge.x].is_none() && !taken[edge.j] {
            matches[edge.x] = Some(edge);
            taken[edge.j] = true;
        }
    }
    matches
}
