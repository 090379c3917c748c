#!/usr/bin/env python3
"""Flat cache replay: mglru beside libCacheSim, same trace, same run, turn by turn.

Installs libcachesim from PyPI into a virtual environment of its own (a dependency of this
benchmark only), draws a zipf 1.0 trace over a million ids, and lets both programs replay it
alternately. Both are timed from opening the trace to the last request, decoding included; ours
also numbers the pages densely in that time. Miss counts must agree or the run fails.

    bench/flat_vs_libcachesim.py [--rounds 5] [--requests 20000000] [--folder bench-data]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBCACHESIM = "libcachesim==0.3.5"
POLICIES = {"lru": "LRU", "fifo": "FIFO", "clock": "Clock", "sieve": "Sieve"}
IDS = 1_000_000
CACHE = 100_000
SEED = 1

# Runs inside the virtual environment. Hash power 20 suits the cache size and is faster than the
# library's default of 24.
GENERATE = """
import sys
import numpy
requests, ids, seed, folder = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random = numpy.random.default_rng(seed)
distribution = numpy.cumsum(1.0 / numpy.arange(1, ids + 1))
ranks = numpy.searchsorted(distribution, random.random(requests) * distribution[-1])
pages = random.permutation(ids).astype("<u4")[ranks]
pages.tofile(folder + "/zipf.u32")
fields = [("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")]
records = numpy.zeros(requests, dtype=fields)
records["id"], records["size"], records["next"] = pages, 1, -1
records.tofile(folder + "/zipf.oracleGeneral.bin")
"""
THEIRS = """
import json, sys, time
import libcachesim
path, policy, size, requests = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
start = time.perf_counter()
reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE)
cache = getattr(libcachesim, policy)(cache_size=size, hashpower=20)
miss_ratio = cache.process_trace(reader)[0]
seconds = time.perf_counter() - start
misses = round(miss_ratio * requests)
print(json.dumps({"seconds": seconds, "requests": requests, "misses": misses}))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "flat-bench")
    return parser.parse_args()


def output(command, **environment):
    """Last line a command prints, as JSON."""
    env = {**os.environ, **environment}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def environment(folder):
    """The Python that has libcachesim."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", LIBCACHESIM, "numpy"]
    subprocess.run(install, check=True)
    return python


def build():
    """Our program."""
    command = ["cargo", "build", "--release", "-p", "mglru-traces", "--example", "flat_speed"]
    command += ["--message-format", "json"]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    built = [m["executable"] for m in messages if m.get("executable")]
    return built[-1]


def contestants(ours, python, folder, policy, requests):
    """Name and command, environment of everything that is timed."""
    oracle, u32 = folder / "zipf.oracleGeneral.bin", folder / "zipf.u32"
    size = str(CACHE)
    theirs = [python, "-c", THEIRS, oracle, POLICIES[policy], size, str(requests)]
    one, two = {"RAYON_NUM_THREADS": "1"}, {"RAYON_NUM_THREADS": "2"}
    return {
        "libcachesim": (theirs, {}),
        "mglru oracle, 1 thread": ([ours, oracle, policy, size], one),
        "mglru u32, 1 thread": ([ours, u32, policy, size], one),
        "mglru u32, 2 threads": ([ours, u32, policy, size], two),
    }


def race(commands, rounds):
    """Seconds of every contestant, one round after the other."""
    seconds = {name: [] for name in commands}
    misses = set()
    for _ in range(rounds):
        for name, (command, env) in commands.items():
            result = output(command, **env)
            seconds[name].append(result["seconds"])
            misses.add(result["misses"])
    if len(misses) != 1:
        sys.exit(f"miss counts differ: {sorted(misses)}")
    return seconds


def report(policy, seconds, requests):
    theirs = statistics.median(seconds["libcachesim"])
    for name, times in seconds.items():
        median, best = statistics.median(times), min(times)
        rates = f"{requests / median / 1e6:8.1f} {requests / best / 1e6:8.1f}"
        print(f"{policy:6} {name:24} {rates} {theirs / median:8.1f}x", flush=True)


def main():
    options = arguments()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder)
    ours = build()
    size = [str(options.requests), str(IDS), str(SEED), folder]
    subprocess.run([python, "-c", GENERATE, *size], check=True)
    print(f"{options.requests} requests, zipf 1.0 over {IDS} ids, cache {CACHE}; M requests/s")
    print(f"{'policy':6} {'program':24} {'median':>8} {'best':>8} {'ratio':>9}")
    for policy in POLICIES:
        commands = contestants(ours, python, folder, policy, options.requests)
        report(policy, race(commands, options.rounds), options.requests)


if __name__ == "__main__":
    main()
