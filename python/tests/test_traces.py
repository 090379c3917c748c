"""Traces as arrays, their curves, and policies of one's own."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mglru


class OwnLru:
    """LRU again, in Python."""

    def __init__(self, pages: int) -> None:
        self.room = pages
        self.pages: OrderedDict[int, None] = OrderedDict()

    def access(self, page: int) -> bool:
        hit = page in self.pages
        self.pages[page] = None
        self.pages.move_to_end(page)
        if len(self.pages) > self.room:
            self.pages.popitem(last=False)
        return hit


def test_arrays_are_rusts_memory(loop: Path) -> None:
    trace = mglru.read_trace(loop)
    assert (trace.name, trace.format, trace.requests) == ("loop", "csv", 24_000)
    assert trace.pages[0] == 10**12 and trace.pages.dtype == np.uint64
    assert int(trace.writes.sum()) == 2_400
    for array in (trace.pages, trace.writes):
        assert not array.flags.owndata and not array.flags.writeable
        assert "Container" in type(array.base).__name__


@pytest.mark.parametrize("kind", [np.uint64, np.uint32, np.int64])
def test_a_curve_of_an_array_is_that_of_the_file(loop: Path, kind: type) -> None:
    whole = mglru.mrc(loop)
    pages = (mglru.read_trace(loop).pages - 10**12).astype(kind)
    curve = mglru.mrc(pages)
    assert np.array_equal(whole.miss_ratio, curve.miss_ratio)
    assert np.array_equal(mglru.mrc(np.repeat(pages, 2)[::2]).miss_ratio, curve.miss_ratio)
    assert (curve.unique, curve.requests, curve.enough_pages) == (600, 24_000, 600)
    assert curve.at(599) == 1.0 and curve.at(600) == 600 / 24_000


def test_no_copy_is_made_of_an_array() -> None:
    import resource

    pages = np.arange(4_000_000, dtype=np.uint64) % 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mglru.mrc(pages)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown_kib < pages.nbytes / 1024 / 2


def test_a_sample_has_a_band() -> None:
    rng = np.random.default_rng(1)
    pages = rng.zipf(1.2, 300_000).astype(np.uint64) % 50_000
    curve, whole = mglru.mrc(pages, sample=0.1), mglru.mrc(pages)
    assert np.all(curve.low <= curve.high) and np.any(curve.low < curve.high)
    assert np.array_equal(whole.low, whole.miss_ratio)


def test_a_policy_of_ones_own_stands_beside_the_others(loop: Path) -> None:
    rng = np.random.default_rng(2)
    pages = rng.integers(0, 200, 5_000, dtype=np.int64)
    found = mglru.replay(pages, ["lru", "min", OwnLru], [50, "50%"])
    by = {(row.policy, row.size_pages): row.misses for row in found}
    assert list(by) == [(p, s) for p in ("lru", "min", "OwnLru") for s in (50, 100)]
    for size in (50, 100):
        assert by["OwnLru", size] == by["lru", size] > by["min", size]
    assert mglru.replay(loop, ["lru"], [10])[0].miss_ratio == 1.0
    assert mglru.replay(mglru.read_trace(loop), ["fifo"], ["100%"])[0].misses == 600


def test_variants_of_the_machine_replay_files_and_arrays(loop: Path) -> None:
    (file,) = mglru.replay(loop, ["after"], [300])
    (array,) = mglru.replay(mglru.read_trace(loop), ["after"], [300])
    assert file.misses == array.misses and file.policy == "after"


def test_policies_that_lie_or_fail_are_told_of() -> None:
    pages = np.arange(10, dtype=np.uint64)

    class Liar:
        def __init__(self, pages: int) -> None: ...

        def access(self, page: int) -> bool:
            return True

    class Silent(Liar):
        def access(self, page: int) -> bool:
            return None  # type: ignore[return-value]

    class Broken(Liar):
        def access(self, page: int) -> bool:
            raise KeyError(page)

    with pytest.raises(mglru.Error, match=r"Liar.access\(0\) is a hit, but nobody"):
        mglru.replay(pages, [Liar], [1])
    with pytest.raises(TypeError, match=r"Silent.access\(0\) returned None; want True"):
        mglru.replay(pages, [Silent], [1])
    with pytest.raises(KeyError):
        mglru.replay(pages, [Broken], [1])


def test_what_is_no_trace_is_one_line(tmp_path: Path) -> None:
    empty = np.array([], dtype=np.uint64)
    for call, text in [
        (lambda: mglru.read_trace(tmp_path / "none"), "No such file"),
        (lambda: mglru.mrc(empty), "the array holds no request"),
        (lambda: mglru.mrc(np.array([-1])), "pages: -1 is below 0"),
        (lambda: mglru.mrc(empty, sample=0.5), "at most 0.125"),
        (lambda: mglru.mrc(np.array([1]), sizes=["x"]), 'size "x"'),
        (lambda: mglru.replay(np.array([1]), ["sieev"], [1]), "did you mean sieve?"),
    ]:
        with pytest.raises(mglru.Error, match=".*") as raised:
            call()
        assert text in str(raised.value) and "\n" not in str(raised.value)
    others: list[Any] = [np.array([1], np.int32), np.array([[1]], np.uint64)]
    for wrong in others:
        with pytest.raises(TypeError, match="uint64, uint32 or int64 in one dimension, not"):
            mglru.mrc(wrong)
    with pytest.raises(TypeError, match="trace: expected a path"):
        mglru.mrc(3)  # type: ignore[arg-type]
