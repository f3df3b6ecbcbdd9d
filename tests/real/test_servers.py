"""Traced servers under load: their clients see no difference, and no event is lost."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ports import free_port
from tests.real.real import need, wait_until

if TYPE_CHECKING:
    from tests.real.real import Real
    from tests.support import Ptt


def test_redis_serves_the_same_traced(real: Real) -> None:
    need("redis-server", "redis-benchmark", "redis-cli")

    def work(*, traced: bool) -> list[str]:
        port = free_port()
        address = ("-h", "127.0.0.1", "-p", str(port))
        serve = ("--port", str(port), "--bind", "127.0.0.1", "--io-threads", "2",
                 "--io-threads-do-reads", "yes", "--save", "", "--appendonly", "no")  # fmt: skip
        with real.server("redis-server", *serve, port=port, traced=traced, stop=False):
            message = real.client("redis-benchmark", *address, "-n", "20000", "-c", "50", "-q",
                               "-t", "set,get,lpush,lrange_100", "-P", "4")  # fmt: skip
            # A forked child of the server saves the data.
            answers = [
                real.client("redis-cli", *address, *words.split()).strip()
                for words in ("set a 1", "incr a", "llen mylist", "get a", "save", "bgrewriteaof")
            ]
            real.client("redis-cli", *address, "shutdown", "nosave")
        assert "Error" not in message
        return answers

    assert work(traced=True) == work(traced=False)
    found = real.check(at_least=1000)
    assert len(found["processes"][0]["threads"]) >= 5


def test_memcached_serves_the_same_traced(real: Real) -> None:
    need("memcached", "memcslap")

    def work(*, traced: bool) -> None:
        port = free_port()
        user = ("-u", "nobody") if os.getuid() == 0 else ()
        command = ("memcached", *user, "-l", "127.0.0.1", "-p", str(port), "-t", "4", "-m", "64")
        with real.server(*command, port=port, traced=traced):
            for kind in ("set", "get"):
                load = ("--concurrency=4", "--execute-number=4000", "--initial-load=1000")
                real.client("memcslap", f"--servers=127.0.0.1:{port}", f"--test={kind}", *load)

    work(traced=False)
    work(traced=True)
    found = real.check(at_least=10_000)
    assert found["event_types"]["MUTEX_TAKEN"] > 1000


def test_mariadb_serves_the_same_traced(real: Real, tmp_path: Path) -> None:
    need("mariadbd", "mariadb-install-db", "mariadb", "sysbench")
    user = pwd.getpwuid(os.getuid()).pw_name

    def work(*, traced: bool) -> str:
        data = tmp_path / f"data-{traced}"
        real.client("mariadb-install-db", "--no-defaults", f"--user={user}", f"--datadir={data}",
                    "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
        port = free_port()
        socket = data / "server.sock"
        serve = ("mariadbd", "--no-defaults", f"--user={user}", f"--datadir={data}",
                 f"--port={port}", "--bind-address=127.0.0.1", f"--socket={socket}",
                 f"--pid-file={data / 'pid'}", "--innodb-buffer-pool-size=32M",
                 "--thread-handling=pool-of-threads")  # fmt: skip
        client = ("mariadb", "--no-defaults", f"--socket={socket}", "-u", "root", "-N", "-e")
        bench = ("sysbench", "oltp_read_write", "--db-driver=mysql", f"--mysql-socket={socket}",
                 "--mysql-user=root", "--tables=2", "--table-size=2000", "--events=1000",
                 "--time=0", "--rand-seed=7")  # fmt: skip
        with real.server(*serve, port=port, traced=traced):
            real.client(*client, "create database sbtest")
            real.client(*bench, "--threads=1", "prepare")
            before = real.client(*client, "select count(*), sum(id) from sbtest.sbtest1")
            message = real.client(*bench, "--threads=4", "run")
            assert re.search(r"transactions:\s+1000 ", message), message
            after = real.client(*client, "check table sbtest.sbtest1, sbtest.sbtest2")
        return before + after

    plain = work(traced=False)
    assert work(traced=True) == plain
    assert plain.startswith("2000")
    assert plain.count("OK") == 2
    found = real.check(at_least=10_000)
    assert len(found["processes"][0]["threads"]) > 5


def test_postgresql_serves_the_same_traced(real: Real, tmp_path: Path, ptt: Ptt) -> None:
    """Processes wait for locks of other processes, each process at its own line."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: int(at.parent.name))
    if not places:
        pytest.skip("PostgreSQL is not installed")
    # the server refuses to be root
    other = ("unshare", "-U", "--map-user=1000", "--map-group=1000") if os.getuid() == 0 else ()

    def work(*, traced: bool) -> str:
        data, port = tmp_path / f"data-{traced}", free_port()
        address = ("-h", "127.0.0.1", "-p", str(port))
        bench = (places[-1] / "pgbench", *address, "-U", "own")
        serve = (*other, places[-1] / "postgres", "-D", data, "-p", str(port), "-k", "",
                 "-c", "shared_buffers=16MB", "-c", "autovacuum=off")  # fmt: skip
        real.client(*other, places[-1] / "initdb", "-D", data, "-A", "trust", "-U", "own", "-N")
        with real.server(*serve, port=port, traced=traced):
            ready = (places[-1] / "pg_isready", "-q", *address)
            wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL")
            real.client(*bench, "-i", "postgres")
            real.client(*bench, "-c", "8", "-t", "50", "postgres")
            query = (
                "select count(*), sum(delta) = (select sum(bbalance) from pgbench_branches) "
                "from pgbench_history"
            )
            client = (places[-1] / "psql", *address, "-U", "own", "-tAc", query)
            return real.client(*client, "postgres")

    assert work(traced=True) == work(traced=False) == "400|t\n"
    real.check(at_least=1000)
    found = json.loads(ptt("report", "--format", "json", real.trace).stdout)
    locks = [item for item in found["objects"] if item["kind"] == "lwlock" and item["waits"]]
    assert locks
    assert not any(item["idle_waits"] for item in locks)
    wakers = {(item["pid"], item["site"]) for lock in locks for item in lock["wakers"]}
    assert len({pid for pid, _ in wakers}) > 1
    assert not [site for _, site in wakers if site.startswith(("LWLock", "PGSemaphore"))]
    assert json.loads(ptt("check", "--format", "json", real.trace).stdout)["findings"] == []
