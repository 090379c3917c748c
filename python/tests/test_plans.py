"""Plans from Python give what the program gives."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import mglru

from conftest import SMALL


def test_a_run_is_a_report_of_frozen_records(plan: Path, tmp_path: Path) -> None:
    report = mglru.run(plan, out=tmp_path / "out")
    assert [(r.variant, r.seed) for r in report.records] == [
        ("before", 1), ("before", 2), ("after", 1), ("after", 2),
    ]
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert [mglru.Record.of(json.loads(line)) for line in lines] == list(report.records)
    assert {c.metric for c in report.comparisons} == {"ops_per_s", "pgpgin/ops"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.records[0].seed = 3  # type: ignore[misc]


def test_options_are_those_of_the_program(plan: Path) -> None:
    report = mglru.run(
        plan,
        variants="after",
        seeds=1,
        scale="1/2",
        set={"workload.operations": [1000, 2000], "groups./touch.memory.max": "8MiB"},
        jobs=2,
    )
    points = [(r.point, r.scale, r.variant) for r in report.records]
    assert points == [
        ("workload.operations=1000", 0.5, "after"),
        ("workload.operations=2000", 0.5, "after"),
    ]


def test_a_plan_may_be_text(plan: Path) -> None:
    assert mglru.run(SMALL).records == mglru.run(plan).records


def test_frames_have_a_row_a_run(plan: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    report = mglru.run(plan, set={"workload.tasks": [1, 2]}, seeds=1)
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["workload.tasks"]) == [1, 2, 1, 2]
    assert frame["ops_per_s"].min() > 0 and "/touch:file" in frame and "pgpgin" in frame
    other = report.to_polars()
    assert isinstance(other, polars.DataFrame)
    assert other["pgpgin"].to_list() == list(frame["pgpgin"])
    assert len(report.comparisons.to_pandas()) == len(report.comparisons)


def test_errors_are_the_programs_lines(plan: Path, tmp_path: Path) -> None:
    cases = {
        "no plan named mongdb (did you mean mongodb?)": lambda: mglru.run("mongdb"),
        "scale = 2: must be above 0 and at most 1": lambda: mglru.run(plan, scale=2),
        "seeds = 0: must be from 1": lambda: mglru.run(plan, seeds=0),
        "workload.theat: unknown key": lambda: mglru.run(plan, set={"workload.theat": 1}),
        "--backend kernl: unknown (did you mean kernel?)": lambda: mglru.run(plan, backend="kernl"),
        "modes: unknown one-out": lambda: mglru.ablate(plan, modes=["one-out"]),
        "No such file": lambda: mglru.compare(tmp_path / "a", tmp_path / "b"),
        "--version 2.6: no run was measured": lambda: mglru.validate(versions="2.6"),
    }
    for text, call in cases.items():
        with pytest.raises(mglru.Error) as raised:
            call()
        assert text in str(raised.value)
        assert "\n" not in str(raised.value)


def test_an_ablation_has_findings(plan: Path) -> None:
    found = mglru.ablate(plan, modes=["one-in"], seeds=1)
    assert (found.start, found.end) == ("before", "after")
    assert found.findings and {f.finding for f in found.findings} <= {
        "confirmed", "contradicted", "not-seen", "not-judged",
    }


def test_two_folders_are_compared(plan: Path, tmp_path: Path) -> None:
    mglru.run(plan, variants="before", out=tmp_path / "a")
    mglru.run(plan, variants="after", out=tmp_path / "b")
    (found,) = mglru.compare(tmp_path / "a", tmp_path / "b", "ops_per_s")
    assert (found.base, found.variant, found.n) == ("A before", "B after", 2)
    assert found.ratio is not None and found.ratio > 0


def test_measured_jobs_are_replayed() -> None:
    found = mglru.validate(versions="7.1", only="2pread.")
    assert len(found.counts) > 0 and "7.1.13" in found.versions


LONG = SMALL.replace("operations = 4000", "operations = 100000000")


def test_other_threads_run_meanwhile(plan: Path) -> None:
    count = 0
    done = threading.Event()

    def others() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=others)
    thread.start()
    before = count
    mglru.run(plan, set={"workload.operations": 400_000}, seeds=1, jobs=1)
    done.set()
    thread.join()
    assert count - before > 20


def test_ctrl_c_ends_a_long_run(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        mglru.run(LONG, out=tmp_path / "out")
    assert time.monotonic() - start < 10
    # The folder is free again, and holds no record.
    assert (tmp_path / "out" / "records.jsonl").read_text() == ""
    mglru.run(LONG, set={"workload.operations": 100}, out=tmp_path / "out")
