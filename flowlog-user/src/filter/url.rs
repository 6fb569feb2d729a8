/// The path of a request's URL with its escapes undone, as Go's `url.ParseRequestURI` finds it; `None` where that
/// refuses the URL.
pub(super) fn path(url: &str) -> Option<Vec<u8>> {
    if url.is_empty() || url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return None;
    }
    if url == "*" {
        return Some(b"*".to_vec());
    }
    let (scheme, rest) = scheme(url)?;
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        // `mailto:a@b` has no path; without a scheme it is no request.
        return (!scheme.is_empty()).then(Vec::new);
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority) {
                return None;
            }
            path
        }
        _ => rest,
    };
    unescape(path)
}

/// Scheme and what follows its colon; an empty scheme where there is none.
fn scheme(url: &str) -> Option<(&str, &str)> {
    for (at, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at > 0 => return url.split_once(':'),
            b':' => return None,
            _ => break,
        }
    }
    Some(("", url))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user_fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(user_fits) && unescape(user).is_some() && is_host(host)
}

fn is_host(host: &str) -> bool {
    let port_at = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return false };
        Some(end + 1)
    } else {
        host.rfind(':')
    };
    let port = port_at.and_then(|at| host.get(at..)).unwrap_or_default();
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    let fits = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c);
    // In a host only what is not ASCII may be escaped, and a percent sign (before a zone).
    let escapes_fit = host.match_indices('%').all(|(at, _)| {
        let code = host.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        code.is_some_and(|code| code >= 0x80 || code == b'%')
    });
    port_fits && host.chars().all(fits) && escapes_fit
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high << 4 | low).ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::path;

    /// Expected values: what Go's documentation of `url.ParseRequestURI` and RFC 3986 say.
    #[test]
    fn paths_as_go_finds_them() {
        let table: &[(&str, Option<&str>)] = &[
            ("http://cart.shop/api/v1/items?id=3&q=a", Some("/api/v1/items")),
            ("/relative/path", Some("/relative/path")),
            ("https://u@h:8443/p/q", Some("/p/q")),
            ("http://h/a%20b%2Fc", Some("/a b/c")),
            ("http://h", Some("")),
            ("http://h?x=/y", Some("")),
            ("http://[::1]:80/x", Some("/x")),
            ("http://[fe80::1%25eth0]/x", Some("/x")),
            ("//h/x", Some("//h/x")),
            ("/a#b", Some("/a#b")),
            ("mailto:a@b", Some("")),
            ("*", Some("*")),
            ("", None),
            ("relative/path", None),
            ("http://h/%zz", None),
            ("http://h/%2", None),
            ("http://h:port/", None),
            ("http://h h/", None),
            ("http://h%41/", None),
            ("http://u[@h/", None),
            ("http://[::1/", None),
            (":/x", None),
            ("/a\nb", None),
        ];
        for (url, expected) in table {
            assert_eq!(path(url).as_deref(), expected.map(str::as_bytes), "{url}");
        }
    }
}
