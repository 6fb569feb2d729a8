//! Descriptions of types written here by linux/btf.h, whole, cut off, and wrong.

use super::*;

/// Writes a description type by type; the first has the number 1.
#[derive(Default)]
pub(in super::super) struct Writer {
    pub(in super::super) types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
    /// Where each type ends.
    ends: Vec<usize>,
}

impl Writer {
    fn new() -> Self {
        // The empty name stands first.
        Self { strings: vec![0], ..Self::default() }
    }

    fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let at = u32::try_from(self.strings.len()).unwrap();
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        at
    }

    /// A type with the words behind its first three; its number.
    fn add(
        &mut self,
        name: &str,
        (kind, flag, count): (u32, bool, usize),
        number: u32,
        words: &[u32],
    ) -> u32 {
        let name = self.name(name);
        let info = u32::from(flag) << 31 | kind << 24 | u32::try_from(count).unwrap();
        for word in [name, info, number].iter().chain(words) {
            self.types.extend(word.to_ne_bytes());
        }
        self.ends.push(self.types.len());
        self.count += 1;
        self.count
    }

    fn int(&mut self, name: &str, bytes: u32) -> u32 {
        self.add(name, (kind::INT, false, 0), bytes, &[bytes * 8])
    }

    fn about(&mut self, kind: u32, name: &str, of: u32) -> u32 {
        self.add(name, (kind, false, 0), of, &[])
    }

    /// Members by name, type and bit.
    fn record(&mut self, kind: u32, name: &str, flag: bool, bytes: u32, members: &[(&str, u32, u32)]) -> u32 {
        let words: Vec<u32> =
            members.iter().flat_map(|(name, of, bit)| [self.name(name), *of, *bit]).collect();
        self.add(name, (kind, flag, members.len()), bytes, &words)
    }

    fn values(&mut self, name: &str, values: &[(&str, u32)]) -> u32 {
        let words: Vec<u32> = values.iter().flat_map(|(name, value)| [self.name(name), *value]).collect();
        self.add(name, (kind::ENUM, false, values.len()), 4, &words)
    }

    /// The file, with only so many bytes of the types.
    pub(in super::super) fn file(&self, types_bytes: usize) -> Vec<u8> {
        let header = 24;
        let [types, strings] = [types_bytes, self.strings.len()].map(|n| u32::try_from(n).unwrap());
        let mut file = Vec::new();
        file.extend(MAGIC.to_ne_bytes());
        file.extend([1, 0]);
        for word in [header, 0, types, types, strings] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(&self.types[..types_bytes]);
        file.extend(&self.strings);
        file
    }
}

/// Enough of a kernel: a struct with an unnamed union and bit-fields, a tracepoint, and enums.
pub(in super::super) fn kernel() -> Writer {
    let mut to = Writer::new();
    let int = to.int("int", 4);
    let short = to.int("short", 2);
    let octet = to.int("char", 1);
    let pointer = to.about(kind::PTR, "", 0);
    let word = to.about(kind::TYPEDEF, "u32", int);
    let word = to.about(kind::CONST, "", word);
    let name = to.add("", (kind::ARRAY, false, 0), 0, &[octet, int, 16]);
    let device =
        to.record(kind::STRUCT, "net_device", false, 24, &[("name", name, 0), ("ifindex", int, 128)]);
    let to_device = to.about(kind::PTR, "", device);
    let either = to.record(kind::UNION, "", false, 8, &[("dev", to_device, 0), ("dev_scratch", pointer, 0)]);
    let nested = to.record(kind::STRUCT, "", false, 16, &[("next", pointer, 0), ("", either, 64)]);
    // Bit-fields: size in the upper eight bits.
    let members =
        [("", nested, 0), ("len", word, 128), ("protocol", short, 160), ("cloned", octet, 1 << 24 | 178)];
    let buffer = to.record(kind::STRUCT, "sk_buff", true, 24, &members);
    let to_buffer = to.about(kind::PTR, "", buffer);
    let reason =
        to.values("skb_drop_reason", &[("SKB_NOT_DROPPED_YET", 0), ("SKB_DROP_REASON_NO_SOCKET", 3)]);
    to.values("other_drop_reason", &[("OTHER", 0x2_0001)]);
    let words = [0, pointer, 0, to_buffer, 0, pointer, 0, reason];
    let function = to.add("", (kind::FUNC_PROTO, false, 4), 0, &words);
    let to_function = to.about(kind::PTR, "", function);
    to.about(kind::TYPEDEF, "btf_trace_kfree_skb", to_function);
    to
}

