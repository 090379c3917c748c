//! Swap as one group uses it.

use std::ops::Deref;
use std::sync::Arc;

use super::Swap;
use crate::account::Account;
use crate::pages::Slot;

/// Pairs the pager's swap with the account that pays for slots: what was charged for one is given
/// back with it.
#[derive(Clone)]
pub struct PaidSwap {
    swap: Arc<Swap>,
    account: Arc<Account>,
}

impl PaidSwap {
    /// Has a group pay for what it puts into swap.
    pub fn new(swap: Arc<Swap>, account: Arc<Account>) -> Self {
        Self { swap, account }
    }

    /// Returns the account that pays.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Gives one share of a slot up. A child of a fork may have another.
    pub fn give_up(&self, slot: Slot) {
        if let Some(bytes) = self.swap.free(slot) {
            // The rest of its chunk is paid for at once, before a fault takes the room.
            if let Some(root) = self.account.ancestry().last() {
                self.swap.settle_slack(root);
            }
            self.account.uncharge(bytes);
            self.account.uncharge_swap();
        }
    }
}

impl Deref for PaidSwap {
    type Target = Swap;

    fn deref(&self) -> &Swap {
        &self.swap
    }
}
