"""The doors, one file per resource."""

from api.routes import chat, collections, documents, entities, health, pages, queries, reprocesses, search
from api.routes.admin import audit, engine, jobs, keys, placement, profiles, recall, tiers

ROUTERS = tuple(
    module.router
    for module in (
        collections,
        documents,
        pages,
        reprocesses,
        search,
        queries,
        chat,
        entities,
        keys,
        audit,
        jobs,
        tiers,
        placement,
        profiles,
        recall,
        engine,
        health,
    )
)

# Other software calls these with parameters of its own: OpenAI's clients, probes.
ANY_PARAMETERS = (chat.router, health.router)
