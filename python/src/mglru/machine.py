"""Runs a replacement policy of one's own in the simulated machine."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterable, List, Optional, Protocol, Sequence, Union

from . import _mglru


class MachinePolicy(Protocol):
    """Chooses which pages a memory group loses, in the machine of a plan.

    `run` takes the class among its variants. It makes one object for each group, node and kind of
    memory: `Class("file")` or `Class("anon")`. A page is a number, the same each time the page comes
    back; a large folio is its first page. Limits, the share of files and anonymous memory, page
    tables, dirty pages and writeback stay the machine's. An exception ends the run.

    These methods may be added:

    * `accessed(page)`: a read or write through a descriptor found the page. Use through a mapping
      shows in `returned`.
    * `returned(page, accessed)`: a page that `victims` named could not go, because it was used
      through a mapping (`accessed`), is dirty, locked or pinned. Without it `inserted` is called.
    * `cold(page)`: a page of the list should go soon, because it was dirty when it was named and
      is written now, or because its program says so (`MADV_COLD`). Without it `removed(page)` and
      `inserted(page, False)` are called.
    * `evicted(page)`: a page that had been named is gone.
    """

    def inserted(self, page: int, accessed: bool) -> None:
        """Takes a new page; `accessed`: by the request that brought it, not by readahead alone."""
        ...

    def removed(self, page: int) -> None:
        """Forgets a page that was freed otherwise: its file was cut, its memory unmapped."""
        ...

    def victims(self, count: int) -> Iterable[int]:
        """Names pages of the list to evict, the first one first, and holds them no more.

        `count` counts single pages; of large folios those beyond it return.
        """
        ...


PolicyClass = Callable[[str], MachinePolicy]
Variants = Union[str, PolicyClass, Sequence[Union[str, PolicyClass]]]


def named(variants: Optional[Variants]) -> Optional[List[str]]:
    """Names of variants; classes become variants of the model, by name and hash of their source."""
    if variants is None:
        return None
    listed = [variants] if isinstance(variants, str) or callable(variants) else list(variants)
    return [one if isinstance(one, str) else _register(one) for one in listed]


def _register(policy: Any) -> str:
    if not callable(policy):
        raise TypeError(f"variants: expected a name or a class, not {policy!r}")
    name = getattr(policy, "__name__", type(policy).__name__)
    return _mglru.register_policy(name, _source(policy), policy)


def _source(policy: Any) -> str:
    """Returns the text of a class, of those it is made from, and of the constants that its methods refer to."""
    parts = [one for one in getattr(policy, "__mro__", (policy,)) if _is_own(one)]
    try:
        text = [inspect.getsource(part) for part in parts]
    except (OSError, TypeError):
        # Typed in, or made by a program: another object is another policy.
        return f"{policy!r} {id(policy)}"
    return "\n".join(text + [_referred(part) for part in parts])


def _is_own(part: Any) -> bool:
    return getattr(part, "__module__", None) not in ("builtins", "typing", "abc")


def _referred(part: Any) -> str:
    """Lists what methods find outside of themselves: values around the class, constants of its module."""
    found = []
    for name, method in sorted(vars(part).items() if inspect.isclass(part) else [("", part)]):
        if inspect.isfunction(method):
            around = inspect.getclosurevars(method)
            values = {**around.nonlocals, **around.globals}
            found += [f"{name}.{key} = {_value(values[key])}" for key in sorted(values)]
    return "\n".join(found)


def _value(value: Any) -> str:
    """Returns the text of a constant; of anything else its type, because its content may change with a run."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    if isinstance(value, (int, float, complex, str, bytes, type(None))):
        return repr(value)
    kind = value if inspect.isroutine(value) or inspect.isclass(value) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
