//! Max-sum message passing on one row's graph (masda.md, graph).

use super::score::right_column;
use crate::{MasdaParams, masda::Candidate};

/// One possible match of a row: left pixel `x` with right pixel `j`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The left column.
    pub x: usize,
    /// The right column `x - d - m`.
    pub j: usize,
    /// Disparity, score and sub-pixel offset.
    pub candidate: Candidate,
    /// The belief `rho - beta` after the last iteration.
    pub belief: i32,
}

/// The edges of a row with their beliefs, by `x`, the better candidate first. The candidates must be in view.
pub fn beliefs(row: &[[Candidate; 2]], min_disparity: i32, params: &MasdaParams) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (x, pair) in row.iter().enumerate() {
        for &candidate in pair.iter().filter(|candidate| candidate.is_some()) {
            let j = right_column(x, candidate.d.into(), min_disparity) as usize;
            edges.push(Edge { x, j, candidate, belief: 0 });
        }
    }
    let mut of_left = vec![Vec::new(); row.len()];
    let mut of_right = vec![Vec::new(); row.len()];
    for (e, edge) in edges.iter().enumerate() {
        of_left[edge.x].push(e);
        of_right[edge.j].push(e);
    }
    let score = |e: usize| i32::from(edges[e].candidate.score);
    let others = |ends: &[usize], e: usize| ends.iter().copied().filter(move |&other| other != e).collect::<Vec<_>>();
    let responsibility = |beta: &[i32], e: usize| {
        let rivals = others(&of_left[edges[e].x], e).into_iter().map(|r| score(r) - beta[r]);
        score(e) - rivals.fold(params.theta, i32::max)
    };

    let mut beta = vec![0; edges.len()];
    for _ in 0..params.iterations {
        let rho: Vec<i32> = (0..edges.len()).map(|e| responsibility(&beta, e)).collect();
        beta = (0..edges.len())
            .map(|e| others(&of_right[edges[e].j], e).into_iter().map(|r| rho[r]).fold(0, i32::max))
            .collect();
    }
    let beliefs: Vec<i32> = (0..edges.len()).map(|e| responsibility(&beta, e) - beta[e]).collect();
    for (edge, belief) in edges.iter_mut().zip(beliefs) {
        edge.belief = belief;
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(score: i16, d: u8) -> Candidate {
        Candidate { score, d, offset: 0 }
    }

    #[test]
    fn two_claimants_of_one_pixel_by_hand() {
        // Left 1 claims right 1 (d 0) at 900 or right 0 (d 1) at 700; left 2 claims right 1 (d 1) at 1000.
        let row = [[Candidate::NONE; 2], [of(900, 0), of(700, 1)], [of(1000, 1), Candidate::NONE]];
        let with = |iterations| {
            let params = MasdaParams { theta: 100, iterations, ..MasdaParams::default() };
            beliefs(&row, 0, &params).iter().map(|e| (e.x, e.j, e.belief)).collect::<Vec<_>>()
        };
        // No iteration: rho alone. 900 - 700, 700 - 900, 1000 - 100.
        assert_eq!(with(0), [(1, 1, 200), (1, 0, -200), (2, 1, 900)]);
        // One: beta = 900, 0, 200, so rho = 900 - 700, 700 - max(100, 0), 1000 - 100 and the beliefs follow.
        assert_eq!(with(1), [(1, 1, -700), (1, 0, 600), (2, 1, 700)]);
    }
}