/// Everything that is ever asked for.
fn ask(btf: &Btf<'_>) -> Vec<Option<u32>> {
    let mut answers = Vec::new();
    for (of, name) in
        [("sk_buff", "len"), ("sk_buff", "protocol"), ("sk_buff", "dev"), ("net_device", "name")]
    {
        let member = btf.member(of, name);
        answers.push(member.and_then(Member::byte));
        answers.push(member.and_then(|member| btf.bytes_of(member)));
        answers.push(member.and_then(|member| btf.inner(member, "ifindex")).and_then(Member::byte));
    }
    let tracepoint = btf.tracepoint("btf_trace_kfree_skb");
    answers.push(tracepoint.map(|parameters| u32::try_from(parameters.len()).unwrap()));
    answers.push(btf.values("skb_drop_reason").map(|values| u32::try_from(values.len()).unwrap()));
    answers.push(btf.values_like("_drop_reason").last().map(|(value, _)| *value));
    answers
}

#[test]
fn members_are_where_they_were_written() {
    let to = kernel();
    let file = to.file(to.types.len());
    let btf = Btf::parse(&file, 0).unwrap();
    let member = |name: &str| btf.member("sk_buff", name);
    for (name, bits, bytes) in
        [("next", 0, 8), ("dev", 64, 8), ("dev_scratch", 64, 8), ("len", 128, 4), ("protocol", 160, 2)]
    {
        let found = member(name).map(|found| (found.bits, btf.bytes_of(found)));
        assert_eq!(found, Some((bits, Some(bytes))), "{name}");
    }
    // A bit in the middle of a byte has no byte of its own.
    assert_eq!(member("cloned").map(|found| (found.bits, found.byte())), Some((178, None)));
    assert_eq!(member("none"), None);
    assert_eq!(btf.member("none", "len"), None);
    // Behind a pointer begins another place.
    assert_eq!(btf.inner(member("dev").unwrap(), "ifindex"), None);
    let parameters =
        [Parameter::Pointer("sk_buff".into()), Parameter::Other, Parameter::Enum("skb_drop_reason".into())];
    assert_eq!(btf.tracepoint("btf_trace_kfree_skb").as_deref(), Some(&parameters[..]));
    assert_eq!(btf.tracepoint("u32"), None);
    let values = btf.values("skb_drop_reason").unwrap();
    assert_eq!(values, [("SKB_NOT_DROPPED_YET".into(), 0), ("SKB_DROP_REASON_NO_SOCKET".into(), 3)]);
    let all: Vec<u32> = btf.values_like("_drop_reason").into_iter().map(|(value, _)| value).collect();
    assert_eq!(all, [0, 3, 0x2_0001]);
}

