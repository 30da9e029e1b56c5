//! Coordinate descent over plans, from the plain one.
//!
//! The choices of a plan are compared one at a time, each against the best plan so far. The
//! candidates of a choice run in turn, round after round, so that a change of clocks or another user
//! of the device slows all of them alike. A candidate replaces the best only when it is faster by
//! more than the noise; at the end plain kernels run in turn with the choice, and win a tie.

use std::time::Duration;

use crate::{PathKernel, Plan, Result, Times, Trial, gpu::plan::MAX_STREAMS};

/// What the search measures on.
pub(crate) trait Machine {
    /// Whether the device can run `plan` at all.
    fn fits(&self, plan: Plan) -> bool;

    /// Matches one frame; milliseconds on the device.
    fn run(&mut self, plan: Plan) -> Result<f64>;

    /// Time since the search began.
    fn spent(&self) -> Duration;
}

/// What the search found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) plan: Plan,
    pub(crate) chosen: Times,
    pub(crate) plain: Times,
    pub(crate) complete: bool,
    pub(crate) trials: Vec<Trial>,
}

/// No comparison begins a round after this: with the confirmation and the preparation of the last
/// candidates a tuning stays under two seconds.
const SEARCH_TIME: Duration = Duration::from_millis(1200);

/// The same for the confirmation.
const WHOLE_TIME: Duration = Duration::from_millis(1600);

/// Runs of plain kernels before anything counts: clocks rise under load.
const WARM_UP_TIME: Duration = Duration::from_millis(60);
const WARM_UP_RUNS: usize = 200;

/// Rounds of a comparison, as many as the time allows; what the first ones show to be slow is left out
/// of the others.
const FIRST_ROUNDS: usize = 3;
const ROUNDS: std::ops::RangeInclusive<f64> = 4.0..=15.0;
const CLEARLY_SLOWER: f64 = 1.05;

/// Candidates of all passes, roughly: what the rounds are shared among.
const CANDIDATES: f64 = 60.0;

/// Rounds of the confirmation.
const FINAL_ROUNDS: usize = 30;

/// The least gain that is worth a change, as a share.
const MARGIN: f64 = 0.005;

/// How often all choices are gone through: they depend on each other.
const PASSES: usize = 2;

/// Chunk and stages of the bulk-copy candidates: from short chunks, whose first costs arrive early, to
/// long ones, which wait seldom; few bytes in flight to many.
const RINGS: [(u32, u32); 7] = [(4, 4), (4, 8), (8, 2), (8, 4), (16, 2), (16, 3), (16, 4)];

/// The ring of the plans that the search may jump to at the start.
const USUAL_RING: (u32, u32) = (8, 4);

/// Finds the fastest plan for `machine`.
pub(crate) fn search(machine: &mut impl Machine) -> Result<Found> {
    let mut search = Search { machine, samples: Vec::new(), rounds: 0 };
    search.warm_up()?;
    let (best, complete) = search.descend()?;
    let (chosen, plain) = search.confirm(best)?;
    let keeps = best != Plan::PLAIN && chosen.clearly_below(&plain, MARGIN);
    let (plan, chosen) = if keeps { (best, chosen) } else { (Plan::PLAIN, plain) };
    Ok(Found { plan, chosen, plain, complete, trials: search.trials() })
}

struct Search<'a, M> {
    machine: &'a mut M,
    samples: Vec<(Plan, Vec<f64>)>,
    /// Rounds of a comparison.
    rounds: usize,
}

