"""All tables. Rows stay inside `repository.py` files and `core/jobs.py`; callers get values.

Every row that a person can own carries its tenant.
"""

from core.models.answers import ClaimRow, EnginePlanRow, EvidenceRow, QueryRow
from core.models.base import Base
from core.models.documents import CollectionRow, DocumentRow, DocumentVersionRow, PolicyRow, ReprocessRow
from core.models.entities import EntityAliasRow, EntityEventRow, EntityRow, MentionRow
from core.models.index import BuildRow, IndexLogRow, TierRow
from core.models.near_duplicates import NearDuplicateRow, SignatureBandRow, SignatureRow
from core.models.passages import PassageRow, PassageTokensRow, PassageVectorRow
from core.models.placement import (
    CursorRow,
    DocumentPlacementRow,
    MoveRow,
    PlacementPolicyRow,
    QuestionVectorRow,
    RecallSampleRow,
)
from core.models.profiles import ProfileUseRow, RetrievalProfileRow
from core.models.tenants import ApiKeyRow, AuditRow, TenantRow
from core.models.work import JobRow, LeaseRow

__all__ = [
    "ApiKeyRow",
    "AuditRow",
    "Base",
    "BuildRow",
    "ClaimRow",
    "CollectionRow",
    "CursorRow",
    "DocumentPlacementRow",
    "DocumentRow",
    "DocumentVersionRow",
    "EnginePlanRow",
    "EntityAliasRow",
    "EntityEventRow",
    "EntityRow",
    "EvidenceRow",
    "IndexLogRow",
    "JobRow",
    "LeaseRow",
    "MentionRow",
    "MoveRow",
    "NearDuplicateRow",
    "PassageRow",
    "PassageTokensRow",
    "PassageVectorRow",
    "PlacementPolicyRow",
    "PolicyRow",
    "ProfileUseRow",
    "QueryRow",
    "QuestionVectorRow",
    "RecallSampleRow",
    "ReprocessRow",
    "RetrievalProfileRow",
    "SignatureBandRow",
    "SignatureRow",
    "TenantRow",
    "TierRow",
]
