"""Headers under which uploaded bytes are handed back without trusting them."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ._()+-]")

SOURCE_CSP = "sandbox; default-src 'none'"  # should a browser render it after all, nothing in it runs


def attachment(name: str) -> str:
    """A `Content-Disposition` for a display name: ASCII fallback and RFC 5987 form.

    Control and direction characters and quotes are removed, so a name can neither end the header nor
    disguise its ending.
    """
    shown = (
        "".join(c for c in name if unicodedata.category(c)[0] != "C" and c not in '"\\').strip() or "document"
    )
    ascii_form = unicodedata.normalize("NFKD", shown).encode("ascii", "ignore").decode()
    fallback = _NOT_PLAIN.sub("_", ascii_form).strip(" .") or "document"
    return f"attachment; filename=\"{fallback}\"; filename*=UTF-8''{quote(shown, safe='')}"
