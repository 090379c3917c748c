//! Why a run gave no outcome, by who has to mend it.

/// Tells mistakes of the user or the host from machines that fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The input or this host does not allow the run; with another it may work.
    #[error("{0}")]
    Input(String),
    /// The machine began, and does not boot, panics or hangs.
    #[error("{0}")]
    Machine(String),
}

impl Failure {
    /// Says the same in other words.
    pub fn reworded(self, words: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Input(why) => Self::Input(words(why)),
            Self::Machine(why) => Self::Machine(words(why)),
        }
    }
}

/// Treats every error around a machine as the host's.
impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Input(why)
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.to_string()
    }
}
