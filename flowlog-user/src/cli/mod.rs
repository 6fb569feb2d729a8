//! The command line: one file for each command, and what they share.
//!
//! In: arguments. Out: calls into the library, text for people, exit codes. What never happens here: anything the
//! library could do.

mod absence;
mod attach;
pub(crate) mod cat;
pub(crate) mod check;
mod client;
pub(crate) mod completions;
mod confine;
mod data_plane;
pub(crate) mod estimate;
pub(crate) mod explain;
mod flags;
pub(crate) mod interfaces;
mod live_line;
pub(crate) mod logging;
mod losses;
mod memory;
pub(crate) mod migrate;
mod notes;
pub(crate) mod observe;
pub(crate) mod open_files;
mod privileged;
mod reload;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
mod serve;
mod session;
mod settling;
pub(crate) mod status;
pub(crate) mod style;
mod summary;
mod systemd;
mod tasks;
pub(crate) mod top;
mod triggers;
pub(crate) mod verify;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use flowlog_user::capture::tunnels::TunnelMode;
use flowlog_user::config::Sources;
use flowlog_user::enrich::snapshot;
use jiff::SignedDuration;

/// Records the network flows of a Linux node: an eBPF program counts every packet per connection, and tasks say which
/// connections are written, with which fields, to which compressed log file.
#[derive(Debug, Parser)]
#[command(
    name = "flowlog",
    version,
    propagate_version = true,
    after_help = "\
Examples:
  flowlog observe --port 443 --not --ip 10.0.0.1
                                                see flows as they come; nothing is written
  flowlog run --tasks config/quickstart.yaml    log what three sample tasks ask for, until Ctrl-C
  flowlog cat /var/log/flowlog -o table         read every log in a folder
  flowlog check config/quickstart.yaml          is this file right, and what will it write?
  flowlog replay --pcap trace.pcap --tasks config/quickstart.yaml --output-dir out
                                                the same from a capture file, without privilege

Exit codes: 0 success, 1 failure, 2 usage (or a path that `check` cannot read)."
)]
pub(crate) struct Flowlog {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: logging::LogArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Capture flows on this machine's interfaces and write each task's log, until Ctrl-C or SIGTERM (needs root, or
    /// CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON).
    Run(run::RunArgs),
    /// Show flows as they come, without task or daemon, until Ctrl-C; writes no file (needs what `run` needs).
    Observe(observe::ObserveArgs),
    /// Validate task files: exit code 0 valid, 1 invalid, 2 cannot read.
    Check(check::CheckArgs),
    /// Print what is in log files and folders, live or finished: each log in the order it was written, several merged
    /// by time.
    Cat(cat::CatArgs),
    /// Check whole log files: frames, checksums, lines, index; exit code 1 when anything is wrong.
    Verify(verify::VerifyArgs),
    /// Put a capture file through the same parser, table, filters and writers, or recorded flows through filters and
    /// writers; needs no privilege.
    Replay(replay::ReplayArgs),
    /// Say which tasks take a flow, and which clause of their filters decided.
    Explain(explain::ExplainArgs),
    /// Run tasks without writing, and say what each would cost: records a second, disk a day, CPU (needs what `run`
    /// needs).
    Estimate(estimate::EstimateArgs),
    /// Ask the running daemon how it is: tasks, ledger, interfaces; exit code 0 when healthy.
    Status(status::StatusArgs),
    /// Watch the running daemon: tasks, rates, losses, who speaks most; `?` for its keys.
    Top(top::TopArgs),
    /// Make task files of an older version into those of the newest, or back; the old ones stay.
    Migrate(migrate::MigrateArgs),
    /// List this machine's interfaces: role, and why some are left out.
    Interfaces(interfaces::InterfacesArgs),
    /// Print the JSON schema of task files, for editors and CI, or a table of all keys.
    Schema(schema::SchemaArgs),
    /// Print a completion script for a shell, e.g. `flowlog completions bash > /etc/bash_completion.d/flowlog`.
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// How much the command says beside its data.
    pub(crate) const fn voice(&self) -> logging::Voice {
        match self {
            Self::Run(_) => logging::Voice::Daemon,
            Self::Observe(observe) => observe.voice(),
            _ => logging::Voice::Command,
        }
    }
}

/// Text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: nothing but JSON on stdout.
    Json,
}

