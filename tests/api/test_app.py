from __future__ import annotations

import subprocess
import sys

from fastapi.testclient import TestClient

from api.app import create_app

HEAVY = ("torch", "faiss", "vllm", "spacy", "sentence_transformers", "tantivy", "transformers", "numpy")


def test_http_process_loads_no_model_library() -> None:
    loaded = f"[m for m in {HEAVY} if m in sys.modules]"
    code = f"import sys; from api.app import create_app; create_app(); print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_openapi_describes_every_door_with_a_unique_name(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    names = [op["operationId"] for path in schema["paths"].values() for op in path.values()]
    assert len(names) == len(set(names)) > 40


def test_every_response_carries_a_request_id_and_security_headers(client: TestClient) -> None:
    for path in ("/healthz", "/v1/collections", "/v1/nothing", "/nothing"):
        answer = client.get(path, headers={"X-Request-ID": "trace-1"})
        assert answer.headers["x-request-id"] == "trace-1"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_request_id_that_could_forge_a_log_line_is_replaced(client: TestClient) -> None:
    answer = client.get("/healthz", headers={"X-Request-ID": "a b=c"})
    assert answer.headers["x-request-id"].startswith("req_")


def test_problem_documents_name_the_request(client: TestClient) -> None:
    answer = client.get("/v1/documents/doc_unknown")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    assert {"type", "title", "status", "detail", "code"} <= body.keys()


def test_application_can_be_built_twice() -> None:
    assert create_app() is not create_app()
