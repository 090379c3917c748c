"""What tests share: a small plan, and a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

SMALL = """
name = "small"
title = "the machine, small"
variants = ["before", "after"]
seeds = 2
metrics = ["ops_per_s", "pgpgin/ops"]

[machine]
memory = "64MiB"
cpus = 2

[groups."/touch"]
memory.max = "4MiB"

[workload]
kind = "touch"
engine = "pread"
pages = 4096
operations = 4000
tasks = 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A small run of the real machine."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """40 passes over 600 pages, far from 0, every tenth a write."""
    path = tmp_path / "loop.csv"
    rows = (f"{10**12 + page},{'w' if page % 10 == 0 else 'r'}\n" for page in range(600))
    path.write_text("page,op\n" + "".join(rows) * 40)
    return path
