"""Pictures of pages, drawn in a process of their own that ends when nobody looks any more."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from core.errors import DocumentRejected, NotFound, TransientError
from core.models import DocumentVersionRow
from core.settings import get_settings
from core.types import Scope
from ingest.parse.formats import IMAGES, PDF
from ingest.reading import document_source
from ingest.sandbox import ParseSandbox
from ingest.values import Source

if TYPE_CHECKING:
    from ingest.parse.page_picture import PagePicture

MAX_WIDTH = 2000
_DRAW_TIMEOUT_S = 20.0
_WAIT_S = 15.0  # for the pictures that others asked for first
_IDLE_S = 60.0


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page that can be drawn. `etag` changes with whatever would change the picture."""

    source: Source
    number: int
    width: int
    etag: str


def document_page(
    session: Session,
    scope: Scope,
    *,
    document_id: str,
    page: int,
    width: int = 1000,
    version: int | None = None,
) -> SourcePage:
    """A page of the given version, or of the served one, or of the newest if none is served.

    Raises:
        NotFound: unknown, not visible, being deleted, not read yet, without pages, or without this one.
    """
    source = document_source(session, scope, document_id=document_id, version=version)
    if source.media_type != PDF and source.media_type not in IMAGES:
        raise NotFound("Only PDF documents and pictures have pages to show.", document_id=document_id)
    stored = session.get_one(DocumentVersionRow, (document_id, source.version))
    if stored.pages is not None and page > stored.pages:
        raise NotFound(f"The document has {stored.pages} pages.", document_id=document_id)
    width = min(width, MAX_WIDTH)
    return SourcePage(source, page, width, f'"{stored.blob_hash[:24]}-{page}-{width}"')


class PagePainter:
    """Draws one page at a time in a warm process, which is ended after a pause."""

    def __init__(self, idle_s: float = _IDLE_S) -> None:
        self._idle_s = idle_s
        self._turn = threading.Lock()
        self._sandbox: ParseSandbox | None = None
        self._used = 0.0

    def draw(self, page: SourcePage) -> PagePicture:
        """Draw a page.

        Raises:
            NotFound: there is no such page, or it is damaged.
            DocumentRejected: drawing it takes too long or too much memory.
            TransientError: too many others wait.
        """
        if not self._turn.acquire(timeout=_WAIT_S):
            raise TransientError("Many pages are being drawn; try again.", retry_after_s=2)
        try:
            arguments = (str(page.source.path), page.source.media_type, page.number, page.width)
            return self._ready().run("draw_page", arguments)
        except DocumentRejected as error:
            if error.code == "no_picture":
                raise NotFound(error.detail, document_id=page.source.document_id) from error
            raise
        finally:
            self._used = time.monotonic()
            self._turn.release()

    @property
    def is_warm(self) -> bool:
        """Whether a process is kept for the next page."""
        return self._sandbox is not None

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._end()

    def _ready(self) -> ParseSandbox:
        if self._sandbox is None:
            settings = get_settings().ingest
            own = settings.model_copy(
                update={"parse_timeout_s": min(_DRAW_TIMEOUT_S, settings.parse_timeout_s)}
            )
            self._sandbox = ParseSandbox(own)
            threading.Thread(target=self._end_in_pause, name="page-painter", daemon=True).start()
        return self._sandbox

    def _end_in_pause(self) -> None:
        while True:
            time.sleep(self._idle_s / 4)
            with self._turn:
                if self._sandbox is None:
                    return
                if time.monotonic() - self._used >= self._idle_s:
                    self._end()
                    return

    def _end(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None  # only now: `is_warm` is read without the turn and must not lie


_shared = PagePainter()


def draw_page(page: SourcePage) -> PagePicture:
    """Draw with this process's painter; see `PagePainter.draw`. No session may be open meanwhile."""
    return _shared.draw(page)
