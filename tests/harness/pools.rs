//! Many pools of addresses, as manifests.

use std::fmt::Write as _;

/// Manifests of `pools` pools with `blocks` blocks each: CIDRs, ranges that are none, and some of IPv6. Of IPv4 all lie in
/// 100.64.0.0/10, each block in a /24 of its own.
#[must_use]
pub fn manifests(pools: u32, blocks: u32) -> String {
    let mut text = String::new();
    for pool in 0..pools {
        let (mut cidrs, mut ranges) = (Vec::new(), Vec::new());
        for number in pool * blocks..(pool + 1) * blocks {
            let v4 = |last: u8| {
                let at = 0x6440_0000 + (number << 8) + u32::from(last);
                std::net::Ipv4Addr::from_bits(at).to_string()
            };
            match number % 8 {
                7 => cidrs.push(format!("'fd00:{number:x}::/64'")),
                odd if odd % 2 == 1 => ranges.push(format!("{}-{}", v4(3), v4(200))),
                _ => cidrs.push(format!("{}/25", v4(0))),
            }
        }
        let (cidrs, ranges) = (cidrs.join(", "), ranges.join(", "));
        let _ = write!(
            text,
            "---\napiVersion: flowlog.io/v1\nkind: AddressPool\nmetadata: {{name: p{pool}}}\nspec: {{cidrs: [{cidrs}], ranges: [{ranges}]}}\n"
        );
    }
    text
}

/// A task that takes what comes from any of them.
#[must_use]
pub fn task(pools: u32) -> String {
    let names: Vec<String> = (0..pools).map(|pool| format!("p{pool}")).collect();
    format!(
        "flowLogs: [{{name: a, filePath: /var/log/flowlog/a.log, where: {{source_pool: [{}]}}}}]\n",
        names.join(", ")
    )
}
