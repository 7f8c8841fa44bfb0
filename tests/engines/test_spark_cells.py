"""Noise of a bucket without a cluster: what an executor does with a partition, in every way Spark may cut it."""

import datetime
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.query.tables import SCHEMA
from tests.query.test_design import KNOWN, UNKNOWN, designed

from noisette.engines.contract import CellDraw
from noisette.engines.spark.cells import CellLayout, canonical, encoded
from noisette.engines.spark.commit import _applied, _Task, _together
from noisette.engines.spark.executor import merge_parts
from noisette.engines.spark.scratch import Scratch, _machine
from noisette.engines.sql.partial import partial_schema
from noisette.errors import InputError, NoisetteError, UnfinishedError
from noisette.exact.keyed import keyed_digest
from noisette.exact.random import SYSTEM
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import Geometric
from noisette.privacy import Approx
from noisette.query.draw import TaskDraw
from noisette.query.measure import Exact, Measure

KEY = bytes(range(32))
MOMENT = datetime.datetime(1582, 10, 14, 23, 59, 59, 999999)


# Encoding

VALUES = {
    "integer": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(allow_nan=False),
    "text": st.text(alphabet="ab\0é", max_size=3),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(),
}
TYPES = tuple(VALUES)
LAYOUT = CellLayout(TYPES, (None, 2))
INT64 = st.integers(-(2**63), 2**63 - 1)
CELL = st.tuples(*(st.none() | VALUES[kind] for kind in TYPES), INT64, st.lists(INT64, min_size=2, max_size=2))
SENT = pyarrow.schema(
    [
        ("k0", pyarrow.int64()),
        ("k1", pyarrow.float64()),
        ("k2", pyarrow.string()),
        ("k3", pyarrow.bool_()),
        ("k4", pyarrow.date32()),
        ("k5", pyarrow.timestamp("us", "UTC")),
        ("m0", pyarrow.int64()),
        ("m1", pyarrow.list_(pyarrow.int64())),
    ]
)


def table(cells):
    """As Spark sends it."""
    columns = zip(*cells, strict=True) if cells else [[]] * len(SENT)
    return pyarrow.Table.from_arrays(
        [pyarrow.array(list(c), f.type) for c, f in zip(columns, SENT, strict=True)], schema=SENT
    )


def bits(cells):
    """Equal only for cells that are equal to the last bit: 0.0 is another value than -0.0."""
    return [
        tuple(np.float64(v).tobytes() if isinstance(v, float) else v for v in map(repr_list, cell)) for cell in cells
    ]


def repr_list(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.slow
@given(st.lists(CELL, max_size=3), st.lists(CELL, max_size=3))
def test_two_tables_have_the_same_bytes_only_if_they_are_the_same(one, other):
    a, b = (b"".join(_framed(encoded(LAYOUT.stored(table(cells))))) for cells in (one, other))
    assert (a == b) == (bits(one) == bits(other))


def _framed(parts):
    return [len(bytes(part)).to_bytes(8, "little") + bytes(part) for part in parts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        ((None, "a"), ("a", None)),
        (("", None), (None, "")),
        (("a\0", "b"), ("a", "\0b")),
    ],
)
def test_texts_that_look_alike(one, other):
    layout = CellLayout(("text", "text"), ())
    schema = pyarrow.schema([("k0", pyarrow.string()), ("k1", pyarrow.string())])
    rows = [pyarrow.Table.from_pylist([dict(zip(("k0", "k1"), pair, strict=True))], schema) for pair in (one, other)]
    parts = [list(map(bytes, encoded(layout.stored(row)))) for row in rows]
    assert parts[0] != parts[1]
    assert keyed_digest(KEY, parts[0]) != keyed_digest(KEY, parts[1])


def test_a_slice_has_the_bytes_of_its_own_rows():
    layout = CellLayout(("text",), (2,))
    whole = layout.stored(pyarrow.table({"k0": ["x", "yy", "zzz"], "m0": [[1, 2], [3, 4], [5, 6]]}))
    alone = layout.stored(pyarrow.table({"k0": ["yy"], "m0": [[3, 4]]}))
    assert list(map(bytes, encoded(whole.slice(1, 1)))) == list(map(bytes, encoded(alone)))


