"""Servers under load, traced: their clients see no difference, and nothing is lost."""

from __future__ import annotations

import os
import pwd
import re
from typing import TYPE_CHECKING

from tests.ports import free_port
from tests.real.real import need

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.real import Real


def test_redis(real: Real) -> None:
    need("redis-server", "redis-benchmark", "redis-cli")

    def work(*, traced: bool) -> list[str]:
        port = free_port()
        address = ("-h", "127.0.0.1", "-p", str(port))
        serve = ("--port", str(port), "--bind", "127.0.0.1", "--io-threads", "2",
                 "--io-threads-do-reads", "yes", "--save", "", "--appendonly", "no")  # fmt: skip
        with real.server("redis-server", *serve, port=port, traced=traced, stop=False):
            message = real.client("redis-benchmark", *address, "-n", "20000", "-c", "50", "-q",
                               "-t", "set,get,lpush,lrange_100", "-P", "4")  # fmt: skip
            # A child of the server saves, so that forking is part of it.
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


def test_memcached(real: Real) -> None:
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


def test_mariadb(real: Real, tmp_path: Path) -> None:
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
