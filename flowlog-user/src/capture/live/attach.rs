//! One hook of one device: first in the TCX chain where the kernel has one, a clsact filter of our own otherwise.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aya::Ebpf;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions, TcError, TcHandle, qdisc_add_clsact};
use aya::programs::{LinkOrder, ProgramError, SchedClassifier, TcAttachType, tc::NlOptions};
use flowlog_abi::{hook, names};

use crate::record::Role;

use super::bpf::TcxChain;
use super::load::{load_programs, program, with_causes};
use super::pins::{self, Pins};
use super::roles::Framing;
use super::{Error, HookKind};

/// Handles tried at one priority: each flowlog of this namespace has its own.
const HANDLES: std::ops::Range<u16> = 0xf10..0xf20;

/// The side of a device's hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Ingress,
    Egress,
}

impl Side {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    pub(super) const fn chain(self) -> TcxChain {
        match self {
            Self::Ingress => TcxChain::Ingress,
            Self::Egress => TcxChain::Egress,
        }
    }

    pub(super) const fn attach_type(self) -> TcAttachType {
        match self {
            Self::Ingress => TcAttachType::Ingress,
            Self::Egress => TcAttachType::Egress,
        }
    }
}

/// Where to attach.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) ifindex: u32,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) framing: Framing,
    pub(super) side: Side,
}

/// An attached hook; dropping it detaches, unless it is a pinned link.
pub(super) struct Attached {
    pub(super) kind: HookKind,
    /// The kernel's number of the program.
    pub(super) program: u32,
    link: SchedClassifierLink,
    /// Where the link is pinned.
    pin: Option<PathBuf>,
}

/// What may be there already from a daemon before this one.
pub(super) struct Before<'a> {
    /// Its links.
    pub(super) pins: Option<&'a Pins>,
    /// Its filter at this hook: priority and handle.
    pub(super) filter: Option<(u16, u32)>,
}

impl Attached {
    /// Detaches and says what went wrong (nothing, when the device is gone already).
    pub(super) fn detach(self) -> Result<(), String> {
        use aya::programs::links::Link as _;
        if let Some(pin) = &self.pin {
            pins::remove(pin);
        }
        match self.link.detach() {
            Err(error) if is_gone(&error) => Ok(()),
            // Someone removed our filter, or the clsact qdisc with it.
            Err(error) if matches!(os_error(&error), Some(libc::ENOENT | libc::EINVAL)) => Ok(()),
            result => result.map_err(|error| with_causes(&error)),
        }
    }

    /// Lets go of what went with its device: what is at a hook of that index now is another's.
    pub(super) fn forget(self) {
        if let Some(pin) = &self.pin {
            pins::remove(pin);
        }
        self.leave();
    }

    /// Priority and handle of a filter.
    pub(super) fn filter(&self) -> Option<(u16, u32)> {
        Some((self.link.priority().ok()?, self.link.handle().ok()?.into()))
    }

    /// Leaves it as it is, for the next daemon: a pinned link, or a filter that this one could find again.
    pub(super) fn leave(self) {
        match self.kind {
            HookKind::Tcx => drop(self.link),
            HookKind::Clsact => std::mem::forget(self.link),
        }
    }
}

/// Attaches one hook. `allowed` says which kinds may be tried; a kernel without TCX is remembered there.
pub(super) fn attach(
    ebpf: &mut Ebpf,
    target: &Target,
    allowed: &mut Kinds,
    before: &Before<'_>,
) -> Result<Attached, Error> {
    check_name(target)?;
    load_programs(ebpf, &BTreeSet::from([program_name(target)]))?;
    let program = program(ebpf, program_name(target))?;
    if let Some(attached) = resume(program, target, *allowed, before)? {
        return Ok(attached);
    }
    let attached = if allowed.tcx {
        match attach_tcx(program, target) {
            Err(error) if allowed.clsact && lacks_tcx(&error) => {
                tracing::info!(error = %with_causes(&error), "this kernel has no tcx, attaching with clsact");
                allowed.tcx = false;
                attach_clsact(program, target)
            }
            result => result,
        }
    } else {
        attach_clsact(program, target)
    };
    let attached = match attached {
        Ok(attached) => attached,
        Err(error) if is_gone(&error) => return Err(Error::Gone { name: target.name.clone() }),
        Err(error) => {
            return Err(Error::Attach {
                name: target.name.clone(),
                hook: format!("{} {}", allowed.name(), target.side.name()),
                reason: with_causes(&error),
            });
        }
    };
    check_name(target)?; // dropping `attached` undoes what went to another device of that name
    match before.pins {
        Some(pins) if attached.kind == HookKind::Tcx => pin(attached, pins.link(target.ifindex, target.side)),
        _ => Ok(attached),
    }
}

