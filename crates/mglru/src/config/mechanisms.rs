//! Mechanisms that all versions have, each with a switch: an ablation says what each is worth.

use alloc::vec::Vec;

switches! {
    /// Holds one switch per mechanism. All are on in every variant.
    Mechanisms {
        /// Refaults feed the controller; without it no tier is protected for its refaults, and
        /// files go before anonymous memory.
        refault_controller = "refaults decide which tiers are protected and which type goes first",
        /// Walks visit the tables alone that were found young; without it all of them.
        bloom_filters = "page-table walks visit only tables that had many young entries",
        /// Pages mapped as programs stay longer; without it they are like other files.
        exec_protection = "file pages that programs run from are kept longer",
        /// One clock opens the generations of both types; without it each type is aged by itself,
        /// and neither waits for the other.
        one_clock = "anonymous memory and files are aged together, by one clock",
    }
}
