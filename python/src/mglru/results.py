"""Results as frozen dataclasses, and tables of them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Optional, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")


class Rows(tuple[T, ...]):
    """Holds results, a row each."""

    __slots__ = ()

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas frame."""
        import pandas

        return pandas.DataFrame(_columns(self))

    def to_polars(self) -> polars.DataFrame:
        """Returns the rows as a polars frame."""
        import polars

        return polars.DataFrame(_columns(self), strict=False)


def _columns(rows: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Collects the figures of all rows by name; None where a row has none of it."""
    flat = [_flat(row) for row in rows]
    names = {name: None for row in flat for name in row}
    return {name: [row.get(name) for row in flat] for name in names}


def _flat(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return {name: value for name, value in row.items() if _is_scalar(value)}
    if hasattr(row, "figures"):
        figures: Mapping[str, Any] = row.figures()
        return figures
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


@dataclass(frozen=True)
class Latency:
    """Holds latency of application operations, microseconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True)
class Record:
    """Describes one run: a variant with a seed at a point of a sweep."""

    plan: str
    """Names the plan."""
    plan_hash: str
    """Hashes all that can change a record."""
    mglru: str
    """Names the program's version."""
    backend: str
    """Names the backend."""
    variant: str
    """Names the policy's variant."""
    seed: int
    """Holds the workload's seed; runs of one seed are pairs."""
    scale: float
    """Scales machine and workload; 1 is the published size."""
    point: str
    """Names the point of the sweep (`workload.theta=0.9`); empty without one."""
    ops: int
    """Counts application operations."""
    ops_per_s: float
    """Counts operations per second of the machine's time."""
    virtual_s: float
    """Gives the duration in the machine's time, seconds."""
    latency_us: Optional[Latency]
    """Holds the latency of an operation, microseconds; None where a workload has no operations."""
    counters: Mapping[str, int]
    """Holds kernel counters: pages, but `pgpgin` and `pgpgout`, which are KiB."""
    groups: Mapping[str, Mapping[str, int]]
    """Holds `memory.stat` of each group, in the kernel's units."""
    switches: Mapping[str, Any]
    """Lists the policy's switches in force."""
    custom: Mapping[str, Any]
    """Holds the workload's own figures."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Record:
        """Reads a parsed line of `records.jsonl`."""
        metrics = json["metrics"]
        latency = metrics.get("latency_us")
        return cls(
            plan=json["plan"],
            plan_hash=json["plan_hash"],
            mglru=json["mglru"],
            backend=json["backend"],
            variant=json["variant"],
            seed=json["seed"],
            scale=json["scale"],
            point=json["custom"].get("point", ""),
            ops=metrics["ops"],
            ops_per_s=metrics["ops_per_s"],
            virtual_s=metrics["virtual_s"],
            latency_us=Latency(**latency) if latency else None,
            counters=json["counters"],
            groups={name: group["memory.stat"] for name, group in json["groups"].items()},
            switches=json["switches"],
            custom=json["custom"],
        )

    def figures(self) -> dict[str, Any]:
        """Returns all figures by the names that `--metric` takes, one level deep; sweep axes too."""
        names = ("plan", "backend", "variant", "seed", "scale", "point")
        figures: dict[str, Any] = {name: getattr(self, name) for name in names}
        for part in filter(None, self.point.split(", ")):
            key, _, value = part.partition("=")
            figures[key] = _number(value)
        figures.update(ops=self.ops, ops_per_s=self.ops_per_s, virtual_s=self.virtual_s)
        if self.latency_us is not None:
            latency = dataclasses.asdict(self.latency_us)
            figures.update({f"latency_us.{name}": value for name, value in latency.items()})
        figures.update(self.counters)
        for group, stat in self.groups.items():
            figures.update({f"{group}:{name}": value for name, value in stat.items()})
        own = {name: value for name, value in self.custom.items() if _is_scalar(value)}
        own.pop("point", None)
        figures.update({f"custom.{name}": value for name, value in own.items()})
        return figures


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Comparison:
    """Sets one figure of a variant beside the base's."""

    metric: str
    """Names the figure."""
    base: str
    """Names the variant compared with."""
    variant: str
    """Names the variant under test."""
    point: str
    """Names the point of the sweep; empty without one."""
    base_mean: float
    """Holds the base's mean, in the figure's unit."""
    mean: float
    """Holds the variant's mean, in the figure's unit."""
    ratio: Optional[float]
    """Holds the geometric mean of variant over base; None where a value is not positive."""
    low: Optional[float]
    """Bounds the ratio from below, with 95 % confidence; None for one pair."""
    high: Optional[float]
    """Bounds it from above."""
    n: int
    """Counts pairs of runs."""
    verdict: str
    """Says what the expectation comes to: `reproduced`, `missed`, `neutral`, `not-judged`."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Comparison:
        """Reads a comparison of the program's JSON."""
        low, high = json["ci95"] or (None, None)
        names = ("metric", "base", "variant", "base_mean", "mean", "ratio", "n", "verdict")
        given = {name: json[name] for name in names}
        return cls(point=json.get("point", ""), low=low, high=high, **given)


