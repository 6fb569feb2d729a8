//! The kernel's description of its own types (BTF, linux/btf.h), as far as it is asked for.
//!
//! Nothing is kept of it: it is five megabytes, and a handful of numbers is wanted.

use std::collections::BTreeSet;

const MAGIC: u16 = 0xeb9f;
const VOID: u32 = 0;

mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FWD: u32 = 7;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const FLOAT: u32 = 16;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Types of the kernel, or of a module beside the kernel's.
pub(super) struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where the strings begin: a module's follow the kernel's.
    first_string: u32,
    /// Where in `types` each type begins; the first has the number 1 (of a module: one that nobody asks for).
    begins: Vec<u32>,
}

/// A member of a struct: where it begins, in bits, and its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) bits: u32,
    of: u32,
}

/// One type as it stands there.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// Set where a member's place says its bits too.
    flag: bool,
    /// Size, or the type that it is about.
    number: u32,
    /// What follows: members, values, parameters.
    parts: &'a [u8],
}

/// Bytes behind a type's first twelve.
fn tail(kind: u32, count: u32) -> Option<u32> {
    Some(match kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => count.checked_mul(12)?,
        kind::ENUM | kind::FUNC_PROTO => count.checked_mul(8)?,
        kind::PTR
        | kind::FWD
        | kind::TYPEDEF
        | kind::VOLATILE
        | kind::CONST
        | kind::RESTRICT
        | kind::FUNC
        | kind::FLOAT
        | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Btf<'a> {
    /// Finds its way through the bytes of a file in /sys/kernel/btf. `first_string`: 0, or of a module how many bytes of
    /// strings the kernel has.
    pub(super) fn parse(bytes: &'a [u8], first_string: u32) -> Result<Self, String> {
        let magic = bytes.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
        if magic != Some(MAGIC) {
            return Err("it is no BTF of this machine's byte order".into());
        }
        let cut = || "it is cut off".to_owned();
        let header = |at: usize| word(bytes, at).map(|number| number as usize).ok_or_else(cut);
        let [length, types_at, types_bytes, strings_at, strings_bytes] =
            [header(4)?, header(8)?, header(12)?, header(16)?, header(20)?];
        let section = |at: usize, bytes_long: usize| {
            let begin = length.checked_add(at)?;
            bytes.get(begin..begin.checked_add(bytes_long)?)
        };
        let types = section(types_at, types_bytes).ok_or_else(cut)?;
        let strings = section(strings_at, strings_bytes).ok_or_else(cut)?;
        let (mut begins, mut at) = (Vec::new(), 0_u32);
        while (at as usize) < types.len() {
            begins.push(at);
            let info = word(types, at as usize + 4).ok_or_else(cut)?;
            let kind = info >> 24 & 0x1f;
            let tail =
                tail(kind, info & 0xffff).ok_or_else(|| format!("types of kind {kind} are not known"))?;
            at = at.checked_add(12).and_then(|at| at.checked_add(tail)).ok_or_else(cut)?;
        }
        // The last one ends with them.
        if at as usize == types.len() {
            Ok(Self { types, strings, first_string, begins })
        } else {
            Err(cut())
        }
    }

    /// Bytes of all strings: where those of a module begin.
    pub(super) fn strings_bytes(&self) -> u32 {
        u32::try_from(self.strings.len()).unwrap_or(u32::MAX)
    }

    fn at(&self, begin: u32) -> Option<Type<'a>> {
        let rest = self.types.get(begin as usize..)?;
        let (name, info, number) = (word(rest, 0)?, word(rest, 4)?, word(rest, 8)?);
        let kind = info >> 24 & 0x1f;
        let tail = tail(kind, info & 0xffff)? as usize;
        Some(Type { name, kind, flag: info >> 31 != 0, number, parts: rest.get(12..12 + tail)? })
    }

    fn get(&self, number: u32) -> Option<Type<'a>> {
        self.at(*self.begins.get(number.checked_sub(1)? as usize)?)
    }

    fn text(&self, at: u32) -> &'a str {
        let from = at.checked_sub(self.first_string).and_then(|at| self.strings.get(at as usize..));
        let bytes = from.and_then(|from| from.split(|byte| *byte == 0).next()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = Type<'a>> + '_ {
        self.begins.iter().filter_map(|begin| self.at(*begin))
    }

    fn find(&self, kind: u32, name: &str) -> Option<Type<'a>> {
        self.all().find(|of| of.kind == kind && self.text(of.name) == name)
    }

    /// Behind names, `const` and the like.
    fn bare(&self, mut number: u32) -> Option<Type<'a>> {
        // No chain of these is longer than this; one that goes in a circle must end.
        for _ in 0..32 {
            let of = self.get(number)?;
            match of.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    number = of.number;
                }
                _ => return Some(of),
            }
        }
        None
    }

    /// A member of a struct, also of structs and unions without a name within it.
    pub(super) fn member(&self, of: &str, name: &str) -> Option<Member> {
        self.member_of(self.find(kind::STRUCT, of)?, name, 0)
    }

    /// A member of what a member is, which is a struct.
    pub(super) fn inner(&self, outer: Member, name: &str) -> Option<Member> {
        let inner = self.member_of(self.bare(outer.of)?, name, 0)?;
        Some(Member { bits: outer.bits.checked_add(inner.bits)?, of: inner.of })
    }

    fn member_of(&self, of: Type<'a>, name: &str, depth: usize) -> Option<Member> {
        if !matches!(of.kind, kind::STRUCT | kind::UNION) || depth > 8 {
            return None;
        }
        of.parts.chunks_exact(12).find_map(|part| {
            let (own, number, place) = (word(part, 0)?, word(part, 4)?, word(part, 8)?);
            let bits = if of.flag { place & 0x00ff_ffff } else { place };
            match self.text(own) {
                own if own == name => Some(Member { bits, of: number }),
                "" => {
                    let inner = self.member_of(self.bare(number)?, name, depth + 1)?;
                    Some(Member { bits: bits.checked_add(inner.bits)?, of: inner.of })
                }
                _ => None,
            }
        })
    }

    /// Bytes that a member takes, of a kind that has a size of its own.
    pub(super) fn bytes_of(&self, member: Member) -> Option<u32> {
        let of = self.bare(member.of)?;
        match of.kind {
            kind::PTR => Some(8),
            kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::FLOAT => Some(of.number),
            _ => None,
        }
    }

    /// The kind and name of each parameter of the function that a type of this name points to, the first left out.
    pub(super) fn tracepoint(&self, name: &str) -> Option<Vec<Parameter>> {
        let pointer = self.bare(self.find(kind::TYPEDEF, name)?.number)?;
        let function = self.bare(pointer.number)?;
        if pointer.kind != kind::PTR || function.kind != kind::FUNC_PROTO {
            return None;
        }
        let parameters = function.parts.chunks_exact(8).skip(1);
        Some(parameters.map(|part| self.parameter(word(part, 4).unwrap_or(VOID))).collect())
    }

    fn parameter(&self, number: u32) -> Parameter {
        match self.bare(number) {
            Some(of) if of.kind == kind::ENUM => Parameter::Enum(self.text(of.name).to_owned()),
            Some(of) if of.kind == kind::PTR => match self.bare(of.number) {
                Some(to) => Parameter::Pointer(self.text(to.name).to_owned()),
                None => Parameter::Other,
            },
            _ => Parameter::Other,
        }
    }

    /// Names and values of an enum.
    pub(super) fn values(&self, name: &str) -> Option<Vec<(String, u32)>> {
        self.find(kind::ENUM, name).map(|of| self.values_of(of).collect())
    }

    /// Names and values of every enum whose name ends so; of a module those of every enum, since the names of its types
    /// may stand among the kernel's.
    pub(super) fn values_like(&self, end: &str) -> BTreeSet<(u32, String)> {
        let enums = self.all().filter(|of| {
            of.kind == kind::ENUM && (self.first_string != 0 || self.text(of.name).ends_with(end))
        });
        enums
            .flat_map(|of| self.values_of(of).map(|(name, value)| (value, name)).collect::<Vec<_>>())
            .collect()
    }

    fn values_of(&self, of: Type<'a>) -> impl Iterator<Item = (String, u32)> + '_ {
        let part = |part: &[u8]| Some((self.text(word(part, 0)?).to_owned(), word(part, 4)?));
        of.parts.chunks_exact(8).filter_map(part)
    }
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// An enum of this name.
    Enum(String),
    /// A pointer to a struct of this name (empty for others).
    Pointer(String),
    /// Anything else.
    Other,
}

impl Member {
    /// Where it begins, in bytes; `None` in the middle of one.
    pub(super) const fn byte(self) -> Option<u32> {
        if self.bits & 7 == 0 { Some(self.bits / 8) } else { None }
    }
}

#[cfg(test)]
#[path = "btf_tests.rs"]
pub(super) mod tests;
