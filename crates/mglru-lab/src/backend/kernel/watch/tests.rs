use super::*;

fn take_all(messages: &[Report]) -> Result<GuestReport, String> {
    let mut report = GuestReport::default();
    for message in messages {
        let line = format!("SeaBIOS{}\r", serde_json::to_string(message).unwrap());
        take(&line, Instant::now(), &mut report)?;
    }
    Ok(report)
}

#[test]
fn reports_are_gathered_and_noise_passed_over() {
    let command = Command { text: "+ 2 0 3 1 0".to_string(), rc: -34, took_us: 5 };
    let report = take_all(&[
        Report::Hello { kernel: "6.12".to_string() },
        Report::Ready(Box::default()),
        Report::Mark { phase: 4, at: Box::default() },
        Report::Command(command.clone()),
        Report::Over { at: Box::default(), workers: vec![Ended::default()] },
    ])
    .unwrap();
    assert_eq!((report.kernel.as_str(), report.marks.len()), ("6.12", 1));
    assert_eq!(report.commands, [(1, command)]);
    assert!(report.over.is_some());
    let mut quiet = GuestReport::default();
    take("no report { at all", Instant::now(), &mut quiet).unwrap();
    assert_eq!(quiet, GuestReport::default());
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
fn endings_without_a_result_are_distinguished() {
    let end = |report: &GuestReport, messages: &str, complaint: &str| {
        finished(report.clone(), messages, complaint).unwrap_err()
    };
    let silent = GuestReport::default();
    let begun = GuestReport { kernel: "6.12".to_string(), ..GuestReport::default() };
    let panic = "[    1.0] Kernel panic - not syncing: No working init found.\n";
    assert!(
        end(&begun, panic, "").starts_with("the guest panicked: Kernel panic - not syncing: No")
    );
    assert_eq!(end(&silent, "", "w\nqemu: no such image\n"), "qemu: no such image");
    assert_eq!(end(&silent, "", ""), "the guest stopped before it said anything");
}

#[test]
fn what_qemu_refuses_is_no_fault_of_the_kernel() {
    let why = |report: &GuestReport, messages, complaint| {
        blamed(report, messages, complaint)(String::new())
    };
    let begun = GuestReport { kernel: "6.12".to_string(), ..GuestReport::default() };
    let (machine, input) = (Failure::Machine(String::new()), Failure::Input(String::new()));
    assert_eq!(why(&GuestReport::default(), "", "qemu: cannot set up guest memory"), input);
    assert_eq!(why(&GuestReport::default(), "[0.1] early message", "qemu: fatal"), machine);
    assert_eq!(why(&begun, "", "qemu: fatal"), machine);
    assert_eq!(why(&GuestReport::default(), "", "qemu: warning: no such feature"), machine);
    assert_eq!(why(&GuestReport::default(), "", ""), machine, "a kernel without a word");
}

#[test]
fn memory_that_ran_out_is_a_result_once_the_work_began() {
    let over =
        GuestReport { began: true, over: Some(Snapshot::default()), ..GuestReport::default() };
    let kill = "[ 9.1] Out of memory: Killed process 40 (init) total-vm:1kB\n";
    let report = finished(over, kill, "").unwrap();
    assert_eq!((report.killed[0].pid, report.starved), (40, None));
    let panic = "[ 9.2] Kernel panic - not syncing: System is deadlocked on memory\n";
    let messages = format!("{kill}{panic}");
    let begun = GuestReport { kernel: "6.12".to_string(), began: true, ..GuestReport::default() };
    let report = finished(begun.clone(), &messages, "").unwrap();
    let last = "Kernel panic - not syncing: System is deadlocked on memory";
    assert_eq!((report.killed.len(), report.starved.as_deref()), (1, Some(last)));
    let early = finished(GuestReport { began: false, ..begun }, &messages, "").unwrap_err();
    let want = format!("the guest ran out of memory before the work began (kernel.memory): {last}");
    assert_eq!(early, want);
}

#[test]
fn a_silent_guest_is_given_up() {
    let (sender, receiver) = channel();
    let mut report = GuestReport::default();
    let soon = Duration::from_millis(10);
    let error =
        hear(&receiver, (&Allowance::new(None), soon, 1), &mut report, || false).unwrap_err();
    assert_eq!(error, "not over after 0 s (kernel.timeout_s)");
    drop(sender);
    assert_eq!(hear(&receiver, (&Allowance::new(None), soon, 1), &mut report, || false), Ok(()));
}

#[test]
fn a_kernel_that_is_off_and_has_reported_everything_is_over() {
    let (_sender, receiver) = channel();
    let clock = Allowance::new(None);
    let limits = (&clock, Duration::from_secs(1), 1);
    let mut report = GuestReport { over: Some(Snapshot::default()), ..GuestReport::default() };
    assert_eq!(hear(&receiver, limits, &mut report, || true), Ok(()));
    // One that has not reported everything is still waited for.
    let error = hear(&receiver, limits, &mut GuestReport::default(), || true).unwrap_err();
    assert_eq!(error, "not over after 1 s (kernel.timeout_s)");
}
