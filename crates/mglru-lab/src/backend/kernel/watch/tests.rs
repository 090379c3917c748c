use super::*;

fn take_all(reports: &[Report]) -> Result<Told, String> {
    let mut told = Told::default();
    for report in reports {
        let line = format!("SeaBIOS{}\r", serde_json::to_string(report).unwrap());
        take(&line, Instant::now(), &mut told)?;
    }
    Ok(told)
}

#[test]
fn reports_are_gathered_and_noise_passed_over() {
    let command = Command { text: "+ 2 0 3 1 0".to_string(), rc: -34, took_us: 5 };
    let told = take_all(&[
        Report::Hello { kernel: "6.12".to_string() },
        Report::Ready(Box::default()),
        Report::Mark { phase: 4, at: Box::default() },
        Report::Command(command.clone()),
        Report::Over { at: Box::default(), workers: vec![Ended::default()] },
    ])
    .unwrap();
    assert_eq!((told.kernel.as_str(), told.marks.len()), ("6.12", 1));
    assert_eq!(told.commands, [(1, command)]);
    assert!(told.over.is_some());
    let mut quiet = Told::default();
    take("no report { at all", Instant::now(), &mut quiet).unwrap();
    assert_eq!(quiet, Told::default());
}

#[test]
fn what_the_guest_says_failed_is_the_error() {
    let why = "/dev/vda: this kernel has no driver for it".to_string();
    let error = take_all(&[Report::Failed { why }]).unwrap_err();
    let want = "the guest: /dev/vda: this kernel has no driver for it; mglru kernel check IMAGE";
    assert!(error.starts_with(want), "{error}");
    let why = "task 34: file 0: No space left on device (os error 28)".to_string();
    let error = take_all(&[Report::Failed { why }]).unwrap_err();
    assert!(error.ends_with("28); kernel.disk_room is what files may grow by"), "{error}");
}

#[test]
fn endings_without_a_result_are_told_apart() {
    let end = |told: &Told, messages: &str, complaint: &str| {
        finished(told.clone(), messages, complaint).unwrap_err()
    };
    let silent = Told::default();
    let begun = Told { kernel: "6.12".to_string(), ..Told::default() };
    let panic = "[    1.0] Kernel panic - not syncing: No working init found.\n";
    assert!(
        end(&begun, panic, "").starts_with("the guest panicked: Kernel panic - not syncing: No")
    );
    assert_eq!(end(&silent, "", "w\nqemu: no such image\n"), "qemu: no such image");
    assert_eq!(end(&silent, "", ""), "the guest stopped before it said anything");
}

#[test]
fn what_qemu_refuses_is_no_fault_of_the_kernel() {
    let why = |told: &Told, messages, complaint| blamed(told, messages, complaint)(String::new());
    let begun = Told { kernel: "6.12".to_string(), ..Told::default() };
    let (machine, input) = (Failure::Machine(String::new()), Failure::Input(String::new()));
    assert_eq!(why(&Told::default(), "", "qemu: cannot set up guest memory"), input);
    assert_eq!(why(&Told::default(), "[0.1] early message", "qemu: fatal"), machine);
    assert_eq!(why(&begun, "", "qemu: fatal"), machine);
    assert_eq!(why(&Told::default(), "", "qemu: warning: no such feature"), machine);
    assert_eq!(why(&Told::default(), "", ""), machine, "a kernel without a word");
}

#[test]
fn memory_that_ran_out_is_a_result_once_the_work_began() {
    let over = Told { began: true, over: Some(Snapshot::default()), ..Told::default() };
    let kill = "[ 9.1] Out of memory: Killed process 40 (init) total-vm:1kB\n";
    let told = finished(over, kill, "").unwrap();
    assert_eq!((told.killed[0].pid, told.starved), (40, None));
    let panic = "[ 9.2] Kernel panic - not syncing: System is deadlocked on memory\n";
    let messages = format!("{kill}{panic}");
    let begun = Told { kernel: "6.12".to_string(), began: true, ..Told::default() };
    let told = finished(begun.clone(), &messages, "").unwrap();
    let last = "Kernel panic - not syncing: System is deadlocked on memory";
    assert_eq!((told.killed.len(), told.starved.as_deref()), (1, Some(last)));
    let early = finished(Told { began: false, ..begun }, &messages, "").unwrap_err();
    let want = format!("the guest ran out of memory before the work began (kernel.memory): {last}");
    assert_eq!(early, want);
}

#[test]
fn a_silent_guest_is_given_up() {
    let (sender, receiver) = channel();
    let mut told = Told::default();
    let soon = Duration::from_millis(10);
    let error = hear(&receiver, (&Allowance::new(None), soon, 1), &mut told, || false).unwrap_err();
    assert_eq!(error, "not over after 0 s (kernel.timeout_s)");
    drop(sender);
    assert_eq!(hear(&receiver, (&Allowance::new(None), soon, 1), &mut told, || false), Ok(()));
}

#[test]
fn a_kernel_that_is_off_and_has_told_everything_is_over() {
    let (_sender, receiver) = channel();
    let clock = Allowance::new(None);
    let limits = (&clock, Duration::from_secs(1), 1);
    let mut told = Told { over: Some(Snapshot::default()), ..Told::default() };
    assert_eq!(hear(&receiver, limits, &mut told, || true), Ok(()));
    // One that has not told everything is still waited for.
    let error = hear(&receiver, limits, &mut Told::default(), || true).unwrap_err();
    assert_eq!(error, "not over after 1 s (kernel.timeout_s)");
}
