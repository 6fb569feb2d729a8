/// What can be true or false of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    /// Its newest version is valid and in force.
    Accepted,
    /// It is shown records.
    Programmed,
    /// Its file is open.
    Writing,
    /// Its end has passed.
    Ended,
    /// Its file has the newest form; the message says which forms there are, and when an old file may be deleted.
    Current,
}

impl ConditionKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Accepted, Self::Programmed, Self::Writing, Self::Ended, Self::Current];

    /// The name in the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Programmed => "Programmed",
            Self::Writing => "Writing",
            Self::Ended => "Ended",
            Self::Current => "Current",
        }
    }
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Whether it holds.
    pub holds: bool,
    /// Why, as a word.
    pub reason: &'static str,
    /// Why, for people; may be empty.
    pub message: String,
    /// Since when, nanoseconds since the Unix epoch.
    pub since_ns: i64,
}

/// All of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions([Condition; ConditionKind::ALL.len()]);

impl Conditions {
    /// One of them.
    #[must_use]
    pub fn get(&self, kind: ConditionKind) -> Option<&Condition> {
        self.0.get(kind as usize)
    }

    /// Sets one; `since_ns` changes only when it begins or ceases to hold.
    pub fn set(
        &mut self,
        kind: ConditionKind,
        holds: bool,
        reason: &'static str,
        message: &str,
        now_ns: i64,
    ) {
        let Some(condition) = self.0.get_mut(kind as usize) else { return };
        if condition.holds != holds || condition.since_ns == 0 {
            condition.since_ns = now_ns;
        }
        condition.holds = holds;
        condition.reason = reason;
        if condition.message != message {
            message.clone_into(&mut condition.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_when_it_began_to_hold() {
        let mut conditions = Conditions::default();
        let kind = ConditionKind::Writing;
        conditions.set(kind, true, "Open", "", 5);
        conditions.set(kind, true, "Moved", "elsewhere", 6);
        assert_eq!(conditions.get(kind).map(|c| (c.holds, c.reason, c.since_ns)), Some((true, "Moved", 5)));
        conditions.set(kind, false, "Closed", "", 7);
        assert_eq!(conditions.get(kind).map(|c| (c.holds, c.since_ns)), Some((false, 7)));
        assert_eq!(conditions.get(ConditionKind::Ended), Some(&Condition::default()));
    }
}
