//! A sample of each recording, whole, dressed up and damaged.

use super::*;
use crate::trace::event::Operation;
use crate::trace::mutation_tests::mutant;
use crate::trace::packed_tests::PACKS;
use crate::trace::tests::File;

/// One recording of each kind, and what it says: time, operation, space, page, pages.
type Row = (u64, &'static str, u32, u64, u64);

const S: u64 = 1_000_000_000;

const SAMPLES: [(&str, &str, &[Row]); 19] = [
    (
        "msr",
        "128166372003061629,hm,0,Read,8096,4096,100\n128166372002061629,hm,1,Write,4096,1,9\n",
        &[
            (12_816_637_200_306_162_900, "read", 0, 1, 2),
            (12_816_637_200_206_162_900, "write", 1, 1, 1),
        ],
    ),
    (
        "snia-systor",
        "Timestamp,Response,IOType,LUN,Offset,Size\n2.5,,W,4,8192,512\n",
        &[(5 * S / 2, "write", 0, 2, 1)],
    ),
    (
        "alibaba",
        "419,W,8792731648,16384,1577808144360767\n",
        &[(1_577_808_144_360_767_000, "write", 0, 2_146_663, 4)],
    ),
    (
        "tencent",
        "1538323200,12910952,128,0,1063\n",
        &[(1_538_323_200 * S, "read", 0, 1_613_869, 16)],
    ),
    (
        "twitter",
        "0,17,47,300,4,get,0\n3,18,1,2,3,delete,0\n",
        &[(0, "read", 0, 17, 1), (3 * S, "discard", 0, 18, 1)],
    ),
    (
        "meta-kv",
        "key,op,size,op_count,key_size\n17,GET,230,3,30\n18,SET,0,1,30\n",
        &[
            (0, "read", 0, 17, 1),
            (0, "read", 0, 17, 1),
            (0, "read", 0, 17, 1),
            (0, "write", 0, 18, 1),
        ],
    ),
    (
        "ibm",
        "1219008 REST.PUT.OBJECT 17 1056\n1221974 REST.HEAD.OBJECT 39\n5 REST.GET.OBJECT 17\n",
        &[(1_219_008_000_000, "write", 0, 17, 1), (5_000_000, "read", 0, 17, 1)],
    ),
    ("spc", "0,20941264,8192,W,0.551706\n", &[(551_706_000, "write", 0, 2_617_658, 2)]),
    ("fiu", "89966 4892 syslogd 904265560 8 W 6 0 md5\n", &[(89_966, "write", 0, 113_033_195, 1)]),
    ("webcachesim", "5 17 9000 1 2\n", &[(5 * S, "read", 0, 17, 1)]),
    ("libcachesim-csv", "time, object, size\n5, 17, 9000\n", &[(5 * S, "read", 0, 17, 1)]),
    ("libcachesim-csv", "5, 17, 9000\n", &[(5 * S, "read", 0, 17, 1)]),
    ("libcachesim-txt", "17\n18\n", &[(0, "read", 0, 17, 1), (0, "read", 0, 18, 1)]),
    ("lcs-csv", "version,time,op,size,lbn\n1,7,2a,8192,12\n", &[(7 * S, "write", 0, 1, 3)]),
    ("perf-mem", "12 12 0x4005a6 0x7fff5000 54 0x68100142 main\n", &[(0, "load", 0, 0x7fff5, 1)]),
    (
        "damon",
        "base_time_absolute: 8 m 59.809 s\nmonitoring_start: 0 ns\nmonitoring_end: 104.5 ms\n\
        target_id: 1844\nnr_regions: 2\n1000-4000(  12.000 KiB):\t1\n7000-8000(   4.000 KiB):\t0\n",
        &[(104_500_000, "read", 0, 1, 3)],
    ),
    (
        "blkparse",
        "8,0 3 1 0.5 697 G W 16 + 8 [kj]\n8,0 3 2 0.5 697 Q WS 16 + 9 [kj]\n\
        8,0 3 3 0.6 697 P N [kj]\n8,0 3 4 0.7 697 Q FWS [kj]\nCPU3 (8,0):\n Reads Queued: 0\n",
        &[(500_000_000, "write", 0, 2, 2)],
    ),
    (
        "perf-script",
        "ls 12/12 [001] 1.5: page-faults:u: 7fff5000 401000 main (/bin/ls)\n\
        \t    7f0011 f (/lib/x)\n\
        my ls  12 [001] 2.5: exceptions:page_fault_user: address=0x5000 ip=0x1 error_code=0x6\n\
        ls-12 [001] ..... 3.5: mm_filemap_add_to_page_cache: dev 8:1 ino 1a pfn=0x1 ofs=8192 \
        order=1\nls 12 4.5: sched:sched_switch: prev=1\nCPU:0 [LOST 7 EVENTS]\n\
        ls-12 [001] ..... 5.5: mm_filemap_get_pages: dev=8:1 ino=1a ofs=4096-16383\n\
        ls-12 [001] d..1. 6.5: writeback_dirty_folio: bdi 8:1: ino=26 index=16\n",
        &[
            (3 * S / 2, "load", 0, 0x7fff5, 1),
            (5 * S / 2, "store", 0, 5, 1),
            (7 * S / 2, "read", 1, 2, 2),
            (11 * S / 2, "read", 1, 1, 3),
            (13 * S / 2, "write", 1, 16, 1),
        ],
    ),
    (
        "lackey",
        "==1== Lackey\nI  04001090,3\n L 1ffeffe7e0,8\n S 00001fff,2\nI  04001093,3\n \
        M 00002000,4\n",
        &[(1, "load", 0, 0x1ff_effe, 1), (1, "store", 0, 1, 2), (2, "store", 0, 2, 1)],
    ),
];

fn read(source: &Source, bytes: &[u8]) -> Result<Vec<Event>, TraceError> {
    let file = File::new("t", bytes);
    let mut importer = Importer::open(&file.0, source)?;
    let (mut block, mut all) = (Vec::new(), Vec::new());
    while importer.read(&mut block)? {
        for &(event, times) in &block {
            all.extend((0..times.min(1000)).map(|_| event));
        }
    }
    Ok(all)
}

fn rows(events: &[Event]) -> Vec<Row> {
    events.iter().map(|e| (e.time, e.operation.name(), e.space, e.page, e.nr)).collect()
}

#[test]
fn every_recording_is_read_however_it_is_dressed() {
    for (name, text, expected) in SAMPLES {
        let source: Source = name.parse().unwrap();
        let check = |bytes: &[u8], how: &str| {
            assert_eq!(rows(&read(&source, bytes).unwrap()), expected, "{name} {how}");
        };
        check(text.as_bytes(), "plain");
        check(text.replace('\n', "\r\n").as_bytes(), "CRLF");
        check(format!("\u{feff}# of {name}\n\n{}", text.replace('\n', "\n \n#x\n")).as_bytes(), "");
        check(text.trim_end().as_bytes(), "without a last line end");
        PACKS.iter().for_each(|(how, pack)| check(&pack(text.as_bytes()), how));
    }
}

#[test]
fn every_name_has_a_sample_but_the_one_that_is_an_example() {
    let sampled = |name: &&str| SAMPLES.iter().any(|sample| sample.0 == *name);
    let rest: Vec<&str> = Source::known().filter(|name| !sampled(name)).collect();
    assert_eq!(rest, ["csv-offset"]);
    let message = "mrs".parse::<Source>().unwrap_err().to_string();
    assert!(message.starts_with("unknown recording \"mrs\" (known: damon, "), "{message}");
}

fn table(columns: &str, delimiter: &str, pages: bool) -> Source {
    let scale = "s".parse().unwrap();
    Source::table(columns.parse().unwrap(), delimiter.parse().unwrap(), false, scale, pages)
}

#[test]
fn a_table_is_read_by_its_columns() {
    let source = table("time=1,op=2,offset=4,size=5", ";", false);
    let found = read(&source, b"2;w;x;18446744073709551615;1\n1; r ;\"a;b\";0;0\n").unwrap();
    let expected = [(2 * S, "write", 0, u64::MAX >> 12, 1), (S, "read", 0, 0, 1)];
    assert_eq!(rows(&found), expected);
    let source = table("key=id,space=pool?", ",", false);
    let found = read(&source, b"ID,Pool\nab,x\ncd,y\nab,x\n").unwrap();
    assert!(found[0] == found[2] && found[0].space != found[1].space);
    assert_ne!(found[0].page, found[1].page);
}

#[test]
fn objects_are_laid_out_by_their_size_and_move_when_they_grow() {
    let source = table("key=1,size=2,op=3", ",", true);
    let found = read(&source, b"a,9000,r\nb,1,r\na,4096,r\na,9000,r\nb,5000,w\na,0,r\n").unwrap();
    let places: Vec<_> = found.iter().map(|e| (e.page, e.nr)).collect();
    assert_eq!(places, [(0, 3), (3, 1), (0, 1), (0, 3), (4, 2), (0, 1)]);
}

#[test]
fn errors_name_their_line() {
    let import_error = |name: &str, text: &str| {
        let error = read(&name.parse().unwrap(), text.as_bytes()).unwrap_err().to_string();
        assert!(!error.contains('\n') && error.contains("t: "), "{error}");
        error
    };
    for (name, text, expected) in [
        ("msr", "1,h,0,Read,0,1,1\n1,h,0,Erase,0,1,1\n", "line 2: expected an operation"),
        ("msr", "1,h,0,Read\n", "line 1: expected column 6 with a size, found \"1,h,0,Read\""),
        ("msr", "1,h,0,Read,18446744073709551616,1,1\n", "below 2^64"),
        ("msr", "99999999999999999999,h,0,Read,1,1,1\n", "a time"),
        ("spc", "0,1,99999999999999999,r,1\n", "at most 16777216 pages"),
        ("meta-kv", "key,size\n", "a header with a column op"),
        ("damon", "1000-4000: many\n", "line 1: expected a region"),
        ("damon", "4000-1000: 1\n", "line 1: expected a region"),
        ("damon", "0-ffffffffffff0000: 1\n", "at most 16777216 pages"),
        ("blkparse", "8,0 3 2 0.5 697 Q W 16 8 [kj]\n", "line 1: expected a line of blkparse"),
        ("blkparse", "8,0 3 2 0.5 697 D W 16 + 8 [kj]\n", "has it (the first has D): record with"),
        ("perf-script", "ls 12 page-faults: 1\n", "a time such as"),
        ("perf-script", "ls 12 1.0: page-faults: main\n", "-F +addr"),
        ("perf-script", "ls 12 1.0: page-faults: 401000 main+0x1c (/bin/ls)\n", "-F +addr"),
        ("perf-script", "ls 12 1.0: page-faults: 401000 [unknown] (/bin/ls)\n", "-F +addr"),
        ("perf-script", "a-1 1.0: mm_filemap_get_pages: dev=8:1 ino=1 ofs=9-1\n", "an end behind"),
        ("perf-script", "a-1 1.0: writeback_dirty_folio: bdi 8:0 ino=1\n", "bdi NAME: ino=N"),
        ("lackey", " L 12\n", "line 1: expected I, L, S or M"),
        ("lackey", "I  04001090,3\n", "holds no requests"),
        ("twitter", "# nothing\n", "holds no requests"),
    ] {
        let error = import_error(name, text);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn mutants_of_every_recording_are_read_or_refused_in_one_line() {
    for (name, text, _) in SAMPLES {
        let source: Source = name.parse().unwrap();
        let mut refused = 0;
        for seed in 0..200 {
            match read(&source, &mutant(text.as_bytes(), seed)) {
                Ok(events) => assert!(events.iter().all(|e| e.nr > 0), "{name} {seed}"),
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        !message.contains('\n') && message.contains("t: "),
                        "{name}: {message:?}"
                    );
                    refused += 1;
                }
            }
        }
        assert!(refused > 5 && refused < 200, "{name}: {refused} refused");
    }
}

#[test]
fn operations_have_names_and_numbers_of_their_own() {
    for operation in Operation::ALL {
        assert_eq!(Operation::from_number(operation as u8), Some(operation));
    }
    assert_eq!(Operation::from_number(4), None);
}
