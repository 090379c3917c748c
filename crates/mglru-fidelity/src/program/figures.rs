//! Figures of measured programs.

use super::Figures;
use crate::truth::{Fair, Reclaimed, Whole};

/// Sums up what groups lost to requests of `asked` pages.
pub(super) fn fair_figures(fair: &Fair, asked: f64) -> Figures {
    let of = |f: fn(&Reclaimed) -> u64| fair.memcgs.iter().map(|m| f(m) as f64).collect::<Vec<_>>();
    let (stolen, scanned) = (of(|m| m.pgsteal), of(|m| m.pgscan));
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let vm = |name: &str| fair.vm.get(name).copied().unwrap_or(0) as f64;
    [
        ("spread of pgsteal", mglru_lab::stats::spread(&stolen).unwrap_or(0.0)),
        ("stolen per page asked for", (vm("pgsteal_anon") + vm("pgsteal_file")) / asked),
        ("scanned per page stolen", sum(&scanned) / sum(&stolen).max(1.0)),
        ("refaults", sum(&of(|m| m.refault_anon + m.refault_file))),
    ]
    .into()
}

/// Sums up readers beside rounds of memory. A run that was cut off made fewer rounds: what a round
/// cost is compared.
pub(super) fn mixed_figures(whole: &Whole) -> Figures {
    let mut figures = Figures::from([("oom_kill", whole.event("oom_kill"))]);
    if whole.rounds_done > 0 {
        let refaults =
            ["workingset_refault_anon", "workingset_refault_file"].map(|n| whole.counter(n));
        let rounds = whole.rounds_done as f64;
        figures.insert("refaults a round", refaults.iter().sum::<f64>() / rounds);
    }
    figures
}
