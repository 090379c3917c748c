"""Sweeps on a real Ray: the same bytes as here, also when a worker is killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Iterator, Optional

import pytest

import mglru
from mglru import _mglru, ray_driver

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    """A cluster of two processors, on this machine."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def records(folder: Path) -> bytes:
    return (folder / "records.jsonl").read_bytes()


def test_records_are_those_of_a_local_sweep(two_workers: None, plan: Path, tmp_path: Path) -> None:
    axes = {"workload.tasks": [1, 2], "groups./touch.memory.max": ["4MiB", "6MiB"]}
    here = mglru.sweep(plan, set=axes, out=tmp_path / "here")
    there = mglru.sweep(plan, set=axes, out=tmp_path / "there", ray="auto")
    assert len(here.records) == 16
    assert records(tmp_path / "there") == records(tmp_path / "here")
    assert there == here


def descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def busy_worker() -> Optional[int]:
    """A worker of ours that makes a run just now."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"ray::mglru_make") and descends(int(entry.name), os.getpid()):
                return int(entry.name)
    return None


def kill_one(killed: list[int]) -> None:
    """Kills a worker in the middle of a run, within a minute."""
    for _ in range(6000):
        pid = busy_worker()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            return
        time.sleep(0.01)


def test_a_run_whose_worker_is_killed_is_made_again(
    two_workers: None, plan: Path, tmp_path: Path
) -> None:
    axes = {"workload.operations": [300_000, 300_001], "workload.tasks": [1, 2]}
    killed: list[int] = []
    thread = threading.Thread(target=kill_one, args=[killed])
    thread.start()
    mglru.sweep(plan, set=axes, seeds=1, out=tmp_path / "there", ray="auto")
    thread.join()
    assert len(killed) == 1
    mglru.sweep(plan, set=axes, seeds=1, out=tmp_path / "here")
    assert records(tmp_path / "there") == records(tmp_path / "here")


def test_a_sweep_goes_on_where_it_was(two_workers: None, plan: Path, tmp_path: Path) -> None:
    mglru.sweep(plan, seeds=2, out=tmp_path / "a")
    whole = records(tmp_path / "a")
    lines = whole.splitlines(keepends=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "records.jsonl").write_bytes(b"".join(lines[2:]))
    mglru.sweep(plan, seeds=2, out=tmp_path / "b", ray="auto")
    assert records(tmp_path / "b") == whole


def test_what_a_run_refuses_comes_back_as_its_line(two_workers: None, tmp_path: Path) -> None:
    trace = tmp_path / "t.txt"
    trace.write_text("1\n2\n")
    text = (
        'name="t"\ntitle="t"\nvariants=["after"]\nseeds=1\nmetrics=["ops"]\n'
        f'[workload]\nkind="trace"\npath="{trace}"\n'
    )
    sweep = _mglru.Sweep(json.dumps({"plan": text, "backend": "sim"}))
    trace.write_text("1\n3\n")
    with pytest.raises(mglru.Error, match="has other content here"):
        list(ray_driver.execute(sweep.tasks()))


def test_the_program_sweeps_on_ray_though_a_worker_is_killed(plan: Path, tmp_path: Path) -> None:
    program = os.environ.get("MGLRU") or shutil.which("mglru")
    if program is None:
        pytest.skip("needs the program (MGLRU)")
    ray.shutdown()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def sweep(*more: str) -> subprocess.CompletedProcess[str]:
        axes = ["--set", "workload.operations=200000,200001,200002", "--out", str(tmp_path / more[0])]
        command = [program, "sweep", str(plan), *axes, *more[1:]]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    assert sweep("here").returncode == 0
    killed: list[int] = []
    thread = threading.Thread(target=kill_one, args=[killed])
    thread.start()
    there = sweep("there", "--ray", "auto")
    thread.join()
    assert there.returncode == 0, there.stderr
    assert len(killed) == 1
    assert records(tmp_path / "there") == records(tmp_path / "here")
    refused = sweep("none", "--ray", "127.0.0.1:1")
    told = "mglru: error: ray: 127.0.0.1:1: Connection refused\n"
    assert (refused.returncode, refused.stderr) == (2, told)
