"""Policies written in Python choose what the simulated machine evicts."""

from __future__ import annotations

import importlib.util
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, Iterable, List

import mglru
import pytest

HEARD: List[str] = []


class Lru:
    """Evicts what was used longest ago."""

    def __init__(self, memory: str) -> None:
        HEARD.append(memory)
        self.pages: OrderedDict[int, None] = OrderedDict()

    def inserted(self, page: int, accessed: bool) -> None:
        assert page not in self.pages
        self.pages[page] = None

    def accessed(self, page: int) -> None:
        self.pages.move_to_end(page)

    def removed(self, page: int) -> None:
        del self.pages[page]

    def victims(self, count: int) -> Iterable[int]:
        return [self.pages.popitem(last=False)[0] for _ in range(min(count, len(self.pages)))]


class Mru(Lru):
    """Evicts what was used last."""

    def victims(self, count: int) -> Iterable[int]:
        return [self.pages.popitem()[0] for _ in range(min(count, len(self.pages)))]


LOOP = """
name = "loop"
title = "a file read round and round"
variants = ["classic"]
seeds = 2
metrics = ["pgpgin/ops"]

[machine]
memory = "64MiB"
readahead_kb = 0

[groups."/touch"]
memory.max = "4MiB"

[workload]
kind = "touch"
engine = "pread"
pages = 1536
operations = 12000
order = "sequential"
"""


def reads(report: mglru.Report) -> dict[str, float]:
    """KiB read by variant and seed 1."""
    return {r.variant.split("@")[0]: r.counters["pgpgin"] for r in report.records if r.seed == 1}


def test_a_policy_is_compared_with_those_of_the_model() -> None:
    report = mglru.run(LOOP, variants=["classic", "fifo", Lru, Mru])
    found = reads(report)
    assert set(found) == {"classic", "fifo", "Lru", "Mru"} and len(report.records) == 8
    assert found["Mru"] < 0.7 * found["Lru"], found
    assert abs(found["Lru"] - found["fifo"]) < 0.02 * found["fifo"], found
    assert "file" in HEARD
    again = mglru.run(LOOP, variants=["classic", "fifo", Lru, Mru], jobs=1)
    assert again.records == report.records


def loaded(folder: Path, name: str, body: str) -> Any:
    """Loads a module from a text."""
    path = folder / f"{name}.py"
    path.write_text(body)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_changed_policy_is_another_variant(tmp_path: Path) -> None:
    text = "import test_machine\n\n\nclass Mine(test_machine.Lru):\n    limit = {}\n"
    names = []
    for limit in (1, 2, 2):
        module = loaded(tmp_path, f"mine{len(names)}", text.format(limit))
        report = mglru.run(LOOP, variants=[module.Mine], out=tmp_path / "kept", seeds=1)
        names.append(report.records[-1].variant)
    assert names[0] != names[1] == names[2] and all(name.startswith("Mine@") for name in names)


def test_what_a_policy_refers_to_is_part_of_its_name() -> None:
    def made(share: int) -> type:
        class Mine(Lru):
            def victims(self, count: int) -> Iterable[int]:
                return super().victims(count * share)

        return Mine

    names = [mglru.run(LOOP, variants=[made(n)], seeds=1).records[0].variant for n in (1, 2, 1)]
    assert names[0] == names[2] != names[1]


def test_policies_that_fail_are_one_line() -> None:
    class Empty(Lru):
        def victims(self, count: int) -> Iterable[int]:
            return []

    class Liar(Lru):
        def victims(self, count: int) -> Iterable[int]:
            return [7 << 32]

    class Broken(Lru):
        def victims(self, count: int) -> Iterable[int]:
            raise KeyError(count)

    class Nameless:
        def __init__(self, memory: str) -> None: ...

    for policy, text in [
        (Empty, "named none"),
        (Liar, "page 0 of file 7), which is not on its list"),
        (Broken, "Broken.victims: KeyError: "),
        (Nameless, "Nameless has no inserted()"),
    ]:
        with pytest.raises(mglru.Error, match=".*") as raised:
            mglru.run(LOOP, variants=[policy], seeds=1)  # type: ignore[list-item]
        assert text in str(raised.value) and "\n" not in str(raised.value), raised.value
    with pytest.raises(TypeError, match="expected a name or a class, not 3"):
        mglru.run(LOOP, variants=[3])  # type: ignore[list-item]
