//! The path directions of the aggregation (sgm.md, section 3).

use std::fmt;

use crate::Paths;

/// A direction of travel `r` of the path aggregation: the predecessor of pixel `p` is `p - r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `r = (1, 0)`.
    LeftToRight,
    /// `r = (-1, 0)`.
    RightToLeft,
    /// `r = (0, 1)`.
    UpToDown,
    /// `r = (0, -1)`.
    DownToUp,
    /// `r = (1, 1)`.
    DownRight,
    /// `r = (-1, 1)`.
    DownLeft,
    /// `r = (1, -1)`.
    UpRight,
    /// `r = (-1, -1)`.
    UpLeft,
}

impl Direction {
    /// Every direction: the four of [`Paths::Four`], then the diagonals.
    pub const ALL: [Self; 8] = [
        Self::LeftToRight,
        Self::RightToLeft,
        Self::UpToDown,
        Self::DownToUp,
        Self::DownRight,
        Self::DownLeft,
        Self::UpRight,
        Self::UpLeft,
    ];

    /// The step `r = (dx, dy)` in pixels, `x` to the right and `y` down.
    pub const fn offset(self) -> (isize, isize) {
        match self {
            Self::LeftToRight => (1, 0),
            Self::RightToLeft => (-1, 0),
            Self::UpToDown => (0, 1),
            Self::DownToUp => (0, -1),
            Self::DownRight => (1, 1),
            Self::DownLeft => (-1, 1),
            Self::UpRight => (1, -1),
            Self::UpLeft => (-1, -1),
        }
    }

    /// The direction's name, for example `left-to-right`.
    pub fn name(self) -> &'static str {
        let stage = self.stage();
        stage.split_once(' ').map_or(stage, |(_, name)| name)
    }

    /// The name of this direction's stage in a [`crate::Report`], for example `aggregate left-to-right`.
    pub const fn stage(self) -> &'static str {
        match self {
            Self::LeftToRight => "aggregate left-to-right",
            Self::RightToLeft => "aggregate right-to-left",
            Self::UpToDown => "aggregate up-to-down",
            Self::DownToUp => "aggregate down-to-up",
            Self::DownRight => "aggregate down-right",
            Self::DownLeft => "aggregate down-left",
            Self::UpRight => "aggregate up-right",
            Self::UpLeft => "aggregate up-left",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Paths {
    /// The directions that are aggregated.
    pub fn directions(self) -> &'static [Direction] {
        &Direction::ALL[..self.count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_come_in_opposite_pairs() {
        for paths in [Paths::Four, Paths::Eight] {
            let offsets: Vec<_> = paths.directions().iter().map(|r| r.offset()).collect();
            assert_eq!(offsets.len(), paths.count());
            assert!(offsets.iter().all(|&(dx, dy)| offsets.contains(&(-dx, -dy)) && (dx, dy) != (0, 0)));
        }
        assert_eq!(Direction::UpRight.to_string(), "up-right");
    }
}
