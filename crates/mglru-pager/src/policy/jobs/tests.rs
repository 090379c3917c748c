use super::*;

#[test]
fn reclaim_goes_on_when_no_write_would_help_it() {
    let account = Arc::new(Account::new("/".into(), MemcgId::ROOT, None));
    let (reply, _answer) = std::sync::mpsc::sync_channel(1);
    let mut job = Job::new(account.clone(), Purpose::Requested(reply));
    assert!(!job.waits_for_writes(0), "nothing is written");
    assert!(!job.waits_for_writes(GOAL - 1), "less than is wanted");
    assert!(job.waits_for_writes(GOAL));
    job.written = GOAL - 1;
    assert!(job.waits_for_writes(1), "less was written than a step takes");
    job.written = GOAL;
    assert!(!job.waits_for_writes(GOAL), "a step can take what was written");

    job.purpose = Purpose::Direct(ChargeRetry::default());
    job.written = URGENT - 1;
    assert!(!job.waits_for_writes(GOAL) && job.waits_for_writes(MOST_WRITTEN));
    job.written = URGENT;
    assert!(!job.waits_for_writes(MOST_WRITTEN), "faults wait");

    job.purpose = Purpose::Background;
    account.set(Setting::Max, 64 << 20);
    job.written = 0;
    assert!(!job.waits_for_writes(MOST_WRITTEN), "there is room");
    account.charge_anyway(64 << 20);
    assert!(job.waits_for_writes(MOST_WRITTEN));
}
