//! Figures beside their floors: judged, as a table, and as JSON.

use anyhow::Result;
use serde_json::{Value, json};

use crate::measure::{Series, Spread};

/// What a figure's ratio (or the figure itself, where there is no floor) must be.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Costs, delays, sizes.
    AtMost(f64),
    /// Throughputs.
    AtLeast(f64),
    /// Said for comparison; nothing is promised.
    None,
}

/// One line of the report.
pub struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    floor: Option<f64>,
    judged: Spread,
    target: Target,
}

impl Figure {
    /// A measured series beside its floor (or peer) from the same rounds; the target speaks of their ratio.
    pub fn beside(
        name: impl Into<String>,
        series: &Series,
        floor: &Series,
        unit: &'static str,
        target: Target,
    ) -> Self {
        Self {
            name: name.into(),
            value: series.median(),
            unit,
            floor: Some(floor.median()),
            judged: series.over(floor),
            target,
        }
    }

    /// A figure without a floor; the target speaks of the figure itself. Give an exact one as three times the same.
    pub fn alone(name: impl Into<String>, value: Spread, unit: &'static str, target: Target) -> Self {
        Self { name: name.into(), value: value.median, unit, floor: None, judged: value, target }
    }

    /// Whether the target is met; `None` when there is none, or when the noise is larger than the distance to it.
    pub fn met(&self) -> Option<bool> {
        let Spread { low, high, .. } = self.judged;
        let (surely, never) = match self.target {
            Target::AtMost(most) => (high <= most, low > most),
            Target::AtLeast(least) => (low >= least, high < least),
            Target::None => return None,
        };
        match (surely, never) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.met(), self.target) {
            (_, Target::None) => "",
            (Some(true), _) => "met",
            (Some(false), _) => "MISSED",
            (None, _) => "noise too large to judge",
        }
    }

    fn ratio(&self) -> Option<f64> {
        self.floor.map(|_| self.judged.median)
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::AtMost(most) => format!("<= {most}"),
            Target::AtLeast(least) => format!(">= {least}"),
            Target::None => String::new(),
        }
    }
}

/// The figures for people. The interval is the one of the median with 95 % confidence.
pub fn table(figures: &[Figure]) -> String {
    let header = ["figure", "value", "unit", "floor", "ratio", "interval", "target", ""].map(str::to_owned);
    let rows: Vec<[String; 8]> = std::iter::once(header)
        .chain(figures.iter().map(|figure| {
            [
                figure.name.clone(),
                number(figure.value),
                figure.unit.to_owned(),
                figure.floor.map(number).unwrap_or_default(),
                figure.ratio().map(number).unwrap_or_default(),
                format!("{}-{}", number(figure.judged.low), number(figure.judged.high)),
                figure.target_text(),
                figure.verdict().to_owned(),
            ]
        }))
        .collect();
    let mut widths = [0; 8];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at {
            0 | 2 | 7 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The figures for programs: `met` is null where there is no target or the noise forbids a judgement.
pub fn json(figures: &[Figure]) -> Result<String> {
    let results: Vec<Value> = figures
        .iter()
        .map(|figure| {
            json!({
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "floor": figure.floor,
                "ratio": figure.ratio(),
                "low": figure.judged.low,
                "high": figure.judged.high,
                "target": (!matches!(figure.target, Target::None)).then(|| figure.target_text()),
                "met": figure.met(),
            })
        })
        .collect();
    Ok(serde_json::to_string(&json!({ "results": results }))?)
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1_000_000.0 {
        format!("{:.2} M", value / 1e6)
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(low: f64, median: f64, high: f64, target: Target) -> Figure {
        Figure::alone("a", Spread { median, low, high }, "ns", target)
    }

    #[test]
    fn noise_across_the_target_is_not_judged() {
        use Target::{AtLeast, AtMost, None as Nothing};
        let met = |low, high, target| figure(low, f64::midpoint(low, high), high, target).met();
        assert_eq!(met(1.0, 1.2, AtMost(1.3)), Some(true));
        assert_eq!(met(1.2, 1.4, AtMost(1.3)), None);
        assert_eq!(met(1.4, 1.5, AtMost(1.3)), Some(false));
        assert_eq!(met(0.8, 0.9, AtLeast(0.75)), Some(true));
        assert_eq!(met(0.7, 0.8, AtLeast(0.75)), None);
        assert_eq!(met(0.5, 0.7, AtLeast(0.75)), Some(false));
        assert_eq!(met(0.5, 0.7, Nothing), None);
    }

    #[test]
    fn json_has_the_promised_keys() {
        let text = json(&[figure(1.0, 1.1, 1.2, Target::AtMost(1.3))]).expect("written");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let first = value.pointer("/results/0").expect("a result");
        for key in ["name", "value", "unit", "floor", "ratio", "target", "met"] {
            assert!(first.get(key).is_some(), "{key} is missing in {first}");
        }
        assert_eq!(first.pointer("/met"), Some(&Value::Bool(true)));
    }

    #[test]
    fn the_table_says_what_is_missed() {
        let text =
            table(&[figure(1.4, 1.45, 1.5, Target::AtMost(1.3)), figure(1.0, 1.3, 1.5, Target::AtMost(1.3))]);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].ends_with("MISSED"), "{text}");
        assert!(lines[2].ends_with("noise too large to judge"), "{text}");
    }
}
