from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from fastapi.testclient import TestClient

CONSOLE = Path(__file__).parents[2] / "api" / "console"
SCRIPTS = sorted(CONSOLE.rglob("*.js"))
_ENTRY = re.compile(r'^  "([\w.]+)": "((?:[^"\\]|\\.)*)",$', re.MULTILINE)


def dictionary(language: str) -> dict[str, str]:
    return dict(_ENTRY.findall((CONSOLE / "js" / f"strings-{language}.js").read_text()))


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page)
    yield from parser.found


def test_every_file_is_served_without_a_key_under_a_policy_that_runs_only_own_scripts(
    client: TestClient,
) -> None:
    del client.headers["Authorization"]
    for file in (p for p in CONSOLE.rglob("*") if p.is_file()):
        answer = client.get(f"/{file.relative_to(CONSOLE).as_posix()}")
        assert (answer.status_code, answer.content) == (200, file.read_bytes())
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        if file.suffix == ".js":
            assert "javascript" in answer.headers["content-type"]
    assert client.get("/").content == (CONSOLE / "index.html").read_bytes()


def test_page_holds_no_inline_script_or_style_and_loads_nothing_from_elsewhere() -> None:
    for tag, attributes in elements((CONSOLE / "index.html").read_text()):
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        address = attributes.get("src") or attributes.get("href") or ""
        assert "//" not in address
        assert tag != "script" or address


def test_scripts_have_no_way_to_make_markup_or_code_of_text() -> None:
    forbidden = re.compile(
        r"\.(innerHTML|outerHTML)\s*[+=]|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|"
        r"javascript:|https?://(?!www\.w3\.org)"
    )
    found = {p.name: forbidden.findall(p.read_text()) for p in SCRIPTS}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_both_languages_say_the_same_things() -> None:
    en, zh = dictionary("en"), dictionary("zh")
    assert len(en) > 150
    assert en.keys() == zh.keys()
    for key, words in en.items():
        assert set(re.findall(r"\{\w+\}", words)) == set(re.findall(r"\{\w+\}", zh[key])), key
    same = {key for key, words in en.items() if words == zh[key]}
    assert same == set(), "left untranslated"


def test_every_key_that_a_script_names_has_words() -> None:
    known = dictionary("en")
    for script in SCRIPTS:
        for key in re.findall(r'\bt\("([\w.]+)"', script.read_text()):
            assert key in known, f"{script.name}: {key}"
