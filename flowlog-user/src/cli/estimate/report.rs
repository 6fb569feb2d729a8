//! What tasks cost, as text and as JSON.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "estimates, of which a few digits are shown"
)]

use std::fmt::Write as _;
use std::time::Duration;

use flowlog_user::metrics::TaskCounters;
use flowlog_user::task::Spec;
use serde_json::{Value, json};

use crate::cli::summary::{bytes, count};

const DAY_SECONDS: f64 = 86_400.0;

/// What one task costs.
pub(super) struct Cost {
    task: String,
    /// Records that would have been written before the end was asked for.
    records: u64,
    records_a_second: f64,
    /// Bytes before compression.
    bytes_a_day: f64,
    disk_bytes_a_day: f64,
    /// What compressing took.
    cpu: Duration,
    /// Bytes that its files may take; none when unlimited.
    disk_bytes_max: Option<u64>,
    dropped: u64,
}

impl Cost {
    /// `taken`: records written in `took`, of all that the counters have in the end, and CPU time that compressing them
    /// took.
    pub(super) fn of(
        spec: &Spec,
        counters: &TaskCounters,
        (taken, cpu): (u64, Duration),
        took: Duration,
    ) -> Self {
        let rate = taken as f64 / took.as_secs_f64().max(f64::EPSILON);
        let each = |sum: u64| sum as f64 / (counters.written.get() as f64).max(1.0);
        let a_day = rate * DAY_SECONDS;
        Self {
            task: spec.name.clone(),
            records: taken,
            records_a_second: rate,
            bytes_a_day: a_day * each(counters.written_bytes.get()),
            disk_bytes_a_day: a_day * each(counters.disk_bytes.get()),
            cpu,
            disk_bytes_max: Some(spec.file.total_bytes_max)
                .filter(|max| *max < u64::MAX && !spec.file.is_stdout()),
            dropped: counters.dropped_queue_full.get() + counters.dropped_write_error.get(),
        }
    }

    /// Days until the oldest file goes.
    fn days_kept(&self) -> Option<f64> {
        let max = self.disk_bytes_max? as f64;
        (self.disk_bytes_a_day > 0.0).then(|| max / self.disk_bytes_a_day)
    }
}

/// What all of them cost.
pub(super) struct Report {
    pub(super) took: Duration,
    /// Of the whole process.
    pub(super) cpu: Duration,
    pub(super) costs: Vec<Cost>,
    /// Packets.
    pub(super) lost: u64,
    pub(super) closes: bool,
}

impl Report {
    fn percent(&self, cpu: Duration) -> f64 {
        100.0 * cpu.as_secs_f64() / self.took.as_secs_f64().max(f64::EPSILON)
    }

    /// What the tasks share: draining the kernel, decoding, filters, encoding.
    fn shared(&self) -> Duration {
        self.cpu.saturating_sub(self.costs.iter().map(|cost| cost.cpu).sum())
    }

    pub(super) fn to_json(&self) -> Value {
        let tasks: Vec<Value> = self
            .costs
            .iter()
            .map(|cost| {
                json!({
                    "task": cost.task,
                    "records": cost.records,
                    "records_a_second": cost.records_a_second,
                    "bytes_a_day": cost.bytes_a_day as u64,
                    "disk_bytes_a_day": cost.disk_bytes_a_day as u64,
                    "disk_limit_bytes": cost.disk_bytes_max,
                    "days_kept": cost.days_kept(),
                    "cpu_percent": self.percent(cost.cpu),
                    "dropped": cost.dropped,
                })
            })
            .collect();
        json!({
            "seconds": self.took.as_secs_f64(),
            "tasks": tasks,
            "cpu_percent": { "shared": self.percent(self.shared()), "all": self.percent(self.cpu) },
            "packets_lost": self.lost,
            "closes": self.closes,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut rows =
            vec![["TASK", "RECORDS/S", "DISK A DAY", "PLAIN A DAY", "KEPT FOR", "CPU"].map(str::to_owned)];
        rows.extend(self.costs.iter().map(|cost| {
            [
                cost.task.clone(),
                format!("{:.1}", cost.records_a_second),
                bytes(cost.disk_bytes_a_day as u64),
                bytes(cost.bytes_a_day as u64),
                cost.days_kept().map_or_else(|| "-".into(), days),
                format!("{:.2} %", self.percent(cost.cpu)),
            ]
        }));
        let disk: f64 = self.costs.iter().map(|cost| cost.disk_bytes_a_day).sum();
        let shared = format!("{:.2} %", self.percent(self.shared()));
        let dash = || "-".to_owned();
        rows.push(["shared by all".into(), dash(), dash(), dash(), dash(), shared]);
        rows.push([
            "together".into(),
            format!("{:.1}", self.costs.iter().map(|cost| cost.records_a_second).sum::<f64>()),
            bytes(disk as u64),
            bytes(self.costs.iter().map(|cost| cost.bytes_a_day).sum::<f64>() as u64),
            dash(),
            format!("{:.2} %", self.percent(self.cpu)),
        ]);
        let mut text = table(&rows);
        let dropped: u64 = self.costs.iter().map(|cost| cost.dropped).sum();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "over {:.0} s; CPU in per cent of one core, without the programs in the kernel; {} packets lost, {} records \
             dropped; {}",
            self.took.as_secs_f64(),
            count(self.lost),
            count(dropped),
            if self.closes { "the ledger closes" } else { "the ledger does not close" },
        );
        text
    }
}

fn days(days: f64) -> String {
    match days {
        days if days >= 1000.0 => "years".into(),
        days if days >= 2.0 => format!("{days:.0} days"),
        days => format!("{:.1} hours", days * 24.0),
    }
}

/// Aligned: the first column to the left, numbers to the right.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_what_was_seen_times_how_often_it_fits_in() {
        let (plan, _) = flowlog_user::config::read(
            "t",
            "flowLogs:\n- {name: a, filePath: /var/log/flowlog/a.log, fileMaxTotalMb: 100}\n",
        )
        .unwrap();
        let counters = TaskCounters::default();
        counters.written.add(300);
        counters.written_bytes.add(300_000);
        counters.disk_bytes.add(30_000);
        let took = Duration::from_secs(100);
        // 200 of 300 records came in 100 s: 2 a second, 172,800 a day, of 1,000 bytes, 100 on disk.
        let cost = Cost::of(&plan.tasks[0].spec, &counters, (200, Duration::from_secs(1)), took);
        let report = Report { took, cpu: Duration::from_secs(3), costs: vec![cost], lost: 0, closes: true };
        let json = report.to_json();
        assert_eq!(json["tasks"][0]["records_a_second"], 2.0);
        assert_eq!(json["tasks"][0]["bytes_a_day"], 172_800_000);
        assert_eq!(json["tasks"][0]["disk_bytes_a_day"], 17_280_000);
        assert_eq!(json["cpu_percent"], json!({ "shared": 2.0, "all": 3.0 }));
        // 100 MiB hold 6 days of 17 MB.
        assert!(report.to_text().contains("6 days"), "{}", report.to_text());
    }
}
