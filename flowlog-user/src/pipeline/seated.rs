//! Pipelines whose tasks are all there from the beginning.

use std::sync::{Arc, Mutex};

use super::lane::Kept;
use super::{Pipeline, open};
use crate::clock::wall_ns;
use crate::enrich::Enricher;
use crate::filter::Classifier;
use crate::metrics::Tally;
use crate::task::{Overflow, Phase, Plan, Planned, Running};
use crate::write::{Error, Roots};

impl Pipeline {
    /// Opens every task's file and starts its writer; all or nothing. A task whose end has passed, or whose start is
    /// yet to come, is not opened.
    ///
    /// # Errors
    /// Every task that could not be started.
    pub fn start(
        plan: Plan,
        roots: &Arc<Roots>,
        enricher: Enricher,
        overflow: Overflow,
    ) -> Result<Self, Vec<Error>> {
        let mut errors = Vec::new();
        let mut tasks = Vec::with_capacity(plan.tasks.len());
        for planned in plan.tasks {
            let name = &planned.spec.name;
            if planned.spec.phase(wall_ns()) != Phase::Running {
                tracing::info!(task = %name, "this is not between the task's start and end; its file is not opened");
                continue;
            }
            match open(&planned.spec, roots, Arc::default()) {
                Ok(running) => tasks.push((planned, running)),
                Err(error) => errors.push(error),
            }
        }
        let pipeline = Self::of(tasks, roots, enricher, overflow);
        if errors.is_empty() {
            return Ok(pipeline);
        }
        pipeline.finish();
        Err(errors)
    }

    /// Tasks that run already, wherever their records go.
    #[must_use]
    pub fn of(
        tasks: Vec<(Planned, Running)>,
        roots: &Arc<Roots>,
        enricher: Enricher,
        overflow: Overflow,
    ) -> Self {
        let mut pipeline = Self::new(Arc::clone(roots), enricher, overflow);
        for (planned, running) in tasks {
            pipeline.seat(planned, Kept::default(), running);
        }
        let places = pipeline.lanes.iter().enumerate().map(|(at, lane)| (lane.planned.cadence, Some(at)));
        let places: Vec<_> = places.collect();
        let specs = |cadence| {
            let lanes =
                pipeline.lanes.iter().filter(move |lane| usize::from(lane.planned.cadence) == cadence);
            lanes.map(|lane| &*lane.planned.spec.filter)
        };
        let classifiers = std::array::from_fn(|cadence| Classifier::new(specs(cadence)));
        pipeline.group(classifiers, &places);
        pipeline
    }

    /// Adds up what tasks take, in `tally`, from now on.
    #[must_use]
    pub fn tallied(mut self, tally: Arc<Mutex<Tally>>) -> Self {
        self.tally = Some(tally);
        self
    }
}
