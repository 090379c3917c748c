//! The edits of the pager, each with the test that must notice: what it promises is that no store
//! is lost, no byte is another's, no budget is exceeded and no error is kept quiet.

use super::edits::Edit;

/// Lists all of them.
pub const EDITS: &[Edit] = &[
    Edit {
        says: "a dirty page is copied while stores can reach it",
        file: "policy/evict.rs",
        text: "arena.uffd().protect(arena.view().pages(run.first, run.n))\
               .expect(\"an arena's pages\");",
        replacement: "let _ = arena;",
        by: &["stress::anonymous_stores_survive_eviction"],
    },
    Edit {
        says: "a copy's page of zeros is forgotten",
        file: "policy/evict.rs",
        text: "match arena.is_copy() {",
        replacement: "match false {",
        by: &["copies::what_is_stored_to_a_copy_is_its_own"],
    },
    Edit {
        says: "a copy's neighbours are read over what was stored to them",
        file: "handler/fill.rs",
        text: "joined && self.arena.source(page).is_some()",
        replacement: "joined",
        by: &["copies::what_is_stored_to_a_copy_is_its_own"],
    },
    Edit {
        says: "what a file grows into is not protected",
        file: "arena/tables.rs",
        text: "if self.is_heap() { Ok(()) } else \
               { self.uffd().protect(self.view().pages(first, n)) }",
        replacement: "{ let _ = n; Ok(()) }",
        by: &["copies::no_store_to_what_a_file_grew_into_is_lost"],
    },
    Edit {
        says: "a page is written back while stores can reach it",
        file: "policy/writeback.rs",
        text: "arena.uffd().protect(arena.view().pages(first, n)).expect(\"an arena's pages\");",
        replacement: "",
        by: &["stress::file_stores_survive_eviction_and_reach_the_file"],
    },
    Edit {
        says: "a page is taken for clean after its first store",
        file: "handler/install.rs",
        text: "        self.unlock(page, Presence::Dirty);\n    }",
        replacement: "        self.unlock(page, was);\n    }",
        by: &["stress::file_stores_survive_eviction_and_reach_the_file"],
    },
    Edit {
        says: "a thread that serves itself takes a page for clean after its first store",
        file: "sigbus/site.rs",
        text: "Presence::Clean if stored => (self.allow_store(page), Some(Event::Dirtied)),",
        replacement: "Presence::Clean if stored => { self.allow_store(page); (presence, None) }",
        by: &["sigbus::stores_to_files_survive_eviction_and_reach_them"],
    },
    Edit {
        says: "a page is unpinned by the first who unpins it",
        file: "policy/attach.rs",
        text: "            if *left == 0 {\n                pins.remove(&page);",
        replacement: "            if true {\n                pins.remove(&page);",
        by: &["faults::pinned_pages_stay"],
    },
    Edit {
        says: "an evicted page is charged for ever",
        file: "policy/evict.rs",
        text: "                arena.account().uncharge(PAGE_COST);\n\
              \x20               folio.set_mapcount(0);",
        replacement: "                folio.set_mapcount(0);",
        by: &["faults::anonymous_memory_larger_than_the_budget_keeps_every_byte"],
    },
    Edit {
        says: "faults fill a group beyond its limit",
        file: "account.rs",
        text: "let fits = |usage: u64| usage.checked_add(bytes).filter(|&after| after <= most);",
        replacement: "let fits = |usage: u64| usage.checked_add(bytes).filter(|_| most > 0);",
        by: &["groups::a_group_stays_within_its_limit_and_leaves_others_alone"],
    },
    Edit {
        says: "reclaim looks for more while what it met is written",
        file: "policy/jobs.rs",
        text: "        leaving > 0 && self.written < worth_a_step",
        replacement: "        leaving > u64::MAX - 1 && self.written < worth_a_step",
        by: &["reclaim_goes_on_when_no_write_would_help_it"],
    },
    Edit {
        says: "a page that was moved is where it was if the kernel says so",
        file: "sys/uffd.rs",
        text: "Some(libc::EEXIST) && !raw::is_here(src) =>",
        replacement: "Some(libc::EEXIST) && raw::is_here(0) =>",
        by: &["what_moved_although_the_kernel_denies_it_was_taken"],
    },
    Edit {
        says: "a page is written back while its file is written behind it",
        file: "policy/change.rs",
        text: "self.world.held.push((id, pages));",
        replacement: "self.world.held.push((id, 0..0));\n        let _ = pages;",
        by: &["writes::a_store_beside_what_changes_in_the_file_is_kept_and_waits"],
    },
    Edit {
        says: "a store beside what was written to the file is dropped",
        file: "policy/change.rs",
        text: "if presence != Presence::Dirty || within.len() == PAGE {",
        replacement: "if presence != Presence::Gone || within.len() == PAGE {",
        by: &["writes::a_store_beside_what_changes_in_the_file_is_kept_and_waits"],
    },
    Edit {
        says: "a page whose write failed is clean",
        file: "policy/writeback.rs",
        text: "                unlock(arena, page, Presence::Dirty);\n\
              \x20               self.attached(arena.id()).arena.note_error(&error);",
        replacement: "                unlock(arena, page, Presence::Clean);\n\
                     \x20               self.attached(arena.id()).arena.note_error(&error);",
        by: &["durability::a_failed_write_is_reported_once_and_the_page_stays_dirty"],
    },
    Edit {
        says: "the error of a write is nobody's",
        file: "policy/writeback.rs",
        text: "                unlock(arena, page, Presence::Dirty);\n\
              \x20               self.attached(arena.id()).arena.note_error(&error);",
        replacement: "                unlock(arena, page, Presence::Dirty);\n\
                     \x20               let _ = error;",
        by: &["durability::a_failed_write_is_reported_once_and_the_page_stays_dirty"],
    },
    Edit {
        says: "a page that cannot be read is zeros",
        file: "handler/fill.rs",
        text: "Err(error) => self.installer.failed(touch.page, &error),\n        }\n\
              \x20       self.end_stall(stall);",
        replacement: "Err(_) => self.installer.install_zeros(touch),\n        }\n\
                     \x20       self.end_stall(stall);",
        by: &["durability::a_failed_read_is_an_error_for_whoever_touches_the_page"],
    },
    Edit {
        says: "what comes back from the swap file is not looked at",
        file: "swap.rs",
        text: "if *sum != crc32fast::hash(page) =>",
        replacement: "if *sum != *sum =>",
        by: &["swap::tests::a_full_pool_overflows_to_the_file_and_then_refuses"],
    },
    Edit {
        says: "a block of the swap file is given away while it is written",
        file: "swap/slots.rs",
        text: "                *state = Write::Orphaned;\n                return None;",
        replacement: "                *state = Write::Orphaned;\n                None",
        by: &["swap::tests::a_block_is_not_given_away_while_it_is_written"],
    },
    Edit {
        says: "a slot goes with the first of its owners",
        file: "swap/slots.rs",
        text: "            Some(n) => *n -= 1,\n        }\n        false",
        replacement: "            Some(n) => *n -= 1,\n        }\n        true",
        by: &["swap::tests::a_shared_slot_stays_until_its_last_owner_is_gone"],
    },
    Edit {
        says: "a page of zeros is known by its first word",
        file: "swap/codec.rs",
        text: "page.chunks_exact(8).all(|word| word == [0; 8])",
        replacement: "page.chunks_exact(8).take(1).all(|word| word == [0; 8])",
        by: &["heap::a_child_sees_the_moment_of_its_fork", "faults::", "swap::"],
    },
    Edit {
        says: "a child is not given what was in swap at its fork",
        file: "children.rs",
        text: "        self.held.insert(page, Held::Slot(slot));",
        replacement: "        let _ = (page, slot);",
        by: &["heap::a_child_sees_the_moment_of_its_fork"],
    },
    Edit {
        says: "the use that brought a page shows as another",
        file: "policy/fresh.rs",
        text: "        self.world.taken.add(&arena, [arena.view().pages(page, 1)]);\n",
        replacement: "",
        by: &["first_use::"],
    },
    Edit {
        says: "generations do not turn where pages are used once",
        file: "policy/turn.rs",
        text: "find(turned).filter(|_| self.lru.config().is_mglru())",
        replacement: "find(turned).filter(|_| false)",
        by: &["first_use::what_was_used_long_ago"],
    },
];