/// Where tasks come from and how the node is named; the same for a live capture and a replay.
#[derive(Args, Debug)]
pub(crate) struct NodeArgs {
    /// Task file, or folder of task files (`*.yaml`, `*.yml`, `*.json`); may be given several times.
    #[arg(long = "tasks", value_name = "PATH", required = true, env = "FLOWLOG_TASKS")]
    pub(crate) tasks: Vec<PathBuf>,
    /// File or folder of address pools, beside those in the tasks' folders; may be given several times.
    #[arg(long = "pools", value_name = "PATH", env = "FLOWLOG_POOLS")]
    pub(crate) pools: Vec<PathBuf>,
    /// Refuse task files in an older form instead of converting them when they are read.
    #[arg(long, env = "FLOWLOG_NO_CONVERT")]
    pub(crate) no_convert: bool,
    /// `node_name` of every record [default: the host name].
    #[arg(long, value_name = "NAME", env = "FLOWLOG_NODE_NAME")]
    pub(crate) node_name: Option<String>,
    /// Put before the node's name: `CLUSTER/NODE`.
    #[arg(long, value_name = "NAME", env = "FLOWLOG_CLUSTER_NAME")]
    pub(crate) cluster_name: Option<String>,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}

/// How packets are counted and read, whoever wants to know.
#[derive(Args, Debug)]
pub(crate) struct CaptureArgs {
    /// Addresses that belong to the cluster (identity `reserved:unmanaged`); may be given several times.
    #[arg(long, value_name = "CIDR", env = "FLOWLOG_CLUSTER_CIDR")]
    pub(crate) cluster_cidr: Vec<ipnet::IpNet>,
    /// Time between two `update` records of a connection while its traffic flows.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, env = "FLOWLOG_ACTIVE_TIMEOUT")]
    pub(crate) active_timeout: SignedDuration,
    /// Whether a connection is reported at every active timeout as long as its traffic flows, or rarer as it ages: when
    /// it is a quarter older than at its last report.
    #[arg(long, value_enum, default_value = "even", env = "FLOWLOG_REPORT_SPACING")]
    pub(crate) report_spacing: ReportSpacing,
    /// Which packet of a tunnel's two (VXLAN, Geneve, GRE, IP in IP) is a flow [default: the inner one where the tunnel
    /// ends on this node, else the outer one].
    #[arg(long, value_enum, env = "FLOWLOG_TUNNEL")]
    pub(crate) tunnel: Option<Tunnel>,
    /// Silence after which a connection is over, for every protocol or for one (`udp=30s`, also icmp, tcp, tcp-opening,
    /// other) [default: udp=30s icmp=10s tcp=300s tcp-opening=30s other=60s; 5 s after FIN or RST in any case].
    #[arg(long, value_name = "[PROTOCOL=]DURATION", value_parser = idle_timeout, env = "FLOWLOG_IDLE_TIMEOUT")]
    pub(crate) idle_timeout: Vec<(IdleOf, SignedDuration)>,
}

/// How reports of a connection follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportSpacing {
    /// At every active timeout.
    Even,
    /// Rarer as the connection ages.
    Aged,
}

/// Which packet of a tunnel's two is a flow.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Tunnel {
    /// The inner one, wherever it can be read.
    Inner,
    /// The outer one.
    Outer,
    /// Both, each for itself.
    Both,
}

/// What an idle timeout is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleOf {
    /// Every protocol.
    All,
    /// UDP.
    Udp,
    /// ICMP and ICMPv6.
    Icmp,
    /// TCP once both sides have sent an ACK.
    Tcp,
    /// TCP before that.
    TcpOpening,
    /// Any other protocol.
    Other,
}

/// This program as a person would type it here, so that what is printed can be copied: as it was called, through sudo
/// when it was.
#[must_use]
pub(crate) fn called() -> String {
    as_typed(std::env::args().next(), std::env::var("SUDO_USER").ok().as_deref())
}

fn as_typed(name: Option<String>, sudo_user: Option<&str>) -> String {
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "flowlog".into());
    let name = if name.contains(char::is_whitespace) { format!("'{name}'") } else { name };
    if sudo_user.is_some_and(|user| user != "root") { format!("sudo {name}") } else { name }
}

/// A positive duration such as `90s`, `2m` or `1h30m`.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let parsed: SignedDuration =
        text.parse().map_err(|_| format!("`{text}` is no duration; write e.g. 90s, 2m or 1h30m"))?;
    if parsed.is_positive() { Ok(parsed) } else { Err("must be longer than nothing".into()) }
}

