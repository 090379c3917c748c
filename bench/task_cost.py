#!/usr/bin/env python3
"""What a run of a sweep costs beside the run itself: here, in a process of its own, on Ray.

    bench/task_cost.py [--program target/release/mglru] [--runs 200] [--json]

Needs the package (`pip install './python[ray]'`). Each way makes the same small runs; what a run
takes in one thread of this process is the measure. Processor time counts: others may use the
machine meanwhile. The closing lines compute what ten million runs on a thousand processors need.
The figures of `docs/scale.md` are its output.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable

import mglru
from mglru import _mglru, ray_driver

PLAN = """
name = "cost"
title = "runs that cost little"
variants = ["after"]
seeds = {runs}
metrics = ["ops_per_s"]

[machine]
memory = "64MiB"
cpus = 2

[groups."/touch"]
memory.max = "4MiB"

[workload]
kind = "touch"
engine = "pread"
pages = 4096
operations = {operations}
tasks = 2
"""

RUNS, CORES = 10_000_000, 1_000
"""What is computed from the measured figures."""


TICKS = os.sysconf("SC_CLK_TCK")


def processor_s() -> float:
    """Processor time of this process and of all that descend from it, seconds."""
    parents, times = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            # With what children have used that are gone.
            times[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS
            parents[int(entry.name)] = int(fields[1])
    ours = os.getpid()

    def is_ours(pid: int) -> bool:
        while pid not in (0, ours):
            pid = parents.get(pid, 0)
        return pid == ours

    return sum(time for pid, time in times.items() if is_ours(pid))


def cost_ms(runs: int, work: Callable[[], object]) -> tuple[float, float]:
    """Processor time and time of a run, milliseconds."""
    busy, start = processor_s(), time.perf_counter()
    work()
    took = time.perf_counter() - start
    return (processor_s() - busy) / runs * 1e3, took / runs * 1e3


def tasks_of(runs: int, operations: int) -> list[str]:
    text = PLAN.format(runs=runs, operations=operations)
    return _mglru.Sweep(json.dumps({"plan": text, "backend": "sim"})).tasks()


def one_process(program: str, folder: Path, task: str) -> None:
    path = folder / "task.json"
    path.write_text(task)
    subprocess.run([program, "sweep", "--task", str(path)], check=True, stdout=subprocess.DEVNULL)


def peak_kib(program: str, folder: Path, task: str) -> int:
    """Memory of a process that makes one run, KiB."""
    path = folder / "task.json"
    path.write_text(task)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execvp(program, [program, "sweep", "--task", str(path)])
    os.close(write)
    os.close(read)
    _, _, used = os.wait4(pid, 0)
    return used.ru_maxrss


def worker_kib(task: str) -> int:
    """Most memory of a worker that makes runs, KiB."""
    _mglru.run_task(task)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def driver_bytes(runs: int) -> float:
    """Memory that a record takes in the process that gathers them, bytes."""
    text = PLAN.format(runs=runs, operations=50)
    sweep = _mglru.Sweep(json.dumps({"plan": text, "backend": "sim"}))
    lines = [_mglru.run_task(task) for task in sweep.tasks()]
    before = rss()
    for line in lines:
        sweep.take(line)
    return (rss() - before) / runs


def rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measured(given: argparse.Namespace) -> dict[str, float]:
    import ray

    found: dict[str, float] = {}

    def note(name: str, runs: int, work: Callable[[], object]) -> None:
        found[f"{name}_cpu_ms"], found[f"{name}_wall_ms"] = cost_ms(runs, work)

    tasks = tasks_of(given.runs, 200)
    note("thread", given.runs, lambda: [_mglru.run_task(task) for task in tasks])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = tasks[: max(20, given.runs // 10)]
        note("process", len(few), lambda: [one_process(given.program, folder, t) for t in few])
        found["process_peak_mib"] = peak_kib(given.program, folder, tasks[0]) / 1024
        (folder / "cost.toml").write_text(PLAN.format(runs=given.runs, operations=200))
        through = [given.program, "sweep", str(folder / "cost.toml"), "--out"]
        through += [str(folder / "t"), "--through", f"{given.program} sweep --task -"]
        quiet = subprocess.DEVNULL
        note("through", given.runs, lambda: subprocess.run(through, check=True, stdout=quiet))
    cpus = os.cpu_count() or 1
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    list(ray_driver.execute(tasks[: 4 * cpus]))
    own = time.process_time()
    note("ray", given.runs, lambda: list(ray_driver.execute(tasks)))
    found["ray_driver_cpu_ms"] = (time.process_time() - own) / given.runs * 1e3
    found["ray_worker_mib"] = ray.get(ray.remote(worker_kib).remote(tasks[0])) / 1024
    ray.shutdown()
    found["task_bytes"] = statistics.mean(map(len, tasks))
    records = "".join(_mglru.run_task(task) for task in tasks)
    found["record_bytes"] = len(records) / given.runs
    found["driver_bytes"] = driver_bytes(2_000)
    return found


def needed(found: dict[str, float], run_s: float) -> dict[str, float]:
    """What all runs need, each of which computes for `run_s` seconds."""
    beside_s = max(0.0, found["ray_cpu_ms"] - found["thread_cpu_ms"]) / 1e3
    driver_s = found["ray_driver_cpu_ms"] / 1e3
    hours = RUNS * (run_s + beside_s) / CORES / 3600
    sent, back = RUNS * found["task_bytes"], RUNS * found["record_bytes"]
    return {
        "hours_of_all_cores": hours,
        "drivers": max(1.0, CORES / (run_s + beside_s) * driver_s),
        "tasks_gb": sent / 1e9,
        "records_gb": back / 1e9,
        "network_mb_per_s": (sent + back) / 1e6 / (hours * 3600),
        "driver_gb": RUNS * found["driver_bytes"] / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="target/release/mglru")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.program = os.path.abspath(given.program)
    found = measured(given)
    computed = {f"runs of {s} s": needed(found, s) for s in (0.1, 1.0, 10.0)}
    if given.json:
        print(json.dumps({"version": mglru.__version__, "measured": found, "computed": computed}))
        return
    for name, value in found.items():
        print(f"{name:24} {value:12.3f}")
    for name, needs in computed.items():
        print(name, ", ".join(f"{key} {value:.3g}" for key, value in needs.items()))


if __name__ == "__main__":
    main()