impl<M: Machine> Search<'_, M> {
    fn warm_up(&mut self) -> Result<()> {
        for _ in 0..WARM_UP_RUNS {
            let ms = self.machine.run(Plan::PLAIN)?;
            let affordable = SEARCH_TIME.as_secs_f64() * 1e3 / (CANDIDATES * ms);
            self.rounds = affordable.clamp(*ROUNDS.start(), *ROUNDS.end()) as usize;
            if self.machine.spent() > WARM_UP_TIME {
                break;
            }
        }
        Ok(())
    }

    /// The best plan, and whether there was time for every candidate at least once.
    fn descend(&mut self) -> Result<(Plan, bool)> {
        let mut best = Plan::PLAIN;
        for pass in 0..PASSES {
            let before = best;
            for choice in CHOICES {
                let candidates = choice(best).into_iter().filter(|&plan| plan != best && self.machine.fits(plan));
                match self.compare(best, candidates.collect())? {
                    Some(plan) => best = plan,
                    None => return Ok((best, pass > 0)),
                }
            }
            if best == before {
                break;
            }
        }
        Ok((best, true))
    }

    /// The fastest of `candidates`, or `best` when none is clearly faster; `None` when the time is up.
    fn compare(&mut self, best: Plan, candidates: Vec<Plan>) -> Result<Option<Plan>> {
        let mut running: Vec<_> = std::iter::once(best).chain(candidates).map(|plan| (plan, Vec::new())).collect();
        if running.len() == 1 {
            return Ok(Some(best));
        }
        for (plan, _) in &running {
            if self.machine.spent() > SEARCH_TIME {
                return Ok(None);
            }
            self.machine.run(*plan)?;
        }
        for round in 0..self.rounds {
            if self.machine.spent() > SEARCH_TIME {
                if round < FIRST_ROUNDS {
                    return Ok(None);
                }
                break;
            }
            for (plan, times) in &mut running {
                times.push(self.machine.run(*plan)?);
            }
            if round + 1 == FIRST_ROUNDS {
                let fastest = running.iter().map(|(_, times)| median(times)).fold(f64::INFINITY, f64::min);
                let (kept, slow) = running
                    .into_iter()
                    .partition(|(plan, times)| *plan == best || median(times) <= CLEARLY_SLOWER * fastest);
                running = kept;
                self.keep(slow);
            }
        }
        let incumbent = Times::of(running[0].1.clone());
        let challenger = running[1..]
            .iter()
            .map(|(plan, times)| (*plan, Times::of(times.clone())))
            .filter(|(_, times)| times.clearly_below(&incumbent, MARGIN))
            .min_by(|a, b| a.1.median_ms.total_cmp(&b.1.median_ms));
        self.keep(running);
        Ok(Some(challenger.map_or(best, |(plan, _)| plan)))
    }

    /// `best` and the plain plan in turn.
    fn confirm(&mut self, best: Plan) -> Result<(Times, Times)> {
        let (mut chosen, mut plain) = (Vec::new(), Vec::new());
        for round in 0..FINAL_ROUNDS {
            if round > 0 && self.machine.spent() > WHOLE_TIME {
                break;
            }
            plain.push(self.machine.run(Plan::PLAIN)?);
            if best != Plan::PLAIN {
                chosen.push(self.machine.run(best)?);
            }
        }
        self.keep(vec![(Plan::PLAIN, plain.clone()), (best, chosen.clone())]);
        let plain = Times::of(plain);
        Ok((if chosen.is_empty() { plain } else { Times::of(chosen) }, plain))
    }

    /// Adds to what is known of each plan.
    fn keep(&mut self, measured: Vec<(Plan, Vec<f64>)>) {
        for (plan, times) in measured {
            match self.samples.iter_mut().find(|(known, _)| *known == plan) {
                Some((_, known)) => known.extend(times),
                None => self.samples.push((plan, times)),
            }
        }
    }

    fn trials(self) -> Vec<Trial> {
        let trial = |(plan, times): (Plan, Vec<f64>)| Trial { plan, runs: times.len(), times: Times::of(times) };
        self.samples.into_iter().filter(|(_, times)| !times.is_empty()).map(trial).collect()
    }
}

fn median(times: &[f64]) -> f64 {
    Times::of(times.to_vec()).median_ms
}

/// What is chosen, one after the other: the alternatives to a plan, among them possibly itself.
const CHOICES: [fn(Plan) -> Vec<Plan>; 6] = [
    // Together bulk copies may pay where one group alone does not show, the device being shared.
    |plan| {
        let bulk = PathKernel::Bulk { chunk: USUAL_RING.0, stages: USUAL_RING.1 };
        vec![
            Plan { horizontal: bulk, vertical: bulk, oblique: bulk, ..plan },
            Plan { vertical: bulk, oblique: bulk, ..plan },
            Plan { horizontal: bulk, vertical: bulk, ..plan },
            Plan { horizontal: bulk, oblique: bulk, ..plan },
            Plan { horizontal: PathKernel::Plain, vertical: PathKernel::Plain, oblique: PathKernel::Plain, ..plan },
        ]
    },
    |plan| kernels().chain(tiles()).map(|kernel| Plan { horizontal: kernel, ..plan }).collect(),
    |plan| kernels().map(|kernel| Plan { vertical: kernel, ..plan }).collect(),
    |plan| kernels().map(|kernel| Plan { oblique: kernel, ..plan }).collect(),
    |plan| (0..=MAX_STREAMS.ilog2()).map(|power| Plan { streams: 1 << power, ..plan }).collect(),
    |plan| [true, false].map(|horizontal_first| Plan { horizontal_first, ..plan }).to_vec(),
];

fn kernels() -> impl Iterator<Item = PathKernel> {
    let bulk = RINGS.into_iter().map(|(chunk, stages)| PathKernel::Bulk { chunk, stages });
    std::iter::once(PathKernel::Plain).chain(bulk)
}