fn made(
    program: &SchedClassifier,
    kind: HookKind,
    link: SchedClassifierLink,
    pin: Option<PathBuf>,
) -> Attached {
    Attached { kind, program: program.info().map_or(0, |info| info.id()), link, pin }
}

/// Keeps a link beyond this process.
fn pin(attached: Attached, path: PathBuf) -> Result<Attached, Error> {
    let Attached { program, .. } = attached;
    let pinned = FdLink::try_from(attached.link)
        .map_err(|error| with_causes(&error))
        .and_then(|link| link.pin(&path).map_err(|error| with_causes(&error)))
        .and_then(|link| {
            SchedClassifierLink::try_from(FdLink::from(link)).map_err(|error| with_causes(&error))
        });
    match pinned {
        Ok(link) => Ok(Attached { kind: HookKind::Tcx, program, link, pin: Some(path) }),
        Err(reason) => Err(Error::Pin { path, reason }),
    }
}

/// Puts our program in the place of the one that a daemon before this one left, in one step: no packet goes unseen.
/// `None` where there is none, or none that may stay.
fn resume(
    program: &mut SchedClassifier,
    target: &Target,
    allowed: Kinds,
    before: &Before<'_>,
) -> Result<Option<Attached>, Error> {
    let failed = |error: &dyn std::error::Error| Error::Attach {
        name: target.name.clone(),
        hook: format!("{}, in the place of an earlier flowlog's", target.side.name()),
        reason: with_causes(error),
    };
    if let Some(pins) = before.pins
        && pins.has_link(target.ifindex, target.side)
    {
        let path = pins.link(target.ifindex, target.side);
        if !allowed.tcx {
            pins::remove(&path);
        } else if let Ok(link) = PinnedLink::from_pin(&path)
            && let Ok(link) = SchedClassifierLink::try_from(FdLink::from(link))
        {
            match program.attach_to_link(link).and_then(|id| program.take_link(id)) {
                Ok(link) => return Ok(Some(made(program, HookKind::Tcx, link, Some(path)))),
                // The device went meanwhile.
                Err(error) if os_error(&error) == Some(libc::ENOLINK) => pins::remove(&path),
                Err(error) => return Err(failed(&error)),
            }
        }
    }
    let Some((priority, handle)) = before.filter else { return Ok(None) };
    let attach_type = target.side.attach_type();
    let link =
        SchedClassifierLink::attached(&target.name, attach_type, priority, TcHandle::from(handle), None)
            .map_err(|error| failed(&error))?;
    if !allowed.clsact {
        let _ = made(program, HookKind::Clsact, link, None).detach();
        return Ok(None);
    }
    let replaced = program.attach_to_link(link).and_then(|id| program.take_link(id));
    replaced.map(|link| Some(made(program, HookKind::Clsact, link, None))).map_err(|error| failed(&error))
}

/// What may be tried, and what has been found missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    pub(super) tcx: bool,
    pub(super) clsact: bool,
}

impl Kinds {
    const fn name(self) -> &'static str {
        if self.tcx { HookKind::Tcx.name() } else { HookKind::Clsact.name() }
    }
}

pub(super) const fn program_name(target: &Target) -> &'static str {
    let hook = match (target.role, target.side) {
        (Role::Endpoint, Side::Ingress) => hook::ENDPOINT_INGRESS,
        (Role::Endpoint, Side::Egress) => hook::ENDPOINT_EGRESS,
        (Role::Uplink | Role::Other, Side::Ingress) => hook::UPLINK_INGRESS,
        (Role::Uplink | Role::Other, Side::Egress) => hook::UPLINK_EGRESS,
    };
    let programs = match target.framing {
        Framing::Ethernet => &names::ETHERNET_PROGRAMS,
        Framing::RawIp => &names::RAW_IP_PROGRAMS,
    };
    #[expect(clippy::indexing_slicing, reason = "there is a program for each hook")]
    programs[hook as usize]
}

