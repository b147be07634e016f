import json
from pathlib import Path

import pytest

from ingest.parse import parse_bytes
from tests.ingest.html_pages import PAGES, Page
from tests.ingest.parsing import read


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_content_is_kept_and_what_stands_around_it_is_not(page: Page):
    encoding = "gb18030" if 'charset="gbk"' in page.html or "charset=gb2312" in page.html else "utf-8"
    document = read(page.html.encode(encoding), "page.html")
    missing = [text for text in page.wanted if text not in document.text]
    extra = [text for text in page.around if text in document.text]
    assert (missing, extra) == ([], [])
    assert "main_content_not_found" not in [w["code"] for w in document.warnings]


def test_dates_author_and_language_are_read():
    pages = {
        page.name: parse_bytes(page.html.encode(), "page.html")
        for page in PAGES
        if "gb" not in page.html[:200]
    }
    assert pages["notice_zh"].properties["published"] == "2024-03-05T10:20:00"
    assert pages["notice_zh"].properties["author"] == "办公室"
    assert pages["news_en"].properties == {
        "published": "2024-02-11T07:30:00+00:00",
        "author": "Ines Marlow",
        "language": "en",
    }
    assert pages["blog_zh"].properties["published"] == "2022-10-03"
    assert pages["news_zh"].properties["description"] == "城东大桥主跨合龙。"
    assert pages["news_zh"].properties["author"] == "林远山"
    assert pages["news_zh"].title == "城东跨河大桥今日合龙"


@pytest.mark.parametrize("kind", ["BlogPosting", "DiscussionForumPosting"])
def test_comments_are_content_only_where_the_page_is_a_discussion(kind: str):
    replies = "".join(
        f'<div class="comment" id="comment-{n}"><p>Reply {n}: mine lost a third in frost.</p></div>'
        for n in range(4)
    )
    page = f"""<html><head><script type="application/ld+json">{{"@type": "{kind}"}}</script></head><body>
    <article><h1>Range in winter</h1><p>My new bicycle goes seventy kilometres in summer and half of that now
    that it freezes. Is the battery broken, or is that how it should be?</p></article>
    <div id="comments">{replies}</div></body></html>"""
    text = read(page.encode(), "page.html").text
    assert "half of that now that it freezes" in text
    assert ("Reply 3" in text) == (kind == "DiscussionForumPosting")


def test_a_shop_page_loses_its_menus_and_keeps_its_table(shared_data: Path):
    page = shared_data / "cases" / "D16" / "page_chrome.html"
    document = read(page.read_bytes(), page.name)
    assert "自签收之日起十四天内可申请换货" in document.text
    assert "品类 | 期限\n小家电 | 十四天\n图书 | 七天" in document.text
    assert not any(
        word in document.text for word in ("热销榜", "猜你喜欢", "Cookie", "不要索引我", "登录", "客服热线")
    )
    assert not document.warnings


def test_main_text_of_published_pages_is_found_with_little_else(shared_data: Path):
    folder = shared_data / "data" / "html_trafilatura"
    wanted = unwanted = found = 0
    for line in (folder / "segments.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        text = " ".join(read((folder / "pages" / case["file"]).read_bytes(), case["file"]).text.split())
        found += sum(" ".join(segment.split()) in text for segment in case["with"])
        wanted += len(case["with"])
        unwanted += sum(" ".join(segment.split()) in text for segment in case["without"])
    assert 2 * found / (wanted + found + unwanted) >= 0.95