fn tiles() -> impl Iterator<Item = PathKernel> {
    RINGS.into_iter().map(|(chunk, stages)| PathKernel::Tiles { chunk, stages })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device whose time is a formula, with a clock that advances by it.
    struct MadeUp<F> {
        ms: F,
        clock_ms: f64,
        runs: usize,
        bulk: bool,
    }

    impl<F: FnMut(Plan, usize) -> f64> MadeUp<F> {
        fn new(ms: F) -> Self {
            Self { ms, clock_ms: 0.0, runs: 0, bulk: true }
        }

        fn found(&mut self) -> Found {
            search(self).unwrap()
        }
    }

    impl<F: FnMut(Plan, usize) -> f64> Machine for MadeUp<F> {
        fn fits(&self, plan: Plan) -> bool {
            self.bulk || !plan.needs_bulk()
        }

        fn run(&mut self, plan: Plan) -> Result<f64> {
            assert!(self.fits(plan));
            plan.validate()?;
            self.runs += 1;
            let ms = (self.ms)(plan, self.runs);
            self.clock_ms += ms;
            Ok(ms)
        }

        fn spent(&self) -> Duration {
            Duration::from_secs_f64(self.clock_ms / 1e3)
        }
    }

    /// Each group has a best ring, and fewer streams cost.
    fn formula(plan: Plan) -> f64 {
        let group = |kernel, best: (u32, u32), gain| match kernel {
            PathKernel::Bulk { chunk, stages } if (chunk, stages) == best => 0.4 - gain,
            PathKernel::Bulk { .. } | PathKernel::Tiles { .. } => 0.41,
            PathKernel::Plain => 0.4,
        };
        group(plan.horizontal, (16, 2), 0.1)
            + group(plan.vertical, (8, 4), 0.05)
            + group(plan.oblique, (1, 2), 0.1)
            + 0.1 / f64::from(plan.streams)
            + if plan.horizontal_first { 0.03 } else { 0.0 }
    }

    /// Up to `share` more or less, different for every run and the same in every test.
    fn jitter(run: usize, share: f64) -> f64 {
        let unit = (run.wrapping_mul(0x9e37_79b9) >> 8 & 0xffff) as f64 / 65_536.0;
        1.0 + share * (2.0 * unit - 1.0)
    }

    #[test]
    fn finds_the_best_of_every_choice() {
        let mut machine = MadeUp::new(|plan, run| formula(plan) * jitter(run, 0.01));
        let found = machine.found();
        let bulk = |chunk, stages| PathKernel::Bulk { chunk, stages };
        let expected = Plan {
            horizontal: bulk(16, 2),
            vertical: bulk(8, 4),
            oblique: PathKernel::Plain,
            streams: 8,
            horizontal_first: false,
        };
        assert_eq!(found.plan, expected);
        assert!(found.complete && found.chosen.median_ms < found.plain.median_ms, "{found:?}");
        assert!(found.trials.iter().any(|trial| trial.plan == Plan::PLAIN && trial.runs > FINAL_ROUNDS));
        let plans: std::collections::HashSet<_> = found.trials.iter().map(|trial| trial.plan).collect();
        assert_eq!(plans.len(), found.trials.len(), "one trial per plan");
    }

    #[test]
    fn noise_alone_changes_nothing() {
        for seed in 0..20 {
            let found = MadeUp::new(|_, run| 2.0 * jitter(run + 1000 * seed, 0.05)).found();
            assert_eq!(found.plan, Plan::PLAIN, "seed {seed}");
        }
        // Clocks that fall during the search favour no one.
        let found = MadeUp::new(|_, run| 1.0 + run as f64 * 1e-3).found();
        assert_eq!(found.plan, Plan::PLAIN);
    }

    #[test]
    fn plain_stays_where_bulk_copies_do_not_fit() {
        let mut machine = MadeUp { bulk: false, ..MadeUp::new(|plan, _| formula(plan)) };
        let found = machine.found();
        assert_eq!(found.plan, Plan { horizontal_first: false, ..Plan::PLAIN });
    }

    #[test]
    fn ends_in_time_whatever_a_frame_takes() {
        for frame_ms in [0.01, 0.3, 3.0, 30.0, 200.0, 700.0] {
            let mut machine = MadeUp::new(|plan, _| frame_ms * formula(plan));
            let found = machine.found();
            let longest = frame_ms * formula(Plan { streams: 1, ..Plan::PLAIN });
            // A round that has begun is finished: at most all rings of a group.
            let limit = WHOLE_TIME.as_secs_f64() * 1e3 + (RINGS.len() + 2) as f64 * longest;
            assert!(machine.clock_ms < limit, "{frame_ms} ms a frame: {} ms", machine.clock_ms);
            assert!(found.chosen.median_ms <= found.plain.median_ms);
            assert_eq!(found.complete, frame_ms < 10.0, "{frame_ms} ms a frame");
        }
    }

    #[test]
    fn a_device_that_fails_ends_the_search() {
        struct Broken;
        impl Machine for Broken {
            fn fits(&self, _: Plan) -> bool {
                true
            }
            fn run(&mut self, _: Plan) -> Result<f64> {
                Err(crate::Error::Emulator("broken".to_owned()))
            }
            fn spent(&self) -> Duration {
                Duration::ZERO
            }
        }
        assert!(search(&mut Broken).is_err());
    }
}
