"""The door of this stage for the HTTP process: light, no model and no array library.

Every function takes `(session, scope, …)` and returns values. The caller's session is one transaction.
"""

from ingest.blobs import STALE_STAGING_S, BlobStore, BlobWriter, StagedBlob
from ingest.collections import (
    collection_id,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    patch_collection,
)
from ingest.documents import (
    delete_document,
    get_document,
    list_documents,
    new_version,
    patch_document,
    register_upload,
    reprocess,
)
from ingest.entities import (
    entity_events,
    entity_mentions,
    get_entity,
    merge_entities,
    patch_entity,
    search_entities,
    split_entity,
    undo_entity,
)
from ingest.entity_import import import_entities
from ingest.pictures import SourcePage, document_page, draw_page
from ingest.reading import (
    document_annotation,
    document_content,
    document_passages,
    document_source,
    locate,
)
from ingest.recipe import ParseChoices
from ingest.removal import erase_claims, erase_deleted_sources, mark_stale
from ingest.reprocessing import (
    Only,
    Reprocess,
    WalkStatus,
    cancel_reprocess,
    get_reprocess,
    list_reprocesses,
    start_reprocess,
)
from ingest.values import (
    Collection,
    Content,
    Document,
    Entity,
    EntityEvent,
    EntityImport,
    EntityMention,
    Page,
    PlacedPassage,
    RejectedRow,
    Source,
    Trust,
    Upload,
)
from ingest.writing import delete_unreferenced_blobs

__all__ = [
    "STALE_STAGING_S",
    "BlobStore",
    "BlobWriter",
    "Collection",
    "Content",
    "Document",
    "Entity",
    "EntityEvent",
    "EntityImport",
    "EntityMention",
    "Only",
    "Page",
    "ParseChoices",
    "PlacedPassage",
    "RejectedRow",
    "Reprocess",
    "Source",
    "SourcePage",
    "StagedBlob",
    "Trust",
    "Upload",
    "WalkStatus",
    "cancel_reprocess",
    "collection_id",
    "create_collection",
    "delete_collection",
    "delete_document",
    "delete_unreferenced_blobs",
    "document_annotation",
    "document_content",
    "document_page",
    "document_passages",
    "document_source",
    "draw_page",
    "entity_events",
    "entity_mentions",
    "erase_claims",
    "erase_deleted_sources",
    "get_collection",
    "get_document",
    "get_entity",
    "get_reprocess",
    "import_entities",
    "list_collections",
    "list_documents",
    "list_reprocesses",
    "locate",
    "mark_stale",
    "merge_entities",
    "new_version",
    "patch_collection",
    "patch_document",
    "patch_entity",
    "register_upload",
    "reprocess",
    "search_entities",
    "split_entity",
    "start_reprocess",
    "undo_entity",
]
