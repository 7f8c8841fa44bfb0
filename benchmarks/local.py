"""Local protocols: reports of a million people over 1 000 values, against pure-ldp and multi-freq-ldpy."""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration
from noisette import local

VALUES, EPSILON = 1000, 1
FASTER, OUE_AT_MOST, GROWTH_AT_MOST, RECORD_AT_MOST = 300.0, 0.5, 2.0, 10.0
PURE, MULTI = "pure-ldp", "multi-freq-ldpy"
PROTOCOLS: tuple[Any, ...] = (
    local.GRR, local.OLH, local.AffineSubsets, local.OUE, local.HadamardResponse, local.ProjectiveGeometry,
    local.SubsetSelection,
)  # fmt: skip


def run(bench: Bench) -> Section:
    """Measure clients and collectors of ours, collectors of the peers, and the growth of the Hadamard transform."""
    tables, checks = [_both_sides(bench)], []
    for made in (_collectors(bench), _growth(bench), _records(bench)):
        tables.append(made[0])
        checks.extend(made[1])
    return Section(tables, checks)


def _both_sides(bench: Bench) -> Table:
    """What one client and one report cost."""
    people = np.random.default_rng(1).integers(0, VALUES, bench.pick(10**6, 10**5))
    rows = []
    for kind in PROTOCOLS:
        protocol = kind(EPSILON, domain=VALUES)
        reports = protocol.clients(people)
        jobs = [
            Job("client", lambda protocol=protocol: protocol.clients(people), people.size),  # type: ignore[misc]
            Job("estimate", lambda protocol=protocol, r=reports: protocol.estimate(r), people.size),  # type: ignore[misc]
        ]
        ns = bench.measure(kind.__name__, jobs, rounds=bench.pick(3, 1))
        total = duration(ns["estimate"] * people.size)
        rows.append(
            [kind.__name__, duration(ns["client"]), f"{1e9 / ns['client']:,.0f}", duration(ns["estimate"]), total]
        )
    header = ["protocol", "a client", "clients / s", "a report", f"estimate from {people.size:,}"]
    return Table(f"Local protocols: {VALUES:,} values, ε = {EPSILON}", header, rows)


def _collectors(bench: Bench) -> tuple[Table, list[Check]]:
    """Estimates against those of the peers, of as many reports as they can read in a second; the cost is linear."""
    people = np.random.default_rng(1).integers(0, VALUES, bench.pick(10**6, 10**5))
    rows, checks = [], []
    for kind, peers in ((local.OLH, {PURE: _pure_olh, MULTI: _multi_olh}), (local.OUE, {MULTI: _multi_oue})):
        protocol: Any = kind(EPSILON, domain=VALUES)
        reports = protocol.clients(people)
        jobs = [Job(OURS, lambda protocol=protocol, r=reports: protocol.estimate(r), people.size)]  # type: ignore[misc]
        for name, make in peers.items():
            try:
                jobs.append(Job(name, *make(bench)))
            except Exception as error:
                bench.failed(kind.__name__, name, error)
        ns = bench.measure(f"{kind.__name__} collectors", jobs, rounds=bench.pick(3, 1))
        for name in [job.name for job in jobs[1:] if job.name in ns]:
            check = _against(kind.__name__, name, ns)
            checks.append(check)
            rows.append([f"{kind.__name__}, {name}", *(duration(10**6 * ns[n]) for n in (OURS, name)), *check.cells])
    header = ["estimate from a million reports", OURS, "peer (extrapolated)", "ratio", "target", ""]
    return Table("Collectors", header, rows), checks


def _against(protocol: str, name: str, ns: dict[str, float]) -> Check:
    if protocol == "OUE":
        return Check(f"OUE estimate, {OURS} / {name}", ns[OURS] / ns[name], at_most=OUE_AT_MOST)
    return Check(f"OLH estimate, {name} / {OURS}", ns[name] / ns[OURS], at_least=FASTER)


def _growth(bench: Bench) -> tuple[Table, list[Check]]:
    """The Hadamard estimate at two sizes, by the number of steps n + k log k."""
    people, costs, rows = bench.pick(10**6, 10**5), [], []
    for places in (bench.pick(16, 14), bench.pick(20, 17)):
        domain = 2**places - 1
        protocol = local.HadamardResponse(EPSILON, domain=domain)
        reports = protocol.clients(np.arange(people) % domain)
        steps = people + domain * places
        job = Job(OURS, lambda protocol=protocol, r=reports: protocol.estimate(r), steps)  # type: ignore[misc]
        costs.append(bench.measure(f"Hadamard, {domain:,} values", [job], rounds=bench.pick(5, 3))[OURS])
        rows.append([f"{domain:,} values", duration(costs[-1] * steps), duration(costs[-1])])
    check = Check("Hadamard, cost of a step, largest / smallest domain", costs[1] / costs[0], at_most=GROWTH_AT_MOST)
    rows.append(["largest / smallest", "", *check.cells])
    header = ["Hadamard response", f"{people:,} reports", "a step of n + k log k", "target", ""]
    return Table("Growth", header, [row + [""] * (5 - len(row)) for row in rows]), [check]


def _records(bench: Bench) -> tuple[Table, list[Check]]:
    """Records on the wire: read, checked, each counted once, and estimated."""
    people, rows, checks = bench.pick(10**6, 10**5), [], []
    for kind in (local.OLH, local.OUE, local.HadamardResponse):
        survey = local.Round(kind(EPSILON, domain=VALUES))  # type: ignore[arg-type]
        records = survey.encode(survey.protocol.clients(np.arange(people) % VALUES))

        def collect(survey: local.Round = survey, records: bytes = records) -> object:
            collector = local.Collector(survey)
            collector.read(io.BytesIO(records))
            return collector.result().estimate()

        ns = bench.measure(f"{kind.__name__} records", [Job(OURS, collect, people)], rounds=bench.pick(3, 1))[OURS]
        check = Check(f"{kind.__name__}, microseconds for a record", ns / 1000, at_most=RECORD_AT_MOST)
        checks.append(check)
        rows.append([kind.__name__, f"{survey.record_bytes}", duration(ns * people), *check.cells])
    header = ["records", "bytes", f"collect {people:,}", "µs each", "target", ""]
    return Table("Collection", header, rows), checks


def _pure_olh(bench: Bench) -> tuple[Callable[[], object], int]:
    """Aggregate one report after the other, as the library documents it."""
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    count = bench.pick(1000, 100)
    client = LHClient(float(EPSILON), VALUES, use_olh=True)
    reports = [client.privatise(1 + i % VALUES) for i in range(count)]

    def estimate() -> object:
        server = LHServer(float(EPSILON), VALUES, use_olh=True)
        for report in reports:
            server.aggregate(report)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of few reports
            return server.estimate_all(range(1, VALUES + 1))

    return estimate, count


def _multi_olh(bench: Bench) -> tuple[Callable[[], object], int]:
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

    count = bench.pick(1000, 100)
    reports = [LH_Client(i % VALUES, VALUES, EPSILON) for i in range(count)]
    return lambda: LH_Aggregator_MI(reports, VALUES, EPSILON), count


def _multi_oue(bench: Bench) -> tuple[Callable[[], object], int]:
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    count = bench.pick(50_000, 5000)
    reports = [UE_Client(i % VALUES, VALUES, EPSILON) for i in range(count)]
    return lambda: UE_Aggregator_MI(reports, EPSILON), count