@pytest.mark.slow
@given(st.lists(CELL, max_size=6, unique_by=lambda cell: repr(cell[:6])), st.randoms(use_true_random=False))
def test_the_order_of_cells_does_not_matter(cells, random):
    shuffled = random.sample(cells, len(cells))
    made = [canonical(LAYOUT.stored(table(each)), LAYOUT) for each in (cells, shuffled)]
    assert list(map(bytes, encoded(made[0]))) == list(map(bytes, encoded(made[1])))


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_moments_come_back_as_they_went(zone):
    layout = CellLayout(("timestamp", "date"), ())
    micros = pyarrow.array([-12219292800000001], pyarrow.int64())
    sent = pyarrow.table({"k0": micros.cast(pyarrow.timestamp("us", zone)), "k1": [datetime.date(1, 1, 1)]})
    shown = layout.shown(layout.stored(sent))
    assert shown.to_pylist() == [{"k0": MOMENT, "k1": datetime.date(1, 1, 1)}]
    assert shown.schema.types == [pyarrow.timestamp("us"), pyarrow.date32()]


# A partition


def task_of(text, key=KEY):
    """What an executor gets for the only task of a question."""
    made = designed(text, spend=Approx(1, "1e-6"))
    return _Task(key, TaskDraw(made, 0), CellLayout.of(made.tasks[0].request, SCHEMA))


def cells_of(layout, size=40):
    """Cells with numbers that pass every threshold, some far below it, and NULL as a key."""
    made = {}
    for name, kind in zip(layout.names, layout.empty.schema.types, strict=False):
        values = [f"v{i}" if pyarrow.types.is_string(kind) else i for i in range(size)]
        made[name] = pyarrow.array(values if isinstance(layout.keys, int) else [*values[:-1], None]).cast(kind)
    for i, width in enumerate(layout.steps):
        numbers = [j % 3 if j % 4 == 0 else 1000 + i * 10 + j for j in range(size)]
        made[f"m{i}"] = numbers if width is None else [[n % 7] * width for n in numbers]
    return layout.stored(pyarrow.table(made))


def partition(cells, buckets, rows):
    """The cells sorted by bucket, in batches of that many rows."""
    numbers = pyarrow.array(np.arange(len(cells), dtype=np.int32) % buckets)
    return cells.add_column(0, "bucket", numbers).sort_by("bucket").to_batches(rows)


def noised(task, cells, buckets=4, rows=3):
    batches = list(_applied(task, iter(partition(cells, buckets, rows))))
    return pyarrow.Table.from_batches(batches, task.empty.schema)


def size_of(task):
    return task.layout.keys if isinstance(task.layout.keys, int) else 40


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("text", KNOWN + UNKNOWN)
def test_a_task_travels_and_its_noise_depends_on_no_batch(text):
    task = task_of(text)
    assert isinstance(task.draw, CellDraw)
    cells, there = cells_of(task.layout, size_of(task)), pickle.loads(pickle.dumps(task))
    made = noised(task, cells)
    assert made.schema.equals(task.empty.schema)
    assert made.equals(noised(there, cells, rows=1))
    assert made.equals(noised(task, cells, rows=1000))
    batches = partition(cells, 4, 1000)[0].to_pylist()[::-1]  # each bucket backwards
    turned = pyarrow.Table.from_pylist(sorted(batches, key=lambda row: row["bucket"]), partition(cells, 4, 1)[0].schema)
    assert made.equals(pyarrow.Table.from_batches(_applied(task, iter(turned.to_batches())), task.empty.schema))


