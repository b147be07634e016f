"""The doors of retrieval profiles."""

from __future__ import annotations

from fastapi.testclient import TestClient

from core.settings import RetrievalSettings
from retrieval.profile import built_in

URL = "/v1/admin/retrieval-profiles"
PROFILE = built_in(RetrievalSettings()).model_dump(mode="json")


def test_a_profile_is_stored_applied_and_taken_back(client: TestClient) -> None:
    collection = client.post("/v1/collections", json={"name": "shelf"}).json()["id"]
    stored = client.post(URL, json={"collection": "shelf", "profile": PROFILE}).json()
    assert (stored["version"], stored["collection_id"], stored["in_force"]) == (1, collection, False)
    assert client.post(f"{URL}/{stored['id']}/apply").json()["id"] == stored["id"]
    assert [p["in_force"] for p in client.get(URL).json()["items"]] == [True]
    assert client.post(f"{URL}/rollback", json={"collection": "shelf"}).json()["id"] == "built-in"
    assert client.get(f"{URL}/{stored['id']}").json()["in_force"] is False
    actions = [entry["action"] for entry in client.get("/v1/admin/audit").json()["items"]]
    assert {"profile.add", "profile.apply", "profile.rollback"} <= set(actions)


def test_a_worse_profile_is_a_conflict_and_force_applies_it(client: TestClient) -> None:
    figures = {"base": "built-in", "held_out": {"difference": -0.01}}
    stored = client.post(URL, json={"profile": PROFILE, "figures": figures}).json()
    refused = client.post(f"{URL}/{stored['id']}/apply")
    assert refused.status_code == 409
    assert "worse" in refused.json()["detail"]
    assert client.post(f"{URL}/{stored['id']}/apply", json={"force": True}).json()["forced"] is True


def test_what_is_no_profile_is_refused_by_name(client: TestClient) -> None:
    answer = client.post(URL, json={"profile": {**PROFILE, "rerank_k": 0}})
    assert answer.status_code == 422
    assert "profile.rerank_k" in answer.json()["detail"]
    assert client.post(f"{URL}/rollback").status_code == 409
    for held_out in ("worse", [0.1], {"difference": "much"}):
        answer = client.post(URL, json={"profile": PROFILE, "figures": {"held_out": held_out}})
        assert answer.status_code == 422
        assert "figures.held_out" in answer.json()["detail"]