fn idle_timeout(text: &str) -> Result<(IdleOf, SignedDuration), String> {
    let Some((protocol, rest)) = text.split_once('=') else { return Ok((IdleOf::All, duration(text)?)) };
    let of = match protocol {
        "udp" => IdleOf::Udp,
        "icmp" => IdleOf::Icmp,
        "tcp" => IdleOf::Tcp,
        "tcp-opening" => IdleOf::TcpOpening,
        "other" => IdleOf::Other,
        _ => {
            return Err(format!(
                "unknown protocol `{protocol}`; expected udp, icmp, tcp, tcp-opening or other"
            ));
        }
    };
    Ok((of, duration(rest)?))
}

impl NodeArgs {
    /// Where tasks and pools come from.
    #[must_use]
    pub(crate) fn sources(&self) -> Sources {
        let (tasks, pools) = (self.tasks.clone(), self.pools.clone());
        Sources { tasks, pools, refuse_older: self.no_convert, log_root: None, roots: None }
    }

    /// Node and cluster name as given.
    #[must_use]
    pub(crate) fn names(&self) -> Names {
        (self.node_name.clone(), self.cluster_name.clone())
    }
}

impl CaptureArgs {
    /// What `--tunnel` asks for.
    #[must_use]
    pub(crate) const fn tunnel_mode(&self) -> TunnelMode {
        match self.tunnel {
            None => TunnelMode::Auto,
            Some(Tunnel::Inner) => TunnelMode::Inner,
            Some(Tunnel::Outer) => TunnelMode::Outer,
            Some(Tunnel::Both) => TunnelMode::Both,
        }
    }

    /// The timeouts in the kernel side's unit.
    #[must_use]
    pub(crate) fn timeouts(&self) -> flowlog_ebpf::Timeouts {
        let mut timeouts = flowlog_ebpf::Timeouts {
            active_ns: ns(self.active_timeout),
            aged: self.report_spacing == ReportSpacing::Aged,
            ..Default::default()
        };
        for (of, idle) in &self.idle_timeout {
            let idle = ns(*idle);
            let all = *of == IdleOf::All;
            for (hit, slot) in [
                (*of == IdleOf::Udp, &mut timeouts.udp_ns),
                (*of == IdleOf::Icmp, &mut timeouts.icmp_ns),
                (*of == IdleOf::Tcp, &mut timeouts.tcp_established_ns),
                (*of == IdleOf::TcpOpening, &mut timeouts.tcp_opening_ns),
                (*of == IdleOf::Other, &mut timeouts.other_ns),
            ] {
                if hit || all {
                    *slot = idle;
                }
            }
        }
        timeouts
    }
}

/// The node's name as records have it.
///
/// # Errors
/// When the kernel gives no boot id; nothing could be recorded then.
pub(crate) fn full_name((node, cluster): &Names) -> anyhow::Result<String> {
    Ok(snapshot(node.as_deref(), cluster.as_deref(), BTreeMap::new(), Vec::new())?.name)
}

/// Node name and cluster name, where given.
pub(crate) type Names = (Option<String>, Option<String>);

fn ns(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads a path, and makes it one that means the same from every folder.
fn absolute() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute::<PathBuf>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_typed() {
        let typed = |name: &str, sudo_user| as_typed(Some(name.into()), sudo_user);
        assert_eq!(typed("flowlog", None), "flowlog");
        assert_eq!(typed("target/quick/flowlog", Some("mia")), "sudo target/quick/flowlog");
        assert_eq!(typed("flowlog", Some("root")), "flowlog");
        assert_eq!(typed("/opt/a b/flowlog", None), "'/opt/a b/flowlog'");
        assert_eq!(as_typed(None, None), "flowlog");
    }
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Flowlog::command().debug_assert();
    }

    #[test]
    fn idle_timeouts_are_for_one_protocol_or_all() {
        let parse = |more: &[&str]| {
            let line = [&["flowlog", "run", "--tasks", "t.yaml"], more].concat();
            let Command::Run(run) = Flowlog::try_parse_from(line).unwrap().command else { unreachable!() };
            run.node.capture.timeouts()
        };
        let timeouts = parse(&["--idle-timeout", "2s", "--idle-timeout", "udp=1m"]);
        assert_eq!((timeouts.udp_ns, timeouts.icmp_ns), (60_000_000_000, 2_000_000_000));
        assert_eq!(parse(&[]), flowlog_ebpf::Timeouts::default());
        for bad in ["0s", "-1s", "soon", "dns=3s", "udp="] {
            assert!(idle_timeout(bad).is_err(), "{bad}");
        }
    }
}