def forget():
    """Empty what functions of the package remember, as in a process that has drawn nothing yet."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("noisette.exact", "noisette.laws", "noisette.mechanisms")):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("text", [UNKNOWN[1], *KNOWN, *UNKNOWN], ids=lambda text: text[7:50])
def test_noise_does_not_depend_on_what_the_process_drew_before(text):
    """Samplers change their way after some hundred draws of one law, unless their coins have a key."""
    task = task_of(text)
    cells = cells_of(task.layout, size_of(task))
    forget()
    first = noised(pickle.loads(pickle.dumps(task)), cells, rows=100)
    for _ in range(15):
        task.draw(task.layout.exact(cells), SYSTEM)
        assert noised(task, cells, rows=100).equals(first)
    many = Exact(None, tuple(np.repeat(m, 600 // len(m) + 1, axis=0) for m in task.layout.exact(cells).measures))
    if task.draw.design.tasks[0].members is None:
        task.draw(many, SYSTEM)
    assert noised(task, cells, rows=100).equals(first)


@pytest.mark.parametrize("text", [KNOWN[1], KNOWN[10], *UNKNOWN])
def test_what_is_read_is_what_was_drawn(text):
    task = task_of(text)
    cells = cells_of(task.layout, size_of(task))
    whole = noised(task, cells)
    parts = [whole.filter(pyarrow.compute.equal(whole.column("bucket"), i)) for i in (3, 1, 0, 2)]
    read = _together(parts, task.draw, task.layout)
    answer = task.draw.read(read)
    places = whole["c0"].to_pylist()
    order = sorted(range(len(whole)), key=lambda i: (places[i] is None, places[i] or 0))
    skipped = 1 + len(task.layout.names)  # the bucket and the keys, or the place
    names = read.column_names[skipped - 1 if answer.keys is not None else 0 :]
    found = {name: [c[i].as_py() for i in order] for name, c in zip(names, whole.columns[skipped:], strict=True)}
    shown = task.draw.table(answer)
    assert {name: shown[name].to_pylist() for name in names} == found
    assert answer.size == len(whole)
    if answer.keys is None:
        assert answer.size == size_of(task)
    else:
        assert 0 < answer.size < size_of(task)  # some keys are below the threshold
        kept = task.layout.shown(whole.drop_columns(["bucket"])).column(0).to_pylist()
        assert answer.keys.column(0).to_pylist() == [kept[i] for i in order]


def test_without_cells_nothing_is_drawn():
    for text in KNOWN[:1] + UNKNOWN:
        task = task_of(text)
        assert noised(task, task.layout.empty).equals(task.empty)


class Steps:
    """Geometric noise on one number for each cell."""

    def __init__(self, twin=None):
        self.twin = twin

    def __call__(self, exact, rng):
        if self.twin == "fails":
            raise ValueError("value 4711")
        numbers = exact.measures[0]
        return exact.keys, Geometric(20)(numbers, SYSTEM if self.twin == "afresh" else rng) if len(numbers) else []

    def table(self, drawn):
        keys, numbers = drawn
        columns = {} if keys is None else {f"key {i}": column for i, column in enumerate(keys.columns)}
        return pyarrow.table(columns | {"n": pyarrow.array(np.asarray(numbers, float))})

    def read(self, table):
        return table


TEXTS = CellLayout(("text",), (None,))


def steps(cells, key=KEY, twin=None, buckets=4):
    """The noise of each key."""
    made = noised(_Task(key, Steps(twin), TEXTS), cells, buckets)
    numbers = dict(zip(cells["k0"].to_pylist(), cells["m0"].to_pylist(), strict=True))
    return {k: n - numbers[k] for k, n in zip(made["c0"].to_pylist(), made["c1"].to_pylist(), strict=True)}


def test_a_repeated_task_repeats_its_noise_and_a_twin_does_not():
    cells = cells_of(TEXTS)
    assert steps(cells) == steps(cells)
    assert steps(cells, twin="afresh") != steps(cells, twin="afresh")


@pytest.mark.parametrize("change", ["value", "key", "row", "secret"])
def test_other_cells_or_another_secret_give_other_noise(change):
    """The 10 cells of the bucket all have new noise of scale 20; equal by chance with less than 1e-15."""
    cells, key = cells_of(TEXTS), KEY
    rows = cells.to_pylist()
    match change:
        case "value":
            rows[0]["m0"] += 1
        case "key":
            rows[0]["k0"] = "v00"  # in the same place
        case "row":
            rows = [*rows, {"k0": "w", "m0": 5}]
        case "secret":
            key = bytes(32)
    other = steps(TEXTS.stored(pyarrow.Table.from_pylist(rows)), key)
    mine = [f"v{i}" for i in range(4, 36, 4)]  # of the bucket 0, unchanged themselves
    assert [steps(cells)[k] for k in mine] != [other[k] for k in mine]
    others = [f"v{i}" for i in range(1, 36, 4)]
    assert ([steps(cells)[k] for k in others] == [other[k] for k in others]) == (change != "secret")


@pytest.mark.slow
def test_noise_on_executors_has_its_law():
    """A sound tree fails with a chance of at most ALPHA."""
    cells = TEXTS.stored(pyarrow.table({"k0": [f"v{i}" for i in range(20_000)], "m0": np.arange(20_000)}))
    seen = np.array(list(steps(cells, key=os.urandom(32), buckets=50).values()))
    law, at = DiscreteLaplace(20), np.arange(-60, 61)
    counts = [(seen < -60).sum(), *((seen == z).sum() for z in at), (seen > 60).sum()]
    chances = np.array([float(law.pmf(int(z))) for z in at])
    tail = (1 - chances.sum()) / 2
    assert p_value(counts, [tail, *chances, tail]) > ALPHA
    other = np.array([float(DiscreteLaplace(16).pmf(int(z))) for z in at])  # a twin with noise x 0.8
    assert p_value(counts, [(1 - other.sum()) / 2, *other, (1 - other.sum()) / 2]) < ALPHA


def test_words_of_a_task_are_fixed():
    with pytest.raises(NoisetteError, match="could not be noised") as caught:
        noised(_Task(KEY, Steps("fails"), TEXTS), cells_of(TEXTS))
    assert caught.value.__context__ is None
    assert "4711" not in str(caught.value)


def test_cells_that_come_in_parts_are_added_up_before_they_are_noised():
    """Whatever the parts and their order; without that, each part is noised by itself, and there is no answer."""
    measures = (Measure("rows"),)
    cells = cells_of(TEXTS)
    numbers = cells.column("m0").to_numpy()
    columns = partial_schema([pyarrow.string()], measures)

    def batches(*shares, order=1):
        parts = [pyarrow.table({"k0": cells.column("k0"), "m0": share}) for share in shares]
        parts = [t.add_column(0, "bucket", pyarrow.array(np.arange(len(t), dtype=np.int32) % 4)) for t in parts]
        for name in ("value", "cell", "what"):
            parts = [t.add_column(2, name, pyarrow.nulls(len(t), columns.field(name).type)) for t in parts]
        return iter([batch for part in parts[::order] for batch in part.to_batches(7)][::order])

    added_up = partial(merge_parts, measures=measures)

    def drawn(batches, merge=added_up):
        task = _Task(KEY, Steps(), TEXTS, merge)
        return pyarrow.Table.from_batches(_applied(task, batches), task.empty.schema)

    whole = noised(_Task(KEY, Steps(), TEXTS), cells)
    third = numbers // 3
    assert drawn(batches(numbers)).equals(whole)
    assert drawn(batches(third, numbers - third)).equals(whole)
    assert drawn(batches(third, third, numbers - 2 * third, order=-1)).equals(whole)
    apart = drawn(batches(third, numbers - third), merge=None)
    with pytest.raises(UnfinishedError):
        _together([apart], Steps(), TEXTS)


def test_the_key_is_in_no_text():
    task = _Task(KEY, Steps(), TEXTS)
    assert KEY.hex() not in f"{task} {task!r}"
    assert repr(KEY)[2:-1] not in f"{task} {task!r}"


# What was committed


def test_a_cell_or_a_bucket_that_is_there_twice_or_missing_is_no_answer():
    task = _Task(KEY, Steps(), TEXTS)
    whole = noised(task, cells_of(TEXTS))
    assert len(_together([whole], task.draw, TEXTS)) == 40
    renamed = whole.slice(0, 1).set_column(0, "bucket", pyarrow.array([9], pyarrow.int32()))
    for parts in ([whole, whole], [whole, whole.slice(0, 1)], [whole.slice(0, 5), whole.slice(5)], [whole, renamed]):
        with pytest.raises(UnfinishedError):
            _together(parts, task.draw, TEXTS)


def test_each_declared_cell_is_there():
    layout = CellLayout(40, (None,))
    task = _Task(KEY, Steps(), layout)
    whole = noised(task, cells_of(layout))
    assert len(_together([whole], task.draw, layout)) == 40
    for parts in ([whole.slice(1)], [whole, whole.slice(0, 1)], []):
        with pytest.raises(UnfinishedError):
            _together(parts, task.draw, layout)


# Scratch


def written(scratch, name, mark=True):
    folder = os.path.join(scratch.path, name)
    os.makedirs(folder)
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), os.path.join(folder, "part-0.parquet"))
    if mark:
        open(os.path.join(folder, "_SUCCESS"), "w").close()


def test_only_what_was_committed_is_read(tmp_path):
    scratch = Scratch.of(tmp_path)
    with scratch.folder() as name:
        written(scratch, name)
        assert [table.to_pydict() for table in scratch.committed(name)] == [{"a": [1]}]
    assert list(tmp_path.iterdir()) == []
    with scratch.folder() as name:
        written(scratch, name, mark=False)
        with pytest.raises(UnfinishedError):
            scratch.committed(name)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnfinishedError), scratch.folder() as name:
        scratch.committed(name)


def test_what_dead_processes_left_is_deleted_and_nothing_else(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    keep = [f"noisette-{_machine()}-{os.getpid()}-{'a' * 32}", f"noisette-{'0' * 16}-{dead.pid}-{'a' * 32}", "mine"]
    gone = f"noisette-{_machine()}-{dead.pid}-{'b' * 32}"
    for name in [*keep, gone]:
        (tmp_path / name / "deep").mkdir(parents=True)
    Scratch.of(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(keep)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for given_path in (tmp_path / "none", tmp_path / "file", "nonsense://x"):
        with pytest.raises(InputError, match="scratch= must name a folder"):
            Scratch.of(given_path)
