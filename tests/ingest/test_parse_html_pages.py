import pytest

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
    from ingest.parse import parse_bytes

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
