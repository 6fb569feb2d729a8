//! Debian's packages: what is there, what is missing, and installing it with a person's consent.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use crate::{say, step, system};

/// Package lists older than this are fetched again before something is installed.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Programs of the tests and the packages that bring them.
pub(crate) const TEST_TOOLS: &[(&str, &str)] = &[
    ("tshark", "tshark"),
    ("ping", "iputils-ping"),
    ("ethtool", "ethtool"),
    ("zstd", "zstd"),
    ("jq", "jq"),
    ("ip", "iproute2"),
    ("sysctl", "procps"),
    ("nft", "nftables"),
];

/// What stands before an installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AptFacts {
    /// There is an `apt-get`.
    pub(crate) present: bool,
    /// Age of the package lists; `None` when there are none.
    pub(crate) lists_age: Option<Duration>,
    /// The lists know every package that is wanted.
    pub(crate) known: bool,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AptPlan {
    /// Not a Debian: somebody else has to install.
    Impossible,
    /// Fetch the lists first.
    UpdateThenInstall,
    /// The lists are fresh enough.
    Install,
}

/// Decides from facts alone.
pub(crate) fn plan(facts: AptFacts) -> AptPlan {
    match facts {
        AptFacts { present: false, .. } => AptPlan::Impossible,
        AptFacts { known: true, lists_age: Some(age), .. } if age < LISTS_AGE_MAX => AptPlan::Install,
        _ => AptPlan::UpdateThenInstall,
    }
}

/// There is an `apt-get`.
pub(crate) fn has_apt() -> bool {
    system::find_program("apt-get").is_some()
}

/// Installed and configured, as dpkg says.
pub(crate) fn installed(package: &str) -> bool {
    system::output_of(Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]))
        .is_some_and(|status| status == "installed")
}

/// Packages of the tests' programs that are missing.
pub(crate) fn missing_test_tools() -> Vec<String> {
    missing(TEST_TOOLS)
}

/// Packages of those programs, as (program, package), that are missing.
pub(crate) fn missing(programs: &[(&str, &str)]) -> Vec<String> {
    let missing = programs.iter().filter(|(program, _)| system::find_program(program).is_none());
    missing.map(|(_, package)| (*package).to_owned()).collect()
}

/// What `apt-get install` would do, without doing it; `None` when the lists do not know a package.
fn simulate(packages: &[String]) -> Option<String> {
    system::output_of(
        Command::new("apt-get")
            .args(["install", "-s", "--no-install-recommends"])
            .args(packages)
            .env("LC_ALL", "C"),
    )
}

/// The LLVM that the compiler's package depends on, so that one installation brings both.
fn llvm_major_of(simulation: &str) -> Option<u32> {
    simulation.lines().filter_map(|line| line.strip_prefix("Inst libllvm")).find_map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    })
}

/// Packages that the installation would take away.
fn removals(simulation: &str) -> Vec<&str> {
    let lines = simulation.lines().filter_map(|line| line.strip_prefix("Remv "));
    lines.filter_map(|rest| rest.split_whitespace().next()).collect()
}

/// Installs packages; a person at the terminal is asked first unless `yes`. With `with_llvm_dev` the development
/// package of the LLVM that comes along is added.
pub(crate) fn install(why: &str, packages: &[String], with_llvm_dev: bool, yes: bool) -> Result<()> {
    let mut packages = packages.to_vec();
    let mut simulation = simulate(&packages);
    let facts = AptFacts { present: has_apt(), lists_age: lists_age(), known: simulation.is_some() };
    match plan(facts) {
        AptPlan::Impossible => bail!(
            "{why}, and this system has no apt-get; install what these Debian packages bring: {}",
            packages.join(" ")
        ),
        AptPlan::UpdateThenInstall => {
            consent(&format!("{why}; the package lists are missing or old"), &shown("update"), yes)?;
            apt("fetching package lists", &["update".to_owned()])?;
            simulation = simulate(&packages);
        }
        AptPlan::Install => {}
    }
    let Some(mut simulation) = simulation else {
        bail!(
            "{why}, but the package lists know not all of: {}; check /etc/apt for Debian's main and security suites",
            packages.join(" ")
        );
    };
    if with_llvm_dev && let Some(major) = llvm_major_of(&simulation) {
        packages.push(format!("llvm-{major}-dev"));
        simulation = simulate(&packages).unwrap_or(simulation);
    }
    let removed = removals(&simulation);
    if !removed.is_empty() {
        bail!(
            "{why}, but installing {} would remove {}; decide yourself",
            packages.join(" "),
            removed.join(" ")
        );
    }
    let mut args: Vec<String> = ["install", "-y", "--no-install-recommends"].map(str::to_owned).to_vec();
    args.extend(packages);
    consent(why, &shown(&args.join(" ")), yes)?;
    apt("installing packages", &args)
}

