//! Keeps which page lies on which list, passes changes on to the policies and checks what they
//! name.

use std::collections::{BTreeMap, HashMap};

use mglru::host::{ListChange, ListEvent, ListId};
use mglru::types::{FolioId, LruType};

use super::{CustomPolicy, PolicyFactory};
use crate::address_space::Owner;
use crate::error::SimError;
use crate::machine::Machine;

/// Changes of lists that wait for a policy from outside at most.
const LIST_EVENTS: usize = 4096;

/// Holds a page that a policy knows.
struct Page {
    list: ListId,
    folio: FolioId,
    /// The policy has named it, and it is neither gone nor back.
    named: bool,
}

/// Holds the policies of all lists.
pub struct Lists {
    factory: PolicyFactory,
    policies: BTreeMap<ListId, Box<dyn CustomPolicy>>,
    /// Every page of every list. Only looked up: its order decides nothing.
    pages: HashMap<u64, Page>,
    named: Vec<u64>,
    error: Option<String>,
}

impl std::fmt::Debug for Lists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lists").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl Lists {
    pub fn new(factory: PolicyFactory) -> Self {
        Self {
            factory,
            policies: BTreeMap::new(),
            pages: HashMap::new(),
            named: Vec::new(),
            error: None,
        }
    }

    /// Returns what went wrong first.
    pub fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }

    /// Passes changes on. After an error nothing more is passed on: the run is about to end.
    pub fn hear(&mut self, events: &mut Vec<ListEvent>) {
        for event in events.drain(..) {
            if self.error.is_none() {
                self.error = self.change(&event).err();
            }
        }
    }

    /// Passes on that a folio is gone for good, if the policy named it: what left the list in
    /// another way is an event that waits.
    pub fn evicted(&mut self, owner: [u32; 2]) {
        let key = key(owner);
        if self.error.is_none() && self.pages.get(&key).is_some_and(|page| page.named) {
            self.error = self.forget(key).err();
        }
    }

    /// Has the policy of a list name about `count` pages.
    pub fn victims(&mut self, list: ListId, count: u64, out: &mut Vec<FolioId>) {
        if self.error.is_none() {
            self.error = self.name(list, count, out).err();
        }
    }

    fn change(&mut self, event: &ListEvent) -> Result<(), String> {
        let (list, key) = (event.list, key(event.owner));
        match (event.change, self.known(key, event)) {
            (ListChange::Inserted { accessed }, Some(true)) => {
                self.keep(key, event);
                self.ask(list, |policy| policy.returned(key, accessed))
            }
            (ListChange::Inserted { accessed }, None) => {
                self.forget(key)?;
                self.keep(key, event);
                self.ask(list, |policy| policy.inserted(key, accessed))
            }
            (ListChange::Cold, Some(false)) => self.ask(list, |policy| policy.cold(key)),
            (ListChange::Accessed, Some(false)) => self.ask(list, |policy| policy.accessed(key)),
            (ListChange::Removed, Some(_)) => self.forget(key),
            // Only its place on the list changed; or another folio of that page is the one that the
            // policy knows, and this one ends with its write.
            _ => Ok(()),
        }
    }

    /// Returns whether the policy has named the folio; `None`: it does not know it.
    fn known(&self, key: u64, event: &ListEvent) -> Option<bool> {
        let page = self.pages.get(&key)?;
        (page.list == event.list && page.folio == event.folio).then_some(page.named)
    }

    fn keep(&mut self, key: u64, event: &ListEvent) {
        let page = Page { list: event.list, folio: event.folio, named: false };
        self.pages.insert(key, page);
    }

    /// Has the policy forget the page, if it knows it; what it has named it does not hold.
    fn forget(&mut self, key: u64) -> Result<(), String> {
        let Some(page) = self.pages.remove(&key) else { return Ok(()) };
        self.ask(page.list, |policy| match page.named {
            true => policy.evicted(key),
            false => policy.removed(key),
        })
    }

    fn ask<T>(
        &mut self,
        list: ListId,
        ask: impl FnOnce(&mut dyn CustomPolicy) -> Result<T, String>,
    ) -> Result<T, String> {
        if !self.policies.contains_key(&list) {
            let made = (self.factory)(list).map_err(|e| format!("{}: {e}", title(list)))?;
            self.policies.insert(list, made);
        }
        let policy = self.policies.get_mut(&list).expect("it was just made");
        ask(&mut **policy).map_err(|e| format!("{}: {e}", title(list)))
    }

    fn name(&mut self, list: ListId, count: u64, out: &mut Vec<FolioId>) -> Result<(), String> {
        let mut named = std::mem::take(&mut self.named);
        named.clear();
        self.ask(list, |policy| policy.victims(count, &mut named))?;
        let wrong = named.iter().find(|&&key| !self.takes(list, key, out)).copied();
        self.named = named;
        match wrong {
            Some(key) => Err(format!("{}: victims({count}) named {}", title(list), absent(key))),
            None if out.is_empty() => Err(format!("{}: victims({count}) named none", title(list))),
            None => Ok(()),
        }
    }

    /// Tells whether the page lies on the list, and marks it as named.
    fn takes(&mut self, list: ListId, key: u64, out: &mut Vec<FolioId>) -> bool {
        let page = self.pages.get_mut(&key).filter(|page| page.list == list && !page.named);
        let Some(page) = page else { return false };
        page.named = true;
        out.push(page.folio);
        true
    }
}

impl Machine {
    /// Passes changes of lists on before many wait, and at the end; ends the run if a policy from
    /// outside fails.
    pub(crate) fn pass_list_events(&mut self) -> Result<(), SimError> {
        let Some(custom) = &mut self.world.custom else { return Ok(()) };
        if self.lru.list_events() > LIST_EVENTS || self.counted == 0 {
            custom.hear(&mut self.lru.take_list_events());
        }
        custom.take_error().map_or(Ok(()), |text| Err(SimError::Policy(text)))
    }
}

/// Makes the number by which policies know a page.
fn key([who, page]: [u32; 2]) -> u64 {
    u64::from(who) << 32 | u64::from(page)
}

/// Says which page is not where the policy thinks.
fn absent(key: u64) -> String {
    let page = match Owner::unpack([(key >> 32) as u32, key as u32]) {
        Owner::File { file, page } => format!("page {page} of file {file}"),
        Owner::Anon { region, page } => format!("page {page} of region {region}"),
    };
    format!("page {key} ({page}), which is not on its list")
}

/// Names the list in messages.
fn title(list: ListId) -> String {
    let lru_type = if list.lru_type == LruType::Anon { "anon" } else { "file" };
    format!("{lru_type} list of group {} on node {}", list.memcg.0, list.node.0)
}
