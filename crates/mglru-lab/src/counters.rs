//! Counters a record may carry, with the kernel's names and units.

/// Returns name and meaning of each; pages unless it says otherwise.
pub fn all() -> Vec<(String, String)> {
    mglru_sim::counted::described().map(|(name, about)| (name.to_string(), plain(about))).collect()
}

/// Tells whether a record may carry a counter of this name.
pub fn is_known(name: &str) -> bool {
    mglru_sim::counted::described().any(|(known, _)| known == name)
}

/// Writes a sentence of the code as an entry of a list.
fn plain(about: &str) -> String {
    about.trim_end_matches('.').replace('`', "")
}
