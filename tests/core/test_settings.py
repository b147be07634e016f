from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError
from core.settings import get_settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GEO_NO_SUCH", "1"),
        ("GEO_WORKER__NO_SUCH", "1"),
        ("GEO_WORKER__LEASE_TTL_S", "-1"),
        ("GEO_AUTH__BOOTSTRAP_KEY", ""),
        ("GEO_AUTH__BOOTSTRAP_KEY", "   "),
        ("GEO_AUTH__BOOTSTRAP_KEY", "short"),
    ],
)
def test_wrong_settings_are_refused_by_name(
    settings: object, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    with pytest.raises(ConfigError, match=name):
        get_settings()


@pytest.mark.parametrize("name", ["GEO_NO_SUCH", "GEO_API__NO_SUCH", "NO_SUCH"])
def test_unknown_line_of_the_env_file_is_named_as_it_stands_there(
    settings: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / ".env").write_text(f"{name}=1\n")
    monkeypatch.chdir(tmp_path)
    get_settings.cache_clear()
    with pytest.raises(ConfigError, match=f"^unknown setting {name};"):
        get_settings()


def test_secrets_do_not_print(settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEO_AUTH__BOOTSTRAP_KEY", "a-secret-of-twenty-chars")
    get_settings.cache_clear()
    assert "a-secret" not in repr(get_settings())
