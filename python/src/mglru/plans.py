"""Plans: run, swept, ablated; and the measure of real kernels."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Optional, Sequence, Union

from . import _mglru
from .machine import Variants, named
from .results import Ablation, Comparison, Report, Rows, Validation

PathLike = Union[str, "os.PathLike[str]"]
Scale = Union[float, str]
Names = Union[str, Sequence[str]]


def run(
    plan: PathLike,
    *,
    variants: Optional[Variants] = None,
    base: Optional[str] = None,
    seeds: Optional[int] = None,
    scale: Optional[Scale] = None,
    set: Optional[Mapping[str, Any]] = None,
    backend: str = "sim",
    jobs: Optional[int] = None,
    out: Optional[PathLike] = None,
    full: bool = False,
) -> Report:
    """Runs variants and seeds of a plan and compares them, as `mglru run` does.

    Args:
        plan: name of a plan, a TOML file, or the text of one (more than one line).
        variants: run these only; `NAME+SWITCH` puts switches on a named one. A class is a policy of
            one's own (`MachinePolicy`), in records `NAME@HASH` by its source; model only.
        base: variant that all others are compared with.
        seeds: number of seeds.
        scale: scale of machine and workload, above 0 and at most 1: 0.25 or "1/64".
        set: keys of the plan, as {"workload.theta": 0.9}; a list is a sweep.
        backend: what runs the plan: "sim" is the model.
        jobs: runs at a time; one per processor unless given.
        out: folder of records, which a later call goes on with; none is kept unless given.
        full: run all of a plan that has a quick part, which is what runs otherwise.
    """
    given = dict(locals(), variants=named(variants), quick=not full)
    del given["full"]
    return Report.of(json.loads(_mglru.run(_asked(**given))))


def sweep(
    plan: PathLike,
    *,
    variants: Optional[Names] = None,
    base: Optional[str] = None,
    seeds: Optional[int] = None,
    scale: Optional[Scale] = None,
    set: Optional[Mapping[str, Any]] = None,
    jobs: Optional[int] = None,
    out: Optional[PathLike] = None,
    ray: Optional[str] = None,
    retries: int = 3,
) -> Report:
    """Runs a plan at every point of its axes, here or on a Ray cluster, to the same records.

    Args:
        set: axes as {"workload.theta": [0.8, 0.9]}; the last is fastest.
        jobs: runs at a time, without Ray; one per processor unless given.
        out: folder of records, which a later call goes on with; none is kept unless given.
        ray: "auto" (the cluster that RAY_ADDRESS or this machine has, else a new one of this
            machine's processors) or an address. Needs `pip install ray` on every node.
        retries: times that Ray starts a run again whose worker was lost.

    The others are those of `run`.
    """
    names = ("plan", "variants", "base", "seeds", "scale", "set", "jobs", "out")
    given = locals()
    asked = _asked(backend="sim", **{name: given[name] for name in names})
    if ray is None:
        return Report.of(json.loads(_mglru.run(asked)))
    from . import ray_driver

    whole = _mglru.Sweep(asked)
    for record in ray_driver.execute(whole.tasks(), address=ray, retries=retries):
        whole.take(record)
    return Report.of(json.loads(whole.report()))


def ablate(
    plan: PathLike,
    *,
    start: Optional[str] = None,
    end: Optional[str] = None,
    modes: Sequence[str] = (),
    seeds: Optional[int] = None,
    scale: Optional[Scale] = None,
    set: Optional[Mapping[str, Any]] = None,
    backend: str = "sim",
    jobs: Optional[int] = None,
    out: Optional[PathLike] = None,
) -> Ablation:
    """Flips one switch at a time: which patch does what?

    Args:
        plan: as in `run`, or two releases: "k7.1..k7.2".
        start: variant without the patches ("before" unless given).
        end: variant with them ("after" unless given).
        modes: some of "cumulative", "one-in", "leave-one-out", "versions"; all unless given.

    The others are those of `run`.
    """
    given = dict(locals())
    given["from"], given["to"] = given.pop("start"), given.pop("end")
    return Ablation.of(json.loads(_mglru.ablate(_asked(**given))))


def validate(
    *,
    truth: Sequence[PathLike] = (),
    versions: Names = (),
    only: str = "",
    jobs: Optional[int] = None,
    out: Optional[PathLike] = None,
) -> Validation:
    """Replays jobs measured on real kernels in the model, as `mglru validate` does.

    Args:
        truth: files of measured runs; those of the project unless given.
        versions: kernels, such as "7.1" or "7.1.13"; all unless given.
        only: a part of the ids of runs.
        jobs: replays at a time; one per processor unless given.
        out: folder of records, which a later call goes on with.
    """
    asked = _asked(plan="", **locals())
    return Validation.of(json.loads(_mglru.validate(asked)))


def compare(
    a: PathLike, b: PathLike, metrics: Names = (), *, all: bool = False
) -> Rows[Comparison]:
    """Sets two files of records, run folders or captures of counters side by side.

    Args:
        a: what to compare with.
        b: what is under test.
        metrics: figures, such as "ops_per_s" or "pgpgin/ops"; all that are there unless given.
        all: also counters of captures that are equal.
    """
    found = json.loads(_mglru.compare(a, b, _names(metrics), all))
    return Rows(map(Comparison.of, found["comparisons"]))


def _names(names: Optional[Names]) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _asked(**given: Any) -> str:
    """Writes a request as the extension reads it."""
    asked = {name: value for name, value in given.items() if value is not None}
    asked["plan"] = os.fspath(asked["plan"])
    for name in ("variants", "modes", "versions"):
        if name in asked:
            asked[name] = _names(asked[name])
    if "truth" in asked:
        asked["truth"] = [os.fspath(path) for path in asked["truth"]]
    if "out" in asked:
        asked["out"] = os.fspath(asked["out"])
    if "scale" in asked:
        asked["scale"] = str(asked["scale"])
    sets = asked.pop("set", {})
    asked["sets"] = [{"key": key, "value": value} for key, value in sets.items()]
    return json.dumps(asked)
