//! Says why a run gave no outcome, and whether the caller or the kernel is at fault.

/// Tells mistakes of the user or the host from machines that fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Says that the input or this host does not allow the run; with another it may work.
    #[error("{0}")]
    Input(String),
    /// Says that the machine began, and does not boot, panics or hangs.
    #[error("{0}")]
    Machine(String),
}

impl Failure {
    /// Changes the message and keeps the kind.
    pub fn map_message(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Input(why) => Self::Input(change(why)),
            Self::Machine(why) => Self::Machine(change(why)),
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
