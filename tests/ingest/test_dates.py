import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.parse.dates import iso_date


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2020", "2020"),
        ("2020-5", "2020-05"),
        ("2020-13", "2020"),
        ("2020-01-02", "2020-01-02"),
        ("2020/1/2", "2020-01-02"),
        ("2024年3月5日", "2024-03-05"),
        ("2005-5-25 9:51:45", "2005-05-25T09:51:45"),
        ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05+00:00"),
        (" 2020-01-02T03:04:05+08:00\n", "2020-01-02T03:04:05+08:00"),
        ("Mon, 04 Mar 2024 10:00:00 +0800", "2024-03-04T10:00:00+08:00"),
        ("4 Mar 2024 10:00:00 GMT", "2024-03-04T10:00:00+00:00"),
        ("2024-02-31", ""),
        ("last Tuesday", ""),
        ("", ""),
    ],
)
def test_dates_of_documents_become_iso(written, iso):
    assert iso_date(written) == iso


@given(st.text("0123456789-:/. TZ+年月日MonMar,", max_size=30))
def test_any_text_is_a_date_or_none(written):
    found = iso_date(written)
    assert found == iso_date(found)
