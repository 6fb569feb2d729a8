//! What stands in `config/` beside the task files: names that exist, files that say the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::formats::{printed, python};

fn config(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Every word that begins like a metric of ours.
fn metrics(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("flowlog_"))
        .collect()
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_exist() -> Result<()> {
    let page = config("metrics.md")?;
    let known = metrics(&page);
    for name in ["grafana/flowlog.json", "prometheus/alerts.yaml", "prometheus/alerts_test.yaml"] {
        let text = config(name)?;
        let asked = metrics(&text);
        assert!(!asked.is_empty(), "{name} asks for nothing");
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{name} asks for {unknown:?}, which nobody serves");
    }
    Ok(())
}

#[test]
fn each_alert_fires_and_is_silent_on_a_healthy_node() -> Result<()> {
    let rules = config("prometheus/alerts.yaml")?;
    let tests = config("prometheus/alerts_test.yaml")?;
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert_eq!(tests.matches(&format!("alertname: {alert}\n")).count(), 1, "{alert} is not seen to fire");
        assert_eq!(
            tests.matches(&format!("alertname: {alert}}}")).count(),
            1,
            "{alert} is not seen to be silent"
        );
    }
    let promtool = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/prometheus");
    let Ok(said) =
        Command::new(promtool).args(["test", "rules", "alerts_test.yaml"]).current_dir(folder).output()
    else {
        println!("not run: promtool is not installed (Debian's package prometheus)");
        return Ok(());
    };
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    Ok(())
}

/// Linted and rendered by Helm's own engine, validated by Kubernetes' own schema, and the same as the plain manifest.
#[test]
fn the_chart_gives_what_people_combine() -> Result<()> {
    let Some(mut python) = python() else { return Ok(()) };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let said = printed(python.arg(root.join("tests/offline/chart.py")).args(
        ["config/helm/flowlog", "config/k8s/flowlog.yaml", "config/quickstart.yaml"].map(|at| root.join(at)),
    ))?;
    ensure!(said == b"the chart is well\n", "{}", String::from_utf8_lossy(&said));
    Ok(())
}

#[test]
fn sixteen_owners_have_a_place_in_the_tasks_folder() -> Result<()> {
    let manifest = config("k8s/flowlog.yaml")?;
    for owner in 0..16 {
        let place = format!(
            "                  name: flowlog-tasks-{owner}\n                  optional: true\n                  items: [\
             {{key: tasks.yaml, path: owner-{owner}.yaml}}, {{key: tasks.v1.yaml, path: owner-{owner}.v1.yaml}}, \
             {{key: pools.yaml, path: owner-{owner}-pools.yaml}}]\n"
        );
        assert!(manifest.contains(&place), "{owner}");
    }
    Ok(())
}
