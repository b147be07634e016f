import json

import pytest

from core.errors import ConfigError
from ingest.measure import bench_parse
from ingest.measure_files import make_files
from ingest.parse import parse_bytes
from ingest.peers import peer_python


def test_made_files_are_a_journal_in_one_and_two_columns(tmp_path):
    make_files(tmp_path, pages=4)
    document = parse_bytes((tmp_path / "journal.pdf").read_bytes(), "journal.pdf")
    assert document.pages == 4
    assert not any("Journal of the station" in block.text for block in document.blocks)
    assert parse_bytes((tmp_path / "page0.html").read_bytes(), "page0.html").blocks


def test_a_folder_without_files_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--files"):
        bench_parse(tmp_path)


def test_an_environment_that_holds_the_peers_is_used_as_it_is(tmp_path):
    folder = tmp_path / "peers"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    (folder / "installed.txt").write_text("pypdf==6.19.0\n")
    assert peer_python(["pypdf==6.19.0"], folder) == folder / "bin" / "python"


@pytest.mark.soak  # it installs the peers
def test_the_benchmark_prints_ratios_of_both_formats(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notes: list[str] = []
    figures = json.loads(json.dumps(bench_parse(None, rounds=3, note=notes.append)))
    assert figures["pdf"]["ratio_pypdf"] > 0
    assert figures["pdf"]["text_only"]["ratio_pypdfium2"] > 0
    assert figures["html"]["ratio_trafilatura"] > 0
    assert {"machine", "versions", "seed", "sizes", "peer", "limit"} <= figures.keys()
    assert len(notes) == 6
