//! The edits: one broken rule each, in the order of the core's files.

/// One edit of one source file.
pub struct Edit {
    /// Which rule it breaks.
    pub says: &'static str,
    /// Below `crates/mglru/src`.
    pub file: &'static str,
    /// Occurs exactly once.
    pub text: &'static str,
    /// Takes its place.
    pub replacement: &'static str,
}

/// All of them.
pub const EDITS: &[Edit] = &[
    Edit {
        says: "the tier limit protects nobody",
        file: "sort.rs",
        text: "if tier > scan.limit || tiers::is_saturated(flags, model) {",
        replacement: "if tiers::is_saturated(flags, model) {",
    },
    Edit {
        says: "memory.reclaim evicts what could not be demoted",
        file: "demotion.rs",
        text: "if ctl.who != Reclaimer::Proactive {",
        replacement: "if true || ctl.who != Reclaimer::Proactive {",
    },
    Edit {
        says: "the budget is never used up (misport 7)",
        file: "mglru_loop.rs",
        text: "            work.left -= out.scanned as i64;\n",
        replacement: "            work.left -= 0;\n",
    },
    Edit {
        says: "the budget ignores the priority (misport 6)",
        file: "mglru_loop.rs",
        text: "let budget = work.protection.protect(ctl, size) >> ctl.priority;",
        replacement: "let budget = work.protection.protect(ctl, size);",
    },
    Edit {
        says: "three generations age at the first priority (misport 4)",
        file: "mglru_loop.rs",
        text: "AgingNeed::Should => ctl.priority != DEF_PRIORITY ||",
        replacement: "AgingNeed::Should => true ||",
    },
    Edit {
        says: "two generations do not age at the first priority",
        file: "mglru_loop.rs",
        text: "AgingNeed::Must => true,",
        replacement: "AgingNeed::Must => ctl.priority != DEF_PRIORITY,",
    },
    Edit {
        says: "before the series, the loop does not end when it met enough",
        file: "mglru_loop.rs",
        text: "p04 && work.scanned >= work.want",
        replacement: "p04 && work.scanned == u64::MAX",
    },
    Edit {
        says: "root reclaim goes on after aging",
        file: "mglru_loop.rs",
        text: "self.config.patches.p04 && ctl.is_root() && work.aged",
        replacement: "self.config.patches.p04 && ctl.is_root() && work.aged && false",
    },
    Edit {
        says: "the oldest generations of the types run apart",
        file: "generations.rs",
        text: "candidate[lead] = second.max(old[lead]);",
        replacement: "{}",
    },
    Edit {
        says: "prefaulted folios enter like unread ones",
        file: "generations.rs",
        text: "4 - u64::from(flags.has_any([Bit::WORKINGSET, Bit::REFERENCED]))",
        replacement: "4 - workingset",
    },
    Edit {
        says: "dirty file folios are not activated",
        file: "process.rs",
        text: "ImmediateReclaim, n);\n        }\n        self.put_off(id);",
        replacement: "ImmediateReclaim, n);\n        }",
    },
    Edit {
        says: "every folio under writeback counts as congested",
        file: "process.rs",
        text: "if writeback && folio.flags.has(Bit::RECLAIM) {",
        replacement: "if writeback {",
    },
    Edit {
        says: "the end of writeback does not rotate",
        file: "lru.rs",
        text: "        if rotates {\n",
        replacement: "        if rotates && false {\n",
    },
    Edit {
        says: "refaults count for the first tier",
        file: "workingset.rs",
        text: "controller.refaulted[lru_type.index()][tier.index()] += n;",
        replacement: "controller.refaulted[lru_type.index()][0] += n;",
    },
    Edit {
        says: "a distant classic refault is activated",
        file: "workingset.rs",
        text: "distance > self.room(evictor, lru_type) {",
        replacement: "distance < self.room(evictor, lru_type) {",
    },
    Edit {
        says: "the winner of a walk does not end the iteration",
        file: "mm_list.rs",
        text: "        walk.seq = walk.seq.plus(1);\n        NextMm::Over { won: true }",
        replacement: "        NextMm::Over { won: true }",
    },
    Edit {
        says: "one touch promotes",
        file: "tiers.rs",
        text: "if !flags.has_any([Bit::REFERENCED, Bit::WORKINGSET]) {\n        flags.set_refs(0);",
        replacement: "if false {\n        flags.set_refs(0);",
    },
    Edit {
        says: "one dirty folio wakes the flusher",
        file: "eviction.rs",
        text: "done.stats.unqueued_dirty == scan.isolated",
        replacement: "done.stats.unqueued_dirty > 0",
    },
    Edit {
        says: "the type flips although it was scanned",
        file: "scan.rs",
        text: "if !self.config.patches.p06p || scan.scanned == 0 {",
        replacement: "if true {",
    },
    Edit {
        says: "a lost rotation is not tried again",
        file: "eviction.rs",
        text: "!flags.has(Bit::ACTIVE) && !busy && !k612",
        replacement: "!flags.has(Bit::ACTIVE) && !busy && !k612 && false",
    },
    Edit {
        says: "zones are scanned from the lowest",
        file: "scan.rs",
        text: "(0..=reclaim_idx.0).rev().chain",
        replacement: "(0..=reclaim_idx.0).chain",
    },
    Edit {
        says: "anon is evicted with next to no swap left",
        file: "protection.rs",
        text: "view.swap_left < MIN_LRU_BATCH",
        replacement: "view.swap_left == 0",
    },
    Edit {
        says: "memory.min ends one page early",
        file: "protection.rs",
        text: "self.min > 0 && self.usage <= self.min",
        replacement: "self.min > 0 && self.usage < self.min",
    },
    Edit {
        says: "batches stay large",
        file: "debug.rs",
        text: "(true, _) => want.min(MIN_LRU_BATCH),",
        replacement: "(true, _) => want.min(MAX_LRU_BATCH),",
    },
    Edit {
        says: "averages of the controller do not fade",
        file: "controller.rs",
        text: "self.avg_refaulted[t][k] = (self.avg_refaulted[t][k] + self.refaulted[t][k]) / 2;",
        replacement: "self.avg_refaulted[t][k] += self.refaulted[t][k];",
    },
    Edit {
        says: "an aged memcg stays in the old memcg generation",
        file: "memcg_lru.rs",
        text: "Rotation::Young => self.young(),",
        replacement: "Rotation::Young => self.old(),",
    },
    Edit {
        says: "the memcg generation never advances",
        file: "memcg_lru.rs",
        text: "            self.seq += 1;\n",
        replacement: "            self.seq += 0;\n",
    },
    Edit {
        says: "memcgs are not spread over the bins",
        file: "memcg_lru.rs",
        text: "self.link(memcg, slot, draw(), at_head);",
        replacement: "self.link(memcg, slot, 0, at_head);",
    },
    Edit {
        says: "a walker that was carried away skips the rest of its bin",
        file: "memcg_lru.rs",
        text: "let was_carried_away = walk.at != head(walk.slot, walk.bin);",
        replacement: "let was_carried_away = false;",
    },
    Edit {
        says: "a memcg too small for the priority gets no second try",
        file: "node_visit.rs",
        text: "Segment::Default | Segment::Head => Some(Rotation::Tail),",
        replacement: "Segment::Default | Segment::Head => Some(Rotation::Young),",
    },
    Edit {
        says: "a sizable memcg leaves its place although it was not aged",
        file: "node_visit.rs",
        text: "if !work.rotate && is_sizable {",
        replacement: "if false {",
    },
    Edit {
        says: "a memcg below low is reclaimed at its first visit",
        file: "node_visit.rs",
        text: "} else if protection.below_low() && !met_before {",
        replacement: "} else if protection.below_low() && met_before {",
    },
];
