import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from core.errors import DocumentRejected
from core.settings import IngestSettings
from ingest.parse import ocr
from ingest.parse.progress import PagesRead
from ingest.sandbox import Allowance, ParseSandbox
from tests.ingest.parsing import SAMPLES, docx, paragraph, pdf
from tests.ingest.pictures import encoded, written


@pytest.fixture
def sandbox():
    box = ParseSandbox(IngestSettings())
    yield box
    box.close()


def test_documents_are_read_in_one_warm_process(sandbox):
    first = sandbox.parse(SAMPLES / "kestrel-k7-manual.pdf", "kestrel-k7-manual.pdf")
    started = time.monotonic()
    second = sandbox.parse(SAMPLES / "talus-sensor-network.md", "talus-sensor-network.md")
    assert time.monotonic() - started < 1
    assert first.pages == 2
    assert second.media_type == "text/markdown"


def test_a_rejection_keeps_its_reason_and_the_process_goes_on(sandbox, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(DocumentRejected) as error:
        sandbox.parse(bad, "bad.pdf")
    assert error.value.code == "corrupt"
    assert sandbox.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks


def test_a_document_that_takes_too_long_is_killed_and_the_next_one_is_read(tmp_path):
    slow = tmp_path / "pipe"
    os.mkfifo(slow)  # reading it waits for a writer that never comes
    box = ParseSandbox(IngestSettings(parse_timeout_s=1))
    try:
        started = time.monotonic()
        with pytest.raises(DocumentRejected) as error:
            box.parse(slow, "slow.txt")
        assert error.value.code == "timeout"
        assert time.monotonic() - started < 5
        assert box.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks
    finally:
        box.close()


def test_a_document_that_needs_too_much_memory_is_refused(tmp_path):
    big = tmp_path / "big.docx"
    big.write_bytes(docx(paragraph("x") * 1_200_000))
    box = ParseSandbox(
        IngestSettings(parse_memory_bytes=96 << 20, max_inflation_ratio=100_000, parse_timeout_s=60)
    )
    try:
        with pytest.raises(DocumentRejected) as error:
            box.parse(big, "big.docx")
        assert error.value.code == "too_big"
    finally:
        box.close()


def test_a_crash_of_the_parser_is_that_documents_fault(sandbox, tmp_path):
    (tmp_path / "gone.txt").write_text("x")
    sandbox.parse(tmp_path / "gone.txt", "gone.txt")
    child = sandbox._child
    child.kill()
    child.wait()
    assert sandbox.parse(tmp_path / "gone.txt", "gone.txt").blocks  # a new process takes over


def test_a_parser_that_dies_is_reported_and_replaced(sandbox, tmp_path):
    slow = tmp_path / "pipe"
    os.mkfifo(slow)
    sandbox.parse(SAMPLES / "baihe-cold-chain.md", "a.md")
    for signal_number, reason in ((signal.SIGSEGV, "corrupt"), (signal.SIGKILL, "too_big")):
        killer = threading.Timer(0.5, os.kill, (sandbox._child.pid, signal_number))
        killer.start()
        with pytest.raises(DocumentRejected) as error:
            sandbox.parse(slow, "slow.txt")
        assert error.value.code == reason
        assert sandbox.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks


def test_a_reading_that_nobody_wants_any_more_ends_at_once(sandbox, tmp_path):
    slow = tmp_path / "pipe"
    os.mkfifo(slow)

    class Stop(Exception):
        pass

    def watch(_pages):
        raise Stop

    started = time.monotonic()
    with pytest.raises(Stop):
        sandbox.parse(slow, "slow.txt", watch=watch)
    assert time.monotonic() - started < 4
    assert sandbox.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks


def test_pages_are_told_while_a_long_document_is_read(sandbox, tmp_path, monkeypatch):
    monkeypatch.setattr("ingest.sandbox._WATCH_S", 0.1)
    line = "The pumps of hall seven run at six hundred and twenty turns. "
    many = [[(60, 60 + 12 * n, f"{n} {line}") for n in range(60)]] * 400
    (tmp_path / "long.pdf").write_bytes(pdf(*many, size=9))
    seen = []
    document = sandbox.parse(tmp_path / "long.pdf", "long.pdf", watch=seen.append)
    assert document.pages == 400
    told = [p.done for p in seen if p is not None]
    assert told == sorted(told)
    assert told
    assert 0 < told[-1] <= 400
    assert {p.total for p in seen if p is not None} == {400}


def test_each_recognised_page_has_its_own_time_and_all_else_shares_one():
    settings = IngestSettings(parse_timeout_s=10, ocr_page_timeout_s=5, ocr_max_pages=3)
    time_left = Allowance(settings, 0.0)
    now = 0.0
    for page in range(3):
        time_left.told(PagesRead(page, 9, recognising=True), now)
        now += 4
        time_left.told(PagesRead(page + 1, 9), now)
        now += 1
    time_left.check(now + 6.9)  # 15 s have passed, 3 of them without recognition
    with pytest.raises(DocumentRejected, match="10 s"):
        time_left.check(now + 7.1)
    late = Allowance(settings, 0.0)
    late.told(PagesRead(4, 9, recognising=True), 1.0)
    with pytest.raises(DocumentRejected, match="page 5") as error:
        late.check(6.5)
    assert error.value.code == "timeout"


def test_pages_past_the_cap_of_recognition_bring_no_more_time():
    settings = IngestSettings(parse_timeout_s=10, ocr_page_timeout_s=50, ocr_max_pages=1)
    time_left = Allowance(settings, 0.0)
    time_left.told(PagesRead(0, 9, recognising=True), 0.0)
    time_left.told(PagesRead(1, 9, recognising=True), 40.0)
    with pytest.raises(DocumentRejected, match="10 s"):
        time_left.check(51.0)


@pytest.mark.skipif(not ocr.available(), reason="the extra `ocr` is not installed")
def test_recognition_keeps_the_memory_cap(tmp_path):
    scan = tmp_path / "scan.png"
    scan.write_bytes(encoded(written("Fifty barrels of tar", paper=(3000, 4000))))
    box = ParseSandbox(IngestSettings(parse_memory_bytes=160 << 20))
    try:
        with pytest.raises(DocumentRejected) as error:
            box.parse(scan, "scan.png")
        assert error.value.code == "too_big"
        assert box.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks
    finally:
        box.close()


def test_the_child_ends_with_its_parent():
    code = (
        "import sys, pathlib; from ingest.sandbox import parse_in_sandbox, _shared;"
        "parse_in_sandbox(pathlib.Path(sys.argv[1]), 'a.md'); print(_shared._child.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLES / "baihe-cold-chain.md")],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(done.stdout)
    for _ in range(50):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.1)
    pytest.fail("the parser process outlived its parent")


def test_a_child_in_the_middle_of_a_document_ends_with_its_killed_parent(tmp_path):
    slow = tmp_path / "pipe"
    os.mkfifo(slow)
    code = (
        "import sys, pathlib, threading; from ingest.sandbox import parse_in_sandbox, _shared;"
        "threading.Timer(1.5, lambda: print(_shared._child.pid, flush=True)).start();"
        "parse_in_sandbox(pathlib.Path(sys.argv[1]), 'a.md')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(slow)], stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    for _ in range(60):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.1)
    pytest.fail("the parser process outlived its parent")
