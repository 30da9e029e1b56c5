//! The scalar definition of sgm.md: plain loops, no SIMD, no threads. It is the referee: every other
//! path gives these bytes. One file per stage, to be read beside the specification.

use crate::{DisparityMap, GrayView, Params, Report, Result, matcher::Engine};

pub(crate) struct ReferenceEngine {
    params: Params,
}

impl ReferenceEngine {
    pub(crate) fn new(params: &Params) -> Self {
        Self { params: params.clone() }
    }
}

impl Engine for ReferenceEngine {
    fn compute(
        &mut self,
        _left: &GrayView<'_>,
        _right: &GrayView<'_>,
        map: &mut DisparityMap,
        _report: &mut Report,
    ) -> Result<()> {
        map.values_mut().fill(self.params.invalid_value() as i16);
        Ok(())
    }

    fn device(&self) -> String {
        "scalar, 1 thread".to_owned()
    }
}