#[test]
fn whatever_is_cut_off_is_an_error() {
    let to = kernel();
    let whole = to.file(to.types.len());
    for length in 0..whole.len() {
        let why = Btf::parse(&whole[..length], 0).err().unwrap_or_else(|| panic!("{length} bytes were read"));
        assert!(why == "it is cut off" || length < 2 && why.contains("no BTF"), "{length}: {why}");
    }
    // The same where the header says so: whole types only.
    let full = ask(&Btf::parse(&whole, 0).unwrap());
    assert!(full.iter().filter(|answer| answer.is_some()).count() == 10, "{full:?}");
    for length in 0..to.types.len() {
        let file = to.file(length);
        let read = Btf::parse(&file, 0);
        if length == 0 || to.ends.contains(&length) {
            // A description of fewer types: nothing else is found in the place of what is missing.
            for (answer, right) in ask(&read.unwrap()).into_iter().zip(&full) {
                assert!(
                    answer.is_none() || answer == *right || right == full.last().unwrap(),
                    "{length}: {answer:?}"
                );
            }
        } else {
            assert_eq!(read.err().as_deref(), Some("it is cut off"), "{length} bytes of types");
        }
    }
}

#[test]
fn no_byte_out_of_place_is_the_end() {
    let to = kernel();
    let whole = to.file(to.types.len());
    let mut read = 0;
    for at in 0..whole.len() {
        for wrong in [0, 1, 2, 4, 13, 0x7f, 0x80, 0xff] {
            let mut file = whole.clone();
            file[at] = wrong;
            for first_string in [0, 5, u32::MAX] {
                if let Ok(btf) = Btf::parse(&file, first_string) {
                    ask(&btf);
                    read += 1;
                }
            }
        }
    }
    assert!(read > 1_000, "{read} were read far enough to be asked");
}

#[test]
fn types_that_lead_back_to_themselves_end() {
    let mut to = Writer::new();
    // 1 is 2 is 1; 3 holds itself without a name, twice.
    to.about(kind::TYPEDEF, "a", 2);
    to.about(kind::CONST, "", 1);
    to.record(kind::STRUCT, "s", false, 8, &[("", 3, 0), ("", 3, 0), ("x", 1, 0)]);
    to.about(kind::TYPEDEF, "btf_trace_kfree_skb", 1);
    let file = to.file(to.types.len());
    let btf = Btf::parse(&file, 0).unwrap();
    assert_eq!(btf.tracepoint("btf_trace_kfree_skb"), None);
    assert_eq!(btf.member("s", "none"), None);
    let x = btf.member("s", "x").unwrap();
    assert_eq!((x.bits, btf.bytes_of(x)), (0, None));
}

#[test]
fn a_kind_of_type_that_is_not_known_is_said() {
    let mut to = Writer::new();
    to.add("", (31, false, 0), 0, &[]);
    let file = to.file(to.types.len());
    assert_eq!(Btf::parse(&file, 0).err().as_deref(), Some("types of kind 31 are not known"));
}

#[test]
fn a_modules_names_follow_the_kernels() {
    let kernel = kernel();
    let bytes = kernel.file(kernel.types.len());
    let strings_bytes = Btf::parse(&bytes, 0).unwrap().strings_bytes();
    let mut to = Writer::new();
    to.values("own", &[("OWN_REASON", 7)]);
    // A module counts its strings on from the kernel's.
    let mut file = to.file(to.types.len());
    for at in [24, 24 + 12] {
        let own = word(&file, at).unwrap() + strings_bytes;
        file[at..at + 4].copy_from_slice(&own.to_ne_bytes());
    }
    let module = Btf::parse(&file, strings_bytes).unwrap();
    assert_eq!(module.values_like("").into_iter().collect::<Vec<_>>(), [(7, "OWN_REASON".into())]);
    assert_eq!(module.values("own"), Some(vec![("OWN_REASON".into(), 7)]));
}

/// What the running kernel says of itself, cut off in a thousand places.
#[test]
fn the_running_kernels_own_is_an_error_when_it_is_cut_off() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
    let btf = Btf::parse(&bytes, 0).unwrap();
    assert!(btf.member("sk_buff", "len").is_some() && btf.tracepoint("btf_trace_kfree_skb").is_some());
    for n in 1..1_000 {
        let length = bytes.len() * n / 1_000;
        assert_eq!(Btf::parse(&bytes[..length], 0).err().as_deref(), Some("it is cut off"), "{length} bytes");
    }
}
