//! Metrics as text: OpenMetrics, or Prometheus' classic form.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::board::Board;
use super::families::{Family, Kind, families};

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// What every Prometheus reads.
    Classic,
    /// OpenMetrics 1.0, where it is asked for.
    OpenMetrics,
}

impl Exposition {
    /// From an `Accept` header.
    #[must_use]
    pub fn asked(accept: Option<&str>) -> Self {
        if accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Classic
        }
    }

    /// The answer's `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Every metric as of now. `hubble` adds the five names of Hubble's dynamic exporter, which a node that runs
    /// Cilium's agent has already.
    ///
    /// # Errors
    /// Never for what this crate registers; the encoder's own error otherwise.
    pub fn write(self, board: &Arc<Board>, hubble: bool) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Page { board: Arc::clone(board), hubble }));
        let mut page = String::new();
        match self {
            Self::Classic => prometheus_text::encode(&mut page, &registry)?,
            Self::OpenMetrics => text::encode(&mut page, &registry)?,
        }
        Ok(page)
    }
}

#[derive(Debug)]
struct Page {
    board: Arc<Board>,
    hubble: bool,
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut all = families(&self.board);
        if self.hubble {
            all.extend(of_hubble(&self.board));
        }
        for family in all.iter().filter(|family| !family.samples.is_empty()) {
            one(&mut encoder, family)?;
        }
        Ok(())
    }
}

fn one(encoder: &mut DescriptorEncoder<'_>, family: &Family) -> Result<(), std::fmt::Error> {
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    };
    // The encoder puts a full stop behind what it is given.
    let help = family.help.strip_suffix('.').unwrap_or(family.help);
    let mut metric = encoder.encode_descriptor(family.name, help, None, kind)?;
    for (labels, value) in &family.samples {
        if labels.is_empty() {
            match family.kind {
                Kind::Counter => metric.encode_counter::<NoLabelSet, _, u64>(value, None)?,
                Kind::Gauge => metric.encode_gauge(value)?,
            }
            continue;
        }
        let mut series = metric.encode_family(labels)?;
        match family.kind {
            Kind::Counter => series.encode_counter::<NoLabelSet, _, u64>(value, None)?,
            Kind::Gauge => series.encode_gauge(value)?,
        }
    }
    Ok(())
}

/// Names, labels and meanings as in Hubble's dynamic exporter.
fn of_hubble(board: &Board) -> Vec<Family> {
    let states = board.tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let present: Vec<_> = states.iter().filter(|(_, state)| state.removed_ns.is_none()).collect();
    #[expect(clippy::cast_precision_loss, reason = "thousands of tasks, not 2^53")]
    let count = |active: bool| present.iter().filter(|(_, state)| state.is_active() == active).count() as f64;
    let up =
        present.iter().map(|(name, state)| (vec![("name", (*name).clone())], f64::from(state.is_active())));
    let mut all = vec![
        Family {
            name: "hubble_dynamic_exporter_exporters_total",
            help: "Number of configured exporters.",
            kind: Kind::Gauge,
            samples: vec![
                (vec![("status", "active".to_owned())], count(true)),
                (vec![("status", "inactive".to_owned())], count(false)),
            ],
        },
        Family {
            name: "hubble_dynamic_exporter_up",
            help: "Status of each exporter (1: active, 0: inactive).",
            kind: Kind::Gauge,
            samples: up.collect(),
        },
    ];
    let files: BTreeMap<_, _> = present.iter().map(|(_, state)| (&state.file, state.hash)).collect();
    let hash = files.values().flatten().fold(0u64, |all, hash| all ^ hash.first_bits());
    drop(states);
    for family in families(board) {
        let (name, help, kind) = match family.name {
            "flowlog_task_changes" => (
                "hubble_dynamic_exporter_reconfigurations",
                "Number of dynamic exporters reconfigurations.",
                Kind::Counter,
            ),
            "flowlog_config_last_applied_timestamp_seconds" => (
                "hubble_dynamic_exporter_config_last_applied",
                "Timestamp of last applied config.",
                Kind::Gauge,
            ),
            _ => continue,
        };
        all.push(Family { name, help, kind, samples: family.samples });
    }
    all.push(Family {
        name: "hubble_dynamic_exporter_config_hash",
        help: "Hash of last applied config.",
        kind: Kind::Gauge,
        // 48 bits, as much as a float holds exactly.
        samples: vec![(Vec::new(), {
            #[expect(clippy::cast_precision_loss, reason = "48 bits fit")]
            let hash = (hash >> 16) as f64;
            hash
        })],
    });
    all
}
