//! Programs of others at an interface's hooks: a few instructions each, put together here.

use anyhow::{Context, Result, anyhow};
use aya::Ebpf;
use aya::programs::tc::{NlOptions, TcAttachOptions, TcHandle, qdisc_add_clsact};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

use crate::netns::Netns;

/// What such a program does with every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// TCX_NEXT or TC_ACT_UNSPEC: the next program decides.
    Pass,
    /// TCX_PASS or TC_ACT_OK: the packet goes on, and no program after this one sees it.
    Ok,
    /// TC_ACT_SHOT.
    Drop,
    /// bpf_redirect to the egress of the device with this index.
    Redirect(u32),
}

impl Verdict {
    /// The instructions, as linux/bpf.h numbers them: `r0 = verdict; exit`, or a call before.
    fn code(self) -> Vec<u8> {
        const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];
        let set = |register: u8, value: u32| {
            let [a, b, c, d] = value.to_le_bytes();
            [0xb7, register, 0, 0, a, b, c, d]
        };
        let call = |helper: u8| [0x85, 0, 0, 0, helper, 0, 0, 0];
        match self {
            Self::Pass => [set(0, u32::MAX), EXIT].concat(),
            Self::Ok => [set(0, 0), EXIT].concat(),
            Self::Drop => [set(0, 2), EXIT].concat(),
            Self::Redirect(ifindex) => [set(1, ifindex), set(2, 0), call(23), EXIT].concat(),
        }
    }
}

/// Where in the chain it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind what is there: TCX's default.
    Last,
    /// In front of what is there.
    First,
    /// A clsact filter of this priority (0: the kernel chooses) and handle.
    Clsact(u16, u16),
}

/// A program at both hooks of an interface, until dropped.
#[derive(Debug)]
pub struct Neighbour {
    _ebpf: Ebpf,
}

impl Neighbour {
    /// Attaches one.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn attach(
        netns: &Netns,
        interface: &str,
        name: &str,
        verdict: Verdict,
        place: Place,
    ) -> Result<Self> {
        let (interface, name) = (interface.to_owned(), name.to_owned());
        let attaching = netns.enter(move || {
            let mut ebpf = Ebpf::load(&elf(&name, &verdict.code())?)?;
            let program: &mut SchedClassifier = ebpf.program_mut(&name).context("the program")?.try_into()?;
            program.load()?;
            for side in [TcAttachType::Ingress, TcAttachType::Egress] {
                let options = match place {
                    Place::Last => TcAttachOptions::TcxOrder(LinkOrder::last()),
                    Place::First => TcAttachOptions::TcxOrder(LinkOrder::first()),
                    Place::Clsact(priority, handle) => {
                        let _ = qdisc_add_clsact(&interface); // someone's already
                        let handle = TcHandle::new(0, handle);
                        TcAttachOptions::Netlink(NlOptions { priority, handle, classid: None })
                    }
                };
                program.attach_with_options(&interface, side, options)?;
            }
            Ok(Self { _ebpf: ebpf })
        });
        attaching.join().map_err(|_| anyhow!("attaching died"))?
    }
}

/// An object with one program, as a compiler would write it.
fn elf(name: &str, code: &[u8]) -> Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let section = object.add_section(Vec::new(), b"classifier".to_vec(), SectionKind::Text);
    let symbol = object.add_symbol(Symbol {
        name: name.into(),
        value: 0,
        size: 0,
        kind: SymbolKind::Text,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Undefined,
        flags: SymbolFlags::None,
    });
    object.add_symbol_data(symbol, section, code, 8);
    Ok(object.write()?)
}

/// Everything at one hook of an interface, in the order in which it runs: names and ids of TCX programs, then `tc`'s
/// lines of clsact filters.
///
/// # Errors
/// When the kernel does not say.
pub fn chain(netns: &Netns, interface: &str, side: TcAttachType) -> Result<Vec<String>> {
    let name = interface.to_owned();
    let mut chain = Vec::new();
    if crate::guest::hooks().contains(&"tcx") {
        let asking = netns.enter(move || Ok(SchedClassifier::query_tcx(&name, side)?.1));
        for program in asking.join().map_err(|_| anyhow!("the query died"))?? {
            chain.push(format!("tcx {} id {}", program.name_as_str().unwrap_or("?"), program.id()));
        }
    }
    let word = if side == TcAttachType::Egress { "egress" } else { "ingress" };
    // Without a clsact qdisc there is none.
    let filters = netns.run(&["tc", "filter", "show", "dev", interface, word]).unwrap_or_default();
    chain.extend(filters.lines().filter(|line| line.contains(" handle ")).map(|line| line.trim().to_owned()));
    Ok(chain)
}
