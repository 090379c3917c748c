"""Traces: read, replayed, and the misses of every size."""

from __future__ import annotations

import json
import os
from typing import Callable, Optional, Protocol, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _mglru
from .results import Curve, Replayed, Rows, Trace

Pages = Union[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.int64]]
Source = Union[str, "os.PathLike[str]", Trace, Pages]
Size = Union[int, str]


class Policy(Protocol):
    """Is a replacement policy of one's own: a cache of so many pages.

    `replay` calls the class with the size of the cache, in pages, and then `access` with every
    request. Pages are numbered from 0 by their first request, so that lists can be indexed with
    them.
    """

    def access(self, page: int) -> bool:
        """Asks for a page; True if the cache has it. A miss brings it in, as the policy likes."""
        ...


def read_trace(
    path: Union[str, "os.PathLike[str]"], *, format: Optional[str] = None, pages: bool = False
) -> Trace:
    """Reads a trace into memory. The arrays are what Rust has filled, without a copy.

    Args:
        path: file of any format that `mglru trace` reads, plain or compressed.
        format: name of the format; guessed from name or content unless given.
        pages: count every 4 KiB page of a request by itself, as a page cache does.
    """
    numbers, writes, about = _mglru.read_trace(path, format, pages)
    for array in (numbers, writes):
        array.flags.writeable = False
    told = json.loads(about)
    return Trace(name=told["trace"], format=told["format"], pages=numbers, writes=writes)


def mrc(
    trace: Source,
    *,
    sizes: Sequence[Size] = (),
    sample: Optional[float] = None,
    format: Optional[str] = None,
    pages: bool = False,
) -> Curve:
    """Counts LRU's misses at every size, in one pass.

    Args:
        trace: a file, a `Trace`, or an array of page numbers (uint64, uint32 or int64), which is
            not copied and must not change meanwhile.
        sizes: further sizes: pages (4096), bytes ("64MiB") or a share of the pages ("1%").
        sample: count this share of the pages in each of eight samples, at most 0.125.
        format, pages: for a file, as in `read_trace`.
    """
    every = None if sample is None else _every(sample)
    texts = [str(size) for size in sizes]
    numbers = _numbers(trace)
    if numbers is None:
        path = _path(trace)
        told = _mglru.mrc_of_file(path, format, pages, texts, every)
    else:
        told = _mglru.mrc_of_pages(numbers, texts, every)
    return Curve.of(json.loads(told))


def replay(
    trace: Source,
    policies: Sequence[Union[str, Callable[[int], Policy]]],
    sizes: Sequence[Size],
    *,
    format: Optional[str] = None,
    pages: bool = False,
    seed: int = 1,
) -> Rows[Replayed]:
    """Replays a trace under every policy at every size: by policy, then by size.

    Args:
        trace: as in `mrc`.
        policies: names of flat policies ("lru", "sieve", "min", …), variants of the policy core
            ("classic", "after"), which run in the machine, or classes that are a `Policy`.
        sizes: pages (4096), bytes ("64MiB") or a share of the pages ("1%").
        format, pages: for a file, as in `read_trace`.
        seed: seed of random replacement.
    """
    texts = [str(size) for size in sizes]
    numbers = _numbers(trace)
    if numbers is None:
        told = _mglru.replay_file(_path(trace), format, pages, policies, texts, seed)
    else:
        told = _mglru.replay_pages(numbers, policies, texts, seed)
    return Rows(Replayed(**row) for row in json.loads(told)["results"])


def _every(sample: float) -> int:
    if not 0 < sample <= 0.125:
        raise _mglru.Error(f"sample = {sample}: must be above 0 and at most 0.125")
    return round(1 / sample)


def _numbers(trace: Source) -> Optional[Pages]:
    if isinstance(trace, Trace):
        return trace.pages
    if not isinstance(trace, np.ndarray):
        return None
    if trace.dtype not in (np.uint64, np.uint32, np.int64) or trace.ndim != 1:
        wanted = "uint64, uint32 or int64 in one dimension"
        raise TypeError(f"trace: expected {wanted}, not {trace.dtype} in {trace.ndim}")
    return trace


def _path(trace: Source) -> Union[str, "os.PathLike[str]"]:
    if isinstance(trace, (str, os.PathLike)):
        return trace
    kind = type(trace).__name__
    raise TypeError(f"trace: expected a path, a Trace or an array of page numbers, not {kind}")