/// aya attaches by name, we mean an index: a rename between the two must not lead to another device.
fn check_name(target: &Target) -> Result<(), Error> {
    match rustix::net::netdevice::name_to_index(rustix_socket()?, &target.name) {
        Ok(ifindex) if ifindex == target.ifindex => Ok(()),
        _ => Err(Error::Gone { name: target.name.clone() }),
    }
}

fn rustix_socket() -> Result<rustix::fd::OwnedFd, Error> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| Error::Netlink(error.into()))
}

fn attach_tcx(program: &mut SchedClassifier, target: &Target) -> Result<Attached, ProgramError> {
    let options = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program.attach_with_options(&target.name, target.side.attach_type(), options)?;
    let link = program.take_link(id)?;
    Ok(made(program, HookKind::Tcx, link, None))
}

fn attach_clsact(program: &mut SchedClassifier, target: &Target) -> Result<Attached, ProgramError> {
    match qdisc_add_clsact(&target.name) {
        Err(TcError::NetlinkError(error)) if error.raw_os_error() == Some(libc::EEXIST) => {} // someone's, shared
        result => result?,
    }
    // Priority 1 with a handle of our own goes in front of a filter that is there already; where another kind of
    // filter holds that priority there is no room in front, and the kernel chooses one behind.
    let mut last = None;
    for handle in HANDLES {
        match attach_filter(program, target, 1, TcHandle::new(0, handle)) {
            Err(error) if os_error(&error) == Some(libc::EEXIST) => last = Some(error),
            Err(error) if os_error(&error) == Some(libc::EINVAL) => {
                return attach_filter(program, target, 0, TcHandle::new(0, handle));
            }
            result => return result,
        }
    }
    Err(last.unwrap_or(ProgramError::AlreadyAttached))
}

fn attach_filter(
    program: &mut SchedClassifier,
    target: &Target,
    priority: u16,
    handle: TcHandle,
) -> Result<Attached, ProgramError> {
    let options = TcAttachOptions::Netlink(NlOptions { priority, handle, classid: None });
    let id = program.attach_with_options(&target.name, target.side.attach_type(), options)?;
    let link = program.take_link(id)?;
    Ok(made(program, HookKind::Clsact, link, None))
}

fn os_error(error: &ProgramError) -> Option<i32> {
    match error {
        ProgramError::SyscallError(error) => error.io_error.raw_os_error(),
        ProgramError::NetlinkError(error) | ProgramError::TcError(TcError::NetlinkError(error)) => {
            error.raw_os_error()
        }
        ProgramError::TcError(TcError::IoError(error)) | ProgramError::IOError(error) => error.raw_os_error(),
        _ => None,
    }
}

/// What kernels before 6.6 say to a TCX link.
fn lacks_tcx(error: &ProgramError) -> bool {
    matches!(os_error(error), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

fn is_gone(error: &ProgramError) -> bool {
    matches!(os_error(error), Some(libc::ENODEV | libc::ENXIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(role: Role, framing: Framing, side: Side) -> &'static str {
        program_name(&Target { ifindex: 1, name: "x".into(), role, framing, side })
    }

    #[test]
    fn each_role_side_and_framing_has_its_program() {
        use Framing::{Ethernet, RawIp};
        use Side::{Egress, Ingress};
        assert_eq!(name(Role::Endpoint, Ethernet, Ingress), "fl_ep_in");
        assert_eq!(name(Role::Endpoint, Ethernet, Egress), "fl_ep_out");
        assert_eq!(name(Role::Uplink, Ethernet, Ingress), "fl_up_in");
        assert_eq!(name(Role::Other, Ethernet, Egress), "fl_up_out");
        assert_eq!(name(Role::Endpoint, RawIp, Ingress), "fl_ep_in_l3");
        assert_eq!(name(Role::Uplink, RawIp, Egress), "fl_up_out_l3");
    }

    #[test]
    fn only_a_kernel_without_tcx_leads_to_clsact() {
        let says = |errno| {
            ProgramError::SyscallError(aya::sys::SyscallError {
                call: "bpf_mprog_attach",
                io_error: std::io::Error::from_raw_os_error(errno),
            })
        };
        assert!(lacks_tcx(&says(libc::EINVAL)));
        for other in [libc::EPERM, libc::ENODEV, libc::ENOMEM, libc::EBUSY] {
            assert!(!lacks_tcx(&says(other)), "{other}");
        }
        assert!(is_gone(&says(libc::ENODEV)) && !is_gone(&says(libc::EPERM)));
    }
}
