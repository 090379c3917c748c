"""Makes the runs of a sweep on a Ray cluster.

`python3 -m mglru.ray_driver` is what `mglru sweep --ray` starts: it reads tasks from standard
input, a line each, and prints their records as they come. Ray starts a run again whose worker is
lost.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import sys
from typing import Any, Iterable, Iterator, TextIO

from . import _mglru

AHEAD = 4
"""Runs that wait at Ray for each processor, so that none is idle."""


def execute(tasks: Iterable[str], *, address: str = "auto", retries: int = 3) -> Iterator[str]:
    """Makes runs on a cluster, and yields records in the order in which they come.

    Args:
        tasks: lines that say all about a run each.
        address: "auto" or the cluster's.
        retries: times that a run is started again whose worker was lost.

    What a run refuses, or is lost too often, raises `mglru.Error`.
    """
    ray = _ray()
    began = not ray.is_initialized()
    if began:
        _connect(ray, address)
    try:
        yield from _records(ray, iter(tasks), retries)
    finally:
        if began:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        needs = "needs the Python package ray (pip install ray)"
        raise _mglru.Error(f"ray: {needs}: {error}") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    where = None if address == "auto" else address
    if where is not None:
        _reach(where)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=where, include_dashboard=None if where else False, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise _mglru.Error(f"ray: {address}: {reason}") from None


def _reach(address: str) -> None:
    """Refuses at once where nobody answers; Ray itself tries for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not (host and port.isdigit()):
        raise _mglru.Error(f"ray: {address}: expected auto or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise _mglru.Error(f"ray: {address}: {error.strerror or error}") from None


def _records(ray: Any, tasks: Iterator[str], retries: int) -> Iterator[str]:
    make = ray.remote(num_cpus=1, max_retries=retries)(mglru_make)
    room = max(16, AHEAD * int(ray.cluster_resources().get("CPU", 1)))
    waiting: list[Any] = []
    more = True
    while more or waiting:
        while more and len(waiting) < room:
            task = next(tasks, None)
            more = task is not None
            if task is not None:
                waiting.append(make.remote(task))
        if waiting:
            # One at least, then all that are there.
            done, waiting = ray.wait(waiting, num_returns=1)
            if waiting:
                more_done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=0)
                done += more_done
            for one in done:
                yield _record(ray, one, retries)


def _record(ray: Any, done: Any, retries: int) -> str:
    try:
        is_record, text = ray.get(done)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().split("\n")[0]
        raise _mglru.Error(f"ray: a run was lost {retries + 1} times: {reason}") from None
    if not is_record:
        raise _mglru.Error(text)
    record: str = text
    return record


def mglru_make(task: str) -> tuple[bool, str]:
    """Makes a run, on a worker; its record, or what was refused."""
    try:
        return True, _mglru.run_task(task)
    except _mglru.Error as error:
        return False, str(error)


def main(args: list[str]) -> int:
    """Reads tasks from standard input and prints records."""
    parser = argparse.ArgumentParser(prog="python3 -m mglru.ray_driver", description=__doc__)
    parser.add_argument("--address", default="auto", help="auto, or the cluster's address")
    parser.add_argument("--retries", type=int, default=3, help="starts of a run that is lost")
    given = parser.parse_args(args)
    tasks = (line for line in sys.stdin if line.strip())
    with _alone() as out:
        try:
            for record in execute(tasks, address=given.address, retries=given.retries):
                out.write(record)
                out.flush()
        except _mglru.Error as error:
            out.write(json.dumps({"error": str(error)}) + "\n")
            return 2
    return 0


def _alone() -> TextIO:
    """Standard output for records alone: what Ray prints there goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