@dataclass(frozen=True)
class Report:
    """Holds what a plan's runs say."""

    plan: str
    """Names the plan."""
    backend: str
    """Names the backend."""
    records: Rows[Record]
    """Holds every run, in run order."""
    comparisons: Rows[Comparison]
    """Compares every metric of the plan for every variant with the base."""
    published: Rows[Mapping[str, Any]]
    """Sets published figures beside ours."""
    controls: Rows[Mapping[str, Any]]
    """Holds what else the plan expects."""
    verdict: str
    """Gives the verdict on the whole."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Report:
        """Reads the document of `mglru run --format json`."""
        return cls(
            plan=json["plan"],
            backend=json["backend"],
            records=Rows(map(Record.of, json["records"])),
            comparisons=Rows(map(Comparison.of, json["comparisons"])),
            published=Rows(json["published"]),
            controls=Rows([*json["controls"], *json["neutral"]]),
            verdict=json["verdict"],
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the records as a pandas frame."""
        return self.records.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Returns the records as a polars frame."""
        return self.records.to_polars()


@dataclass(frozen=True)
class Finding:
    """Describes a prediction for a patch and what came of it."""

    patch: str
    """Names the patch."""
    metric: str
    """Names the figure it is said to move."""
    expected: str
    """Says whereto."""
    point: str
    """Names the point of the sweep; empty without one."""
    finding: str
    """Is `confirmed`, `contradicted`, `not-seen` or `not-judged`."""
    cells: tuple[Mapping[str, Any], ...]
    """Holds each comparison: mode, effect (figures and ratio with interval), finding."""

    def figures(self) -> dict[str, Any]:
        """Returns one level: the ratio of each mode beside the finding."""
        names = ("patch", "metric", "expected", "point", "finding")
        figures: dict[str, Any] = {name: getattr(self, name) for name in names}
        for cell in self.cells:
            for name, value in (cell.get("effect") or {}).items():
                if isinstance(value, (int, float)):
                    figures[f"{cell['mode']}.{name}"] = value
        return figures


@dataclass(frozen=True)
class Ablation:
    """Says which patch does what."""

    plan: str
    """Names the plan."""
    start: str
    """Names the variant without the patches."""
    end: str
    """Names the variant with them."""
    findings: Rows[Finding]
    """Lists predictions, patch by patch."""
    versions: Rows[Mapping[str, Any]]
    """Holds the plan's figures under each version of the series."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Ablation:
        """Reads the document of `mglru ablate --format json`."""
        names = ("patch", "metric", "expected", "finding")
        rows = json["predictions"]
        findings = [
            Finding(
                point=row.get("point", ""),
                cells=tuple(row["cells"]),
                **{name: row[name] for name in names},
            )
            for row in rows
        ]
        return cls(
            plan=json["plan"],
            start=json["from"],
            end=json["to"],
            findings=Rows(findings),
            versions=Rows(json["versions"]),
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the findings as a pandas frame."""
        return self.findings.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Returns the findings as a polars frame."""
        return self.findings.to_polars()


@dataclass(frozen=True)
class Validation:
    """Sets the model beside measured kernels."""

    counts: Rows[Mapping[str, Any]]
    """Holds each counter of each job: `measured` and `model`, in the counter's unit, and error."""
    summary: Mapping[str, Any]
    """Sums errors up by counter over all versions."""
    versions: Mapping[str, Any]
    """Sums them up by version, with the multi-gen LRU on and off."""
    bounds: Rows[Mapping[str, Any]]
    """Lists the bounds that errors are held to."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Validation:
        """Reads the document of `mglru validate --format json`."""
        return cls(
            counts=Rows(_counts(json["runs"])),
            summary=json["summary"],
            versions=json["versions"],
            bounds=Rows(json["bounds"]),
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the counts as a pandas frame."""
        return self.counts.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Returns the counts as a polars frame."""
        return self.counts.to_polars()


def _counts(runs: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for run in runs:
        shared = {name: value for name, value in run.items() if _is_scalar(value)}
        tables = [value for value in run.values() if isinstance(value, Mapping)]
        nested = [(name, of) for table in tables for name, of in table.items()]
        found = [(name, of) for name, of in nested if isinstance(of, Mapping)]
        rows.extend({**shared, "counter": name, **of} for name, of in found)
        if not found:
            rows.append(shared)
    return rows


@dataclass(frozen=True, eq=False)
class Trace:
    """Holds a trace in memory. The arrays are Rust's own memory and cannot be written to."""

    name: str
    """Names the file, without folder and suffixes."""
    format: str
    """Names the format."""
    pages: NDArray[np.uint64]
    """Holds the page number of each request."""
    writes: NDArray[np.bool_]
    """Says of each request whether it writes."""

    @property
    def requests(self) -> int:
        """Counts the requests."""
        return int(self.pages.size)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the requests as a pandas frame."""
        import pandas

        return pandas.DataFrame({"page": self.pages, "write": self.writes}, copy=False)

    def to_polars(self) -> polars.DataFrame:
        """Returns the requests as a polars frame."""
        import polars

        return polars.DataFrame({"page": self.pages, "write": self.writes})


@dataclass(frozen=True, eq=False)
class Curve:
    """Holds LRU's misses at every size."""

    trace: str
    """Names the trace."""
    requests: int
    """Counts requests."""
    unique: int
    """Counts distinct pages."""
    size_pages: NDArray[np.uint64]
    """Lists sizes of the cache, pages, ascending."""
    miss_ratio: NDArray[np.float64]
    """Divides misses by all requests, at each size."""
    low: NDArray[np.float64]
    """Bounds a sample's ratio from below (95 %); the ratio itself where all pages were counted."""
    high: NDArray[np.float64]
    """Bounds it from above."""
    enough_pages: Optional[int]
    """Gives the least size at which misses beyond first uses stay under 1 % of the requests."""
    doubled_pages: Optional[int]
    """Gives the greatest size with twice the misses of `enough_pages`; None where there is none."""

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Curve:
        """Reads the document of `mglru trace mrc --format json`, with its knee."""
        curve, knee = json["curve"], json["knee"] or {}
        points = curve["lru"]
        ratio = [point["miss_ratio"] for point in points]
        bands = [point.get("band", [point["miss_ratio"]] * 2) for point in points]
        return cls(
            trace=curve["trace"],
            requests=curve["requests"],
            unique=curve["unique"],
            size_pages=np.array([point["size_pages"] for point in points], dtype=np.uint64),
            miss_ratio=np.array(ratio, dtype=np.float64),
            low=np.array([band[0] for band in bands], dtype=np.float64),
            high=np.array([band[1] for band in bands], dtype=np.float64),
            enough_pages=knee.get("enough"),
            doubled_pages=knee.get("doubled") or None,
        )

    def at(self, pages: int) -> float:
        """Returns the miss ratio at the largest size of the curve that is at most `pages`."""
        found = int(np.searchsorted(self.size_pages, pages, side="right")) - 1
        return float(self.miss_ratio[found]) if found >= 0 else math.nan

    def _frame(self) -> dict[str, NDArray[Any]]:
        names = ("size_pages", "miss_ratio", "low", "high")
        return {name: getattr(self, name) for name in names}

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the curve as a pandas frame."""
        import pandas

        return pandas.DataFrame(self._frame())

    def to_polars(self) -> polars.DataFrame:
        """Returns the curve as a polars frame."""
        import polars

        return polars.DataFrame(self._frame())


@dataclass(frozen=True)
class Replayed:
    """Describes one policy at one size."""

    policy: str
    """Names the policy."""
    size_pages: int
    """Gives the size of the cache, pages."""
    misses: int
    """Counts requests for pages that were not there."""
    miss_ratio: float
    """Divides `misses` by all requests."""
