//! The plain definition of masda.md: loops, no SIMD, no threads. The referee of every other MASDA path.
//! One file per stage, in this order: [`score`], [`filter`], [`top_two`], [`messages`], [`decode`].

pub mod decode;
pub mod filter;
pub mod messages;
pub mod score;
pub mod top_two;

use crate::{
    Census, DisparityMap, GrayView, MasdaParams, Options, Params, Report, Result,
    masda::{
        Candidate, Candidates, GraphSolver, ImagePlane, Tables,
        engine::{check_map, check_pair, check_sizes, timed},
        stage,
    },
    reference::{INVALID, census, fill, remove_speckles, to_true_range},
};

/// The variant's name in a [`Report`].
const SCALAR: &str = "scalar";

/// The scalar image plane.
pub(crate) struct ReferencePlane {
    params: Params,
    tables: Tables,
    timing: bool,
}

impl ReferencePlane {
    pub(crate) fn new(params: &Params, masda: &MasdaParams, options: &Options) -> Self {
        Self { params: params.clone(), tables: Tables::new(masda), timing: options.timing }
    }
}

impl ImagePlane for ReferencePlane {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        candidates: &mut Candidates,
        report: &mut Report,
    ) -> Result<()> {
        check_pair(left, right)?;
        check_sizes(left, candidates)?;
        let (params, tables) = (&self.params, &self.tables);
        let mut run = |stage, work: &mut dyn FnMut()| timed(report, self.timing, stage, SCALAR, work);
        let mut descriptors = [left, right].map(|image| vec![0; image.width() * image.height()]);
        run(stage::CENSUS, &mut || {
            census(left, Census::Window7x7, &mut descriptors[0]);
            census(right, Census::Window7x7, &mut descriptors[1]);
        });
        let mut volume = score::Volume::default();
        run(stage::SCORE, &mut || {
            volume = score::volume(left, right, &descriptors[0], &descriptors[1], params, tables);
        });
        run(stage::HORIZONTAL_FORWARD, &mut || filter::horizontal_forward(&mut volume, left, tables));
        run(stage::HORIZONTAL_BACKWARD, &mut || filter::horizontal_backward(&mut volume, left, tables));
        run(stage::VERTICAL_FORWARD, &mut || filter::vertical_forward(&mut volume, left, tables));
        run(stage::VERTICAL_BACKWARD, &mut || filter::vertical_backward(&mut volume, left, tables));
        run(stage::TOP_TWO, &mut || top_two::top_two(&volume, params, candidates));
        Ok(())
    }

    fn device(&self) -> String {
        "scalar, 1 thread".to_owned()
    }
}

/// The scalar graph solver.
pub(crate) struct ReferenceSolver {
    params: Params,
    masda: MasdaParams,
    timing: bool,
}

impl ReferenceSolver {
    pub(crate) fn new(params: &Params, masda: &MasdaParams, options: &Options) -> Self {
        Self { params: params.clone(), masda: *masda, timing: options.timing }
    }
}

impl GraphSolver for ReferenceSolver {
    fn solve(
        &mut self,
        candidates: &Candidates,
        left: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        check_sizes(left, candidates)?;
        check_map(candidates, map, &self.params)?;
        let (params, width) = (&self.params, candidates.width());
        let mut run = |stage, work: &mut dyn FnMut()| timed(report, self.timing, stage, SCALAR, work);
        run(stage::SOLVE, &mut || {
            for y in 0..candidates.height() {
                let mut row = solve_row(candidates.row(y), params, &self.masda);
                for (x, value) in row.iter_mut().enumerate() {
                    if params.masks_zero() && left.get(x, y) == 0 {
                        *value = INVALID;
                    }
                }
                to_true_range(&row, params, &mut map.values_mut()[y * width..][..width]);
            }
        });
        if let Some(speckle) = params.speckle {
            run(stage::SPECKLE, &mut || remove_speckles(map.values_mut(), width, speckle, params));
        }
        if params.fill {
            run(stage::FILL, &mut || fill(map.values_mut(), width, params));
        }
        Ok(())
    }
}

/// Solves one row: relative disparities in the map's units, [`INVALID`] where there is no match.
pub fn solve_row(row: &[[Candidate; 2]], params: &Params, masda: &MasdaParams) -> Vec<u16> {
    let edges = messages::beliefs(row, params.min_disparity, masda);
    let matches = decode::decode(edges, row.len(), masda.margin);
    let value = |edge: messages::Edge| {
        let fraction = if params.subpixel { i32::from(edge.candidate.offset) } else { 0 };
        (i32::from(edge.candidate.d) * params.scale() + fraction) as u16
    };
    matches.into_iter().map(|accepted| accepted.map_or(INVALID, value)).collect()
}
