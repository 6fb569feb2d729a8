//! flowlog's eBPF programs. No logic here: attach points in `hooks/`, the way of a packet in `observe.rs`.
#![no_std]
#![no_main]
// Inline assembly for this target: the compiler has no atomic add for it.
#![feature(asm_experimental_arch)]

mod atomic;
mod drops;
mod firsts;
mod hooks;
mod ledger;
mod maps;
mod observe;
mod ring;
mod rules;
mod skb;
mod table;
mod tunnels;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Never reached: a panic path that is left in a program makes the verifier refuse it.
    loop {}
}

#[expect(unsafe_code, reason = "the kernel looks for the licence in this section")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
