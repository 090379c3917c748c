"""Linux page reclaim as a laboratory, from Python.

Plans (`run`, `ablate`, `sweep`), the measure of real kernels (`validate`, `compare`) and traces
(`read_trace`, `mrc`, `replay`). Results are frozen dataclasses; tables of them go to pandas or
polars. Python's lock is released while Rust works, and Ctrl-C ends it. What mglru refuses raises
`Error`, with the line that the program would print.
"""

from __future__ import annotations

from ._mglru import Error, __version__
from .machine import MachinePolicy
from .plans import ablate, compare, run, sweep, validate
from .results import (
    Ablation,
    Comparison,
    Curve,
    Finding,
    Latency,
    Record,
    Replayed,
    Report,
    Rows,
    Trace,
    Validation,
)
from .traces import Policy, mrc, read_trace, replay

__all__ = [
    "Ablation",
    "Comparison",
    "Curve",
    "Error",
    "Finding",
    "Latency",
    "MachinePolicy",
    "Policy",
    "Record",
    "Replayed",
    "Report",
    "Rows",
    "Trace",
    "Validation",
    "__version__",
    "ablate",
    "compare",
    "mrc",
    "read_trace",
    "replay",
    "run",
    "sweep",
    "validate",
]
