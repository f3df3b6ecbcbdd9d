"""Many runs in a store: rows come out as they went in, and findings over several runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import nptltrace
import nptltrace.fleet
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.fleet import adding
from nptltrace.fleet import store as storing
from nptltrace.fleet.tables import LATER, STORED
from tests.api.test_vocabulary import check_document
from tests.fleet.many import multiply

if TYPE_CHECKING:
    from nptltrace.analysis.vocabulary.document_types import FleetFinding
    from tests.fleet.conftest import Traces
    from tests.support import Ptt

pytestmark = pytest.mark.usefixtures("native_in_process")

SUMS = """
    select class, count(*) as waits, sum(dur_ns)::bigint as wait_ns,
           sum(held_ns)::bigint as held_ns,
           sum(wake_ns)::bigint as wake_ns
    from waits {} group by all order by class"""


def ask(ptt: Ptt, *args: Any, status: int = 0) -> Any:
    """Run `ptt fleet` and return its document."""
    return json.loads(ptt("fleet", *map(str, args), "--format", "json", status=status).stdout)


def inversions(ptt: Ptt, store: str) -> list[FleetFinding]:
    """Return the inversions of a check; on a busy machine, it finds sleeping holders too."""
    checked = ptt("fleet", "check", store, "--format", "json", status=None)
    document = json.loads(checked.stdout)
    assert checked.returncode == (1 if document["findings"] else 0)
    check_document("fleet check", document)
    return [row for row in document["findings"] if row["kind"] == "lock-order-inversion"]


# ---- adding runs ----


def test_a_store_has_what_the_traces_have(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, *traces.all)
    by_site = "select site, sum(wait_ns)::bigint from contention_by_site {} group by all order by 1"
    with nptltrace.fleet.open(store) as fleet:
        for path in traces.all:
            with nptltrace.open(path) as traceset:
                run = traceset.table("runs")["run_id"][0].as_py()
                of_run = f"where run_id = '{run}'"
                assert (
                    fleet.sql(SUMS.format(of_run)).to_pylist()
                    == traceset.sql(SUMS.format("")).to_pylist()
                )
                assert (
                    fleet.sql(by_site.format(of_run)).to_pylist()
                    == traceset.sql(by_site.format("")).to_pylist()
                )
                for name in STORED:
                    if name != "sums":
                        rows = fleet.table(name)["run_id"].to_pylist()
                        assert rows.count(run) == traceset.table(name).num_rows, name
        total = "select class, sum({})::bigint as ns from {} group by class order by class"
        assert (
            fleet.sql(total.format("wait_ns", "sums")).to_pylist()
            == fleet.sql(total.format("dur_ns", "waits")).to_pylist()
        )


def test_views_of_a_store_equal_views_of_traces(ptt: Ptt, traces: Traces, store: str) -> None:
    from nptltrace.analysis.sql.views import VIEWS

    ptt("fleet", "add", store, *traces.forth[:2], traces.alone)
    with nptltrace.fleet.open(store) as fleet:
        for view in VIEWS:
            if view.parameters is None:
                fleet.sql(f"from {view.name}")
        assert fleet.sql("select * from lock_order_cycles").num_rows == 1


def test_every_engine_has_the_types() -> None:
    def kinds(kind: pa.DataType) -> list[pa.DataType]:
        parts = [kind.field(n).type for n in range(kind.num_fields)]
        return [kind, *(inner for part in parts for inner in kinds(part))]

    for table in STORED.values():
        for field in table.schema:
            for kind in kinds(field.type):
                unfit = pa.types.is_unsigned_integer(kind) or pa.types.is_dictionary(kind)
                assert not unfit, (table.name, field.name)


def test_a_run_is_added_once(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.reverse)
    again = ptt("fleet", "add", store, traces.reverse, traces.alone)
    assert "is in" in again.stderr
    assert "added 1 run " in again.stderr
    listed = ask(ptt, "list", store)
    check_document("fleet list", listed)
    assert len(listed["runs"]) == 2


def test_traces_that_cannot_be_added_keep_no_others_out(
    ptt: Ptt, traces: Traces, store: str, tmp_path: Path
) -> None:
    copied = tmp_path / "unfinished.ptt"
    shutil.copytree(traces.alone, copied)
    session = copied / "info" / "session.json"
    session.write_text(json.dumps(json.loads(session.read_text()) | {"state": "running"}))
    none = tmp_path / "none.ptt"
    done = ptt("fleet", "add", store, none, copied, traces.reverse, status=2)
    refused, unfinished, added = done.stderr.splitlines()
    assert str(none) in refused
    assert f"{copied}: the recording goes on" in unfinished
    assert "added 1 run " in added
    assert len(ask(ptt, "list", store)["runs"]) == 1


def test_labels_are_columns(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.forth[0], "--label", "release=1.0")
    ptt("fleet", "add", store, traces.forth[1], "--label", "release=1.1", "--label", "Canary=yes")
    ptt("fleet", "add", store, traces.alone)
    with nptltrace.fleet.open(store) as fleet:
        rows = fleet.sql("select label_release, label_canary from runs order by 1").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("1.0", None), ("1.1", "yes"), (None, None)]
    assert len(ask(ptt, "list", store, "--only", "release=1.1")["runs"]) == 1


def test_a_summary_has_sums_and_long_waits(ptt: Ptt, traces: Traces, store: str) -> None:
    with nptltrace.open(traces.forth[2]) as traceset:
        whole = sorted(traceset.table("waits")["dur_ns"].to_pylist())
    least = whole[len(whole) // 2]
    ptt("fleet", "add", store, traces.forth[2], "--summary", f"{least}ns")
    with nptltrace.fleet.open(store) as fleet:
        kept = fleet.table("waits")["dur_ns"].to_pylist()
        assert sorted(kept) == [ns for ns in whole if ns >= least]
        assert fleet.table("holds").num_rows == 0
        assert sum(fleet.table("sums")["wait_ns"].to_pylist()) == sum(whole)


def test_a_store_of_an_earlier_version_is_read_and_written(
    ptt: Ptt, traces: Traces, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That version had no table `gil`, and one column fewer.
    earlier = {name: table for name, table in STORED.items() if name not in LATER}
    schema = STORED["states"].schema
    fewer = schema.remove(schema.get_field_index("cpu"))
    monkeypatch.setitem(STORED, "states", replace(STORED["states"], schema=fewer))
    for module in (storing, adding):
        monkeypatch.setattr(module, "STORED", earlier | {"states": STORED["states"]})
    monkeypatch.setattr(adding, "TABLES", {n: t for n, t in TABLES.items() if n not in LATER})
    monkeypatch.setattr(storing, "LATER", ())
    assert adding.add_run(storing.Store(store, create=True), traces.alone, {})
    monkeypatch.undo()
    asked = (
        "select count(*) as n, count(cpu) as cpus, (select count(*) from gil) as gil from states"
    )
    with nptltrace.fleet.open(store) as fleet:
        (row,) = fleet.sql(asked).to_pylist()
        assert row["n"] > 0
        assert (row["cpus"], row["gil"]) == (0, 0)
    ptt("fleet", "compact", store)
    ptt("fleet", "add", store, traces.forth[0])
    with nptltrace.fleet.open(store) as fleet:
        assert fleet.store.has("gil")
        (after,) = fleet.sql(asked).to_pylist()
        assert after["n"] > row["n"]


def test_runs_go_and_come_back(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.forth[0], traces.reverse)
    with nptltrace.fleet.open(store) as fleet:
        before = fleet.sql(SUMS.format("")).to_pylist()
    gone = next(r["run_id"] for r in ask(ptt, "list", store)["runs"])
    ptt("fleet", "remove", store, gone)
    with nptltrace.fleet.open(store) as fleet:
        assert gone not in fleet.table("waits")["run_id"].to_pylist()
        assert fleet.runs.num_rows == 1
    ptt("fleet", "compact", store)
    ptt("fleet", "add", store, traces.forth[0], traces.reverse)
    ptt("fleet", "compact", store)
    with nptltrace.fleet.open(store) as fleet:
        assert fleet.sql(SUMS.format("")).to_pylist() == before


def test_a_recording_adds_itself(ptt: Ptt, store: str, tmp_path: Path) -> None:
    record = ("record", "-o", tmp_path / "run.ptt", "--fleet", store, "--label", "night=1")
    message = ptt(*record, "--", "false", status=1).stderr
    assert f"added to {store}" in message
    (run,) = ask(ptt, "list", store)["runs"]
    assert (run["exe"], run["labels"]) == ("false", ["night=1"])
    # An error at the end changes neither the recording nor its status.
    (tmp_path / "file").touch()
    other = ("record", "-o", tmp_path / "other.ptt", "--fleet", tmp_path / "file" / "store")
    assert "not added" in ptt(*other, "--", "true").stderr
    assert ptt("stat", tmp_path / "other.ptt").stdout
    assert "is not a label" in ptt(*other, "--label", "x", "--", "true", status=2).stderr


# ---- results over many runs ----


def test_report_has_waits_and_changes(ptt: Ptt, traces: Traces, store: str) -> None:
    for release, runs in (("1.0", traces.forth[:2]), ("1.1", traces.forth[2:])):
        ptt("fleet", "add", store, *runs, "--label", f"release={release}")
    document = ask(ptt, "report", store)
    check_document("fleet report", document)
    assert [group["value"] for group in document["groups"]] == ["1.0", "1.1"]
    assert [group["runs"] for group in document["groups"]] == [2, 2]
    assert document["groups"][1]["run_mean_ns"] > document["groups"][0]["run_mean_ns"]
    worst = document["places"][0]
    assert worst["place"].startswith("pair (")
    assert worst["runs"] == 4
    assert sum(place["wait_ns"] for place in document["places"]) == document["wait_ns"]
    changed = ask(
        ptt, "diff", store, "--only", "release=1.0", "--against", "release=1.1",
    )  # fmt: skip
    check_document("fleet diff", changed)
    again = ask(ptt, "diff", store, "--label", "release=1.0", "--against", "release=1.1")
    assert again == changed
    assert changed["total"]["after_ns"] == document["groups"][1]["run_mean_ns"]
    text = ptt("fleet", "report", store).stdout
    assert "release=1.1: 2 runs" in text
    assert "at pair+" in text


def test_orders_of_different_runs_are_found(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, *traces.forth[:2], "--label", "release=1.0")
    assert inversions(ptt, store) == []
    ptt("fleet", "add", store, traces.reverse)
    (found,) = inversions(ptt, store)
    assert {(o["held_name"], o["wanted_name"]) for o in found["orders"]} == {
        ("red", "blue"),
        ("blue", "red"),
    }
    assert found["runs"] == 3
    # The command prints the finding as a sentence.
    assert "in different orders by different runs" in " ".join(
        ptt("fleet", "check", store, status=1).stdout.split()
    )


def test_an_excuse_of_an_order_holds_in_its_run_only(ptt: Ptt, traces: Traces, store: str) -> None:
    # This run has both orders; it takes one of them while it has only one thread.
    ptt("fleet", "add", store, traces.alone, traces.forth[0])
    assert inversions(ptt, store) == []
    ptt("fleet", "add", store, traces.reverse)
    (found,) = inversions(ptt, store)
    assert found["runs"] == 3


def test_orders_of_different_hosts_are_found(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.forth[0], traces.reverse, "--label", "release=1.0")
    multiply(store, 4)
    with nptltrace.fleet.open(store) as fleet:
        rows = fleet.sql("select run_id, cmdline, host from runs").to_pylist()
    # A run on one host has the first order, and a run on another host has the second.
    forth, back = ([r for r in rows if how in r["cmdline"]] for how in ("forth", "reverse"))
    first, second = next((a, b) for a in forth for b in back if a["host"] != b["host"])
    only = [f"--only=run_id={row['run_id']}" for row in (first, second)]
    document = ask(ptt, "check", store, *only, status=1)
    (found,) = (f for f in document["findings"] if f["kind"] == "lock-order-inversion")
    assert (found["runs"], found["hosts"]) == (2, sorted((first["host"], second["host"])))


def test_a_run_that_does_not_say_when_it_began(
    ptt: Ptt, traces: Traces, store: str, tmp_path: Path
) -> None:
    trace = tmp_path / "run.ptt"
    shutil.copytree(traces.reverse, trace)
    session = trace / "info" / "session.json"
    known = json.loads(session.read_text("utf-8"))
    session.write_text(
        json.dumps({n: v for n, v in known.items() if n != "start_unix_ns"}), "utf-8"
    )
    ptt("fleet", "add", store, trace, traces.forth[0])
    with nptltrace.fleet.open(store) as fleet:
        assert fleet.runs["start_unix_ns"].null_count == 0
    assert len(inversions(ptt, store)) == 1


def test_orders_under_one_guard_are_no_finding(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, *traces.guards)
    assert inversions(ptt, store) == []


def test_an_order_of_the_only_thread_is_no_finding(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.forth[0], traces.alone)
    assert inversions(ptt, store) == []


# ---- mistakes ----


def test_mistakes_are_reported_in_a_line(
    ptt: Ptt, traces: Traces, store: str, tmp_path: Path
) -> None:
    nothing = ptt("fleet", "report", store, status=2)
    assert "is not a ptt fleet store" in nothing.stderr
    ptt("fleet", "add", store, traces.alone)
    for args, words in (
        (("add", store, tmp_path / "none.ptt"), "none.ptt"),
        (("add", store, traces.alone, "--label", "=x"), "is not a label"),
        (("add", store), "name the traces"),
        (("compact", store, "--label", "a=b"), "--label is for ptt fleet add"),
        (("list", store, "--only", "colour=red"), "no run has a colour"),
        (("remove", store, "nonsense"), "has no run nonsense"),
        (("diff", store, "--only", "host=x"), "--against"),
        (("report", store, "extra"), "takes a store and nothing else"),
    ):
        failed = ptt("fleet", *args, status=2)
        assert words in failed.stderr
        assert failed.stderr.count("\n") == 1
    failed = ptt("sql", "--store", store, "select * from read_csv('/etc/passwd')", status=2)
    assert "root" not in failed.stdout
    assert (
        ptt("sql", "--store", store, "select count(*) as n from runs", "--format", "csv").stdout
        == "n\n1\n"
    )


def test_a_damaged_file_is_named(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.alone)
    (file,) = Path(store, "threads").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-40])
    failed = ptt("fleet", "report", store, status=2)
    assert file.name in failed.stderr
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize("left", [0.0, 0.5])
@pytest.mark.parametrize("table", ["runs", "waits"])
def test_a_log_that_is_cut_off_is_named(
    ptt: Ptt, traces: Traces, store: str, table: str, left: float
) -> None:
    ptt("fleet", "add", store, traces.alone)
    file = Path(store, table, "_delta_log", f"{1:020d}.json")
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * left)])
    failed = ptt("fleet", "report", store, status=2)
    assert failed.stderr == (f"ptt: error: {file} is cut off; put the file back from a copy\n")
    file.write_bytes(whole)
    assert ptt("fleet", "report", store).stdout
