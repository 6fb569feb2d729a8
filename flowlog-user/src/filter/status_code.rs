use super::json;
use crate::tree::{Problems, Tree};

/// HTTP status codes, or how they begin, one of which must fit the response's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusCodes(Vec<StatusCode>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StatusCode {
    Exact(String),
    Prefix(String),
}

impl StatusCodes {
    pub(super) fn read(tree: &Tree, problems: &mut Problems) -> Option<Self> {
        json::list(tree, problems, |item, problems| {
            let text = item.text(problems)?;
            let code = read(text);
            if code.is_none() {
                let message = format!(
                    "`{text}` is no HTTP status code; expected one like 404, or its beginning like 4+ or 40+"
                );
                problems.error(&item.place, message);
            }
            code
        })
        .map(Self)
    }

    /// Requests have the code 0, which matches nothing.
    pub(super) fn matches(&self, code: u64) -> bool {
        let text = format!("{code:03}");
        code != 0
            && self.0.iter().any(|wanted| match wanted {
                StatusCode::Exact(wanted) => *wanted == text,
                StatusCode::Prefix(wanted) => text.starts_with(wanted),
            })
    }
}

fn read(text: &str) -> Option<StatusCode> {
    let prefix = text.strip_suffix('+');
    let digits = prefix.unwrap_or(text);
    let sound =
        digits.starts_with(|c| ('1'..='5').contains(&c)) && digits.bytes().all(|byte| byte.is_ascii_digit());
    match (prefix, digits.len()) {
        _ if !sound => None,
        (Some(_), 1 | 2) => Some(StatusCode::Prefix(digits.into())),
        (None, 3) => Some(StatusCode::Exact(digits.into())),
        _ => None,
    }
}
