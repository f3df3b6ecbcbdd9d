"""Java's monitors and locks: their threads sleep on conditions of the machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import running
from tests.support import ALL

if TYPE_CHECKING:
    from tests.support import Ptt

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="tested on x86-64 only"),
]

NAMES = {"pays", "writes", "waits", "lends", "owes"}
PROGRAM = """
import java.util.concurrent.CountDownLatch;

public class Bank {
    static class Account { }
    static class Ledger { }

    static final CountDownLatch both = new CountDownLatch(2);

    static void cross(Object first, Object second) {
        synchronized (first) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException error) {
                return;
            }
            synchronized (second) {
                System.out.println("not reached");
            }
        }
    }

    static void idle(Object object) {
        synchronized (object) {
            try {
                object.wait();
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Object account = new Account(), ledger = new Ledger();
        new Thread(() -> cross(account, ledger), "pays").start();
        new Thread(() -> cross(ledger, account), "writes").start();
        new Thread(() -> idle(new Ledger()), "waits").start();
        Thread.sleep(1000000);
    }
}
"""


LOCKS = """
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public class Locks {
    static final CountDownLatch both = new CountDownLatch(2);

    static void cross(Lock first, Lock second) {
        first.lock();
        both.countDown();
        try {
            both.await();
        } catch (InterruptedException error) {
            return;
        }
        second.lock();
    }

    public static void main(String[] arguments) throws Exception {
        Lock account = new ReentrantLock(), ledger = new ReentrantReadWriteLock().writeLock();
        Thread pays = new Thread(() -> cross(account, ledger), "pays");
        pays.start();
        new Thread(() -> cross(ledger, account), "writes").start();
        new Thread(() -> new Semaphore(0).acquireUninterruptibly(), "waits").start();
        while (pays.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
        Thread.sleep(1000000);
    }
}
"""


# The initializers of two classes need each other, and two threads join each other.
INITIALIZERS = """
import java.util.concurrent.CountDownLatch;

public class Classes {
    static final CountDownLatch both = new CountDownLatch(2);

    static void meet() {
        both.countDown();
        try {
            both.await();
        } catch (InterruptedException error) {
            return;
        }
    }
    static class Left {
        static int x;
        static { meet(); x = Right.y + 1; }
    }
    static class Right {
        static int y;
        static { meet(); y = Left.x + 1; }
    }
    static Thread other;

    public static void main(String[] arguments) throws Exception {
        Thread waits = new Thread(() -> {
            try {
                other.join();
            } catch (InterruptedException error) {
                return;
            }
        }, "waits");
        new Thread(() -> System.out.println(Left.x), "pays").start();
        other = new Thread(() -> System.out.println(Right.y), "writes");
        other.start();
        waits.start();
        Thread.sleep(1000000);
    }
}
"""


# Deadlocks of two monitors and of two locks, and a virtual thread.
LIGHTWEIGHT = """
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

public class Light {
    static final CountDownLatch all = new CountDownLatch(4);

    static void meet() {
        all.countDown();
        try {
            all.await();
        } catch (InterruptedException error) {
            return;
        }
    }

    static void enter(Object first, Object second) {
        synchronized (first) {
            meet();
            synchronized (second) {
                System.out.println("not reached");
            }
        }
    }

    static void take(ReentrantLock first, ReentrantLock second) {
        first.lock();
        meet();
        second.lock();
    }

    public static void main(String[] arguments) throws Exception {
        Object left = new Object(), right = new Object();
        ReentrantLock up = new ReentrantLock(), down = new ReentrantLock();
        new Thread(() -> enter(left, right), "pays").start();
        new Thread(() -> enter(right, left), "writes").start();
        new Thread(() -> take(up, down), "lends").start();
        new Thread(() -> take(down, up), "owes").start();
        Thread.ofVirtual().start(java.util.concurrent.locks.LockSupport::park);
        Thread.sleep(1000000);
    }
}
"""


def lightweight() -> str:
    """Return a Java from 23 on: their monitors are locked without a structure of the machine."""
    for release in sorted(Path("/usr/lib/jvm").glob("*/release"), reverse=True):
        version = re.search(r'^JAVA_VERSION="(\d+)', release.read_text("utf-8"), re.MULTILINE)
        if version is not None and int(version[1]) >= 23:
            return str(release.parent / "bin/java")
    return ""


def looked_at(
    ptt: Ptt, place: Path, text: str, wanted: int, *, java: str = "java", findings: int = 1
) -> dict[str, Any]:
    """Return the answer when this many threads wait for objects with Java names."""
    source = place / "Program.java"
    source.write_text(text, encoding="utf-8")
    with running(java, source) as pid:
        until = time.monotonic() + 60
        answer: dict[str, Any] = {"findings": [], "threads": []}
        # A thread that waits for a monitor wakes now and then; at that moment it does not sleep.
        while time.monotonic() < until:
            answer = json.loads(ptt("hang", "--format", "json", pid, status=None).stdout)
            waits = [t["waits_for"] for t in answer["threads"] if t["name"] in NAMES]
            named = len([w for w in waits if w["name"]])
            if len(answer["findings"]) >= findings and named == wanted:
                break
    return answer


def line_of(text: str, statement: str) -> int:
    """Return the line of the first such statement."""
    return text[: text.index(statement)].count("\n") + 1


def test_monitors_have_owners(ptt: Ptt, tmp_path: Path) -> None:
    answer = looked_at(ptt, tmp_path, PROGRAM, 3)
    (finding,) = answer["findings"]
    assert finding["kind"] == "deadlock"
    threads = {t["tid"]: t for t in answer["threads"] if t["name"] in {"pays", "writes"}}
    (idle,) = (t["waits_for"] for t in answer["threads"] if t["name"] == "waits")
    assert idle["kind"] == "condition"
    assert idle["name"].startswith("Bank$Ledger@0x")
    assert {*finding["threads"]} == {*threads}
    waits = {tid: t["waits_for"] for tid, t in threads.items()}
    assert {wait["kind"] for wait in waits.values()} == {"monitor"}
    assert {wait["owner_tid"] for wait in waits.values()} == {*threads}
    names = {threads[tid]["name"]: wait["name"] for tid, wait in waits.items()}
    assert names["pays"].startswith("Bank$Ledger@0x")
    assert names["writes"].startswith("Bank$Account@0x")
    # Behind the monitor, as in a thread dump of the virtual machine.
    cross = f"Bank.cross (Program.java:{line_of(PROGRAM, 'System.out')})"
    assert all(cross in t["stack"] for t in threads.values())
    assert f" in {cross}" in finding["message"]


def test_locks_of_java_have_owners(ptt: Ptt, tmp_path: Path) -> None:
    answer = looked_at(ptt, tmp_path, LOCKS, 3)
    (finding,) = answer["findings"]
    assert finding["kind"] == "deadlock"
    threads = {t["name"]: t for t in answer["threads"] if t["name"] in NAMES}
    assert {*finding["threads"]} == {threads["pays"]["tid"], threads["writes"]["tid"]}
    waits = {name: thread["waits_for"] for name, thread in threads.items()}
    package = "java.util.concurrent"
    for name, lock, owner in (
        ("pays", "locks.ReentrantReadWriteLock$NonfairSync", threads["writes"]["tid"]),
        ("writes", "locks.ReentrantLock$NonfairSync", threads["pays"]["tid"]),
    ):
        assert waits[name]["kind"] == "lock"
        assert waits[name]["name"].startswith(f"{package}.{lock}@0x")
        assert waits[name]["owner_tid"] == owner
        cross = threads[name]["stack"].index(
            f"Locks.cross (Program.java:{line_of(LOCKS, 'second.lock()')})"
        )
        assert threads[name]["stack"][cross - 1].startswith(f"{package}.locks.")
    # A semaphore has no owner.
    assert waits["waits"]["kind"] == "park"
    assert waits["waits"]["name"].startswith(f"{package}.Semaphore$NonfairSync@0x")
    assert waits["waits"]["owner_tid"] is None


def test_initializers_and_joins_have_owners(ptt: Ptt, tmp_path: Path) -> None:
    answer = looked_at(ptt, tmp_path, INITIALIZERS, 3)
    (finding,) = answer["findings"]
    assert finding["kind"] == "deadlock"
    threads = {t["name"]: t for t in answer["threads"] if t["name"] in NAMES}
    tids = {name: thread["tid"] for name, thread in threads.items()}
    assert {*finding["threads"]} == {tids["pays"], tids["writes"]}
    waits = {name: thread["waits_for"] for name, thread in threads.items()}
    assert {name: (wait["kind"], wait["owner_tid"]) for name, wait in waits.items()} == {
        "pays": ("static", tids["writes"]), "writes": ("static", tids["pays"]),
        "waits": ("join", tids["writes"]),
    }  # fmt: skip
    assert (waits["pays"]["name"], waits["writes"]["name"]) == ("Classes$Right", "Classes$Left")


@pytest.mark.parametrize("option", ["UseSerialGC", "UseZGC", "UseCompactObjectHeaders"])
def test_owners_are_found_on_lock_stacks(ptt: Ptt, tmp_path: Path, option: str) -> None:
    """A monitor does not name an owner that locked the object before the monitor was made."""
    java = lightweight()
    if not java:
        pytest.skip("no Java with lightweight locking is installed")
    if option != "UseSerialGC" and not ALL:
        pytest.skip("PTT_TESTS=all runs it with other collectors and headers")
    wrapper = tmp_path / "java"
    wrapper.write_text(f'#!/bin/sh\nexec {java} -XX:+{option} "$@"\n', "utf-8")
    wrapper.chmod(0o755)
    answer = looked_at(ptt, tmp_path, LIGHTWEIGHT, 4, java=str(wrapper), findings=2)
    threads = {t["name"]: t for t in answer["threads"] if t["name"] in NAMES}
    tids = {name: thread["tid"] for name, thread in threads.items()}
    waits = {name: thread["waits_for"] for name, thread in threads.items()}
    assert {name: (wait["kind"], wait["owner_tid"]) for name, wait in waits.items()} == {
        "pays": ("monitor", tids["writes"]), "writes": ("monitor", tids["pays"]),
        "lends": ("lock", tids["owes"]), "owes": ("lock", tids["lends"]),
    }  # fmt: skip
    assert [finding["kind"] for finding in answer["findings"]] == ["deadlock", "deadlock"]
    for name, function, statement in (
        ("pays", "enter", "System.out"), ("owes", "take", "second.lock()"),
    ):  # fmt: skip
        line = line_of(LIGHTWEIGHT, statement)
        assert f"Light.{function} (Program.java:{line})" in threads[name]["stack"]
    assert "java.lang.Object@0x" in waits["pays"]["name"]
    assert any("virtual threads" in item["why"] for item in answer["uncovered"])