/// The command as a person would type it.
fn shown(args: &str) -> String {
    let prefix = if system::is_root() { "" } else { "sudo " };
    format!("{prefix}apt-get {args}")
}

/// Explains, and asks a person at the terminal; elsewhere says what happens.
pub(crate) fn consent(why: &str, command: &str, yes: bool) -> Result<()> {
    say::note(&format!("{why}:\n    {command}"));
    if yes || !system::person_present() {
        return Ok(());
    }
    drop(write!(std::io::stderr(), "Run this now? [Y/n] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    // Just Enter is a yes; the end of the input is not.
    match answer.to_ascii_lowercase().as_str().trim_end_matches(['\r', '\n']) {
        "" if answer.is_empty() => bail!("no answer; run the command above yourself, then start again"),
        "" | "y" | "yes" => Ok(()),
        _ => bail!("not done; run the command above yourself, then start again"),
    }
}

/// Fetches a package without installing it, and unpacks it below `root`. What is in `downloads` is not fetched again;
/// `options` are apt's own.
pub(crate) fn unpack(package: &str, options: &[String], downloads: &Path, root: &Path) -> Result<()> {
    std::fs::create_dir_all(downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
    let name = package.split(':').next().unwrap_or(package);
    let fits = |file: &str| file.starts_with(&format!("{name}_")) && file.ends_with(".deb");
    let find = || names_in(downloads).into_iter().find(|file| fits(file));
    if find().is_none() {
        let mut command = Command::new("apt-get");
        // Root's apt would change to another user, who may not write here.
        command.current_dir(downloads).args(["-o", "APT::Sandbox::User=root"]).args(options);
        step::quiet(&format!("fetching {name}"), command.args(["download", package]), None)?;
    }
    let Some(file) = find() else { bail!("apt-get download left no {package} in {}", downloads.display()) };
    // dpkg-deb makes the last folder only.
    std::fs::create_dir_all(root).with_context(|| format!("cannot create {}", root.display()))?;
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").arg(downloads.join(file)).arg(root);
    step::quiet(&format!("unpacking {name}"), &mut command, None)
}

/// The names of what is in a folder; none where it cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn apt(what: &str, args: &[String]) -> Result<()> {
    // Through `env`, since sudo drops the environment; without it tshark's question would wait for an answer.
    let mut words: Vec<String> =
        ["DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]
            .map(str::to_owned)
            .to_vec();
    words.extend_from_slice(args);
    let mut command = system::as_root("env", &words)?;
    if !system::is_root() && system::person_present() {
        // The password is asked for now, not under a line that is being rewritten.
        step::shown("sudo", Command::new("sudo").arg("-v"))?;
    }
    step::quiet(what, &mut command, None)
}

/// Age of the newest of apt's folders, which every update touches.
fn lists_age() -> Option<Duration> {
    let lists = Path::new("/var/lib/apt/lists");
    let any = std::fs::read_dir(lists)
        .ok()?
        .flatten()
        .any(|e| e.file_name().to_string_lossy().contains("Packages"));
    if !any {
        return None;
    }
    let newest = [lists.to_path_buf(), lists.join("partial")]
        .iter()
        .filter_map(|folder| folder.metadata().ok()?.modified().ok())
        .max()?;
    Some(SystemTime::now().duration_since(newest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn lists_are_fetched_when_missing_old_or_ignorant() {
        let fresh = AptFacts { present: true, lists_age: Some(HOUR), known: true };
        assert_eq!(plan(fresh), AptPlan::Install);
        assert_eq!(plan(AptFacts { known: false, ..fresh }), AptPlan::UpdateThenInstall);
        assert_eq!(plan(AptFacts { lists_age: None, ..fresh }), AptPlan::UpdateThenInstall);
        assert_eq!(plan(AptFacts { lists_age: Some(HOUR * 48), ..fresh }), AptPlan::UpdateThenInstall);
        assert_eq!(plan(AptFacts { present: false, ..fresh }), AptPlan::Impossible);
    }

    #[test]
    fn a_simulation_tells_the_llvm_and_what_would_go() {
        let text = "Reading package lists...\nRemv rustc [1.63.0+dfsg1-2]\n\
                    Inst libllvm22 (1:22.1.8-1~deb12u1 Debian-Security:12/oldstable-security [amd64])\n\
                    Inst rustc-web (1.96.0+dfsg1-1~deb12u2 Debian-Security [amd64])\n";
        assert_eq!(llvm_major_of(text), Some(22));
        assert_eq!(removals(text), ["rustc"]);
        assert_eq!(llvm_major_of("Inst jq (1.6 Debian [amd64])"), None);
    }
}
