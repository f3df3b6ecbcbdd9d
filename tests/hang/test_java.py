"""Java: its monitors, which the threads wait for in conditions of the virtual machine's own."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="looked at on x86-64"),
]

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

    public static void main(String[] arguments) throws Exception {
        Object account = new Account(), ledger = new Ledger();
        new Thread(() -> cross(account, ledger), "pays").start();
        new Thread(() -> cross(ledger, account), "writes").start();
        Thread.sleep(1000000);
    }
}
"""


def test_monitors_have_owners(ptt: Ptt, tmp_path: Path) -> None:
    source = tmp_path / "Bank.java"
    source.write_text(PROGRAM, encoding="utf-8")
    with running("java", source) as pid:
        until = time.monotonic() + 60
        found: dict[str, Any] = {"findings": []}
        # A thread that waits for a monitor looks again now and then, and is then not at rest.
        while not found["findings"] and time.monotonic() < until:
            found = json.loads(ptt("hang", "--format", "json", pid, status=None).stdout)
    (one,) = found["findings"]
    assert one["kind"] == "deadlock"
    threads = {t["tid"]: t for t in found["threads"] if t["name"] in {"pays", "writes"}}
    assert {*one["threads"]} == {*threads}
    waits = {tid: t["waits_for"] for tid, t in threads.items()}
    assert {wait["kind"] for wait in waits.values()} == {"monitor"}
    assert {wait["owner_tid"] for wait in waits.values()} == {*threads}
    names = {threads[tid]["name"]: wait["name"] for tid, wait in waits.items()}
    assert names["pays"].startswith("Bank$Ledger@0x")
    assert names["writes"].startswith("Bank$Account@0x")
