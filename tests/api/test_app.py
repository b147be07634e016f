from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jsonschema
from fastapi.testclient import TestClient

from api.app import create_app

HEAVY = (
    "torch",
    "openvino",
    "faiss",
    "vllm",
    "spacy",
    "sentence_transformers",
    "tantivy",
    "transformers",
    "numpy",
)


def test_http_process_loads_no_model_library() -> None:
    loaded = f"[m for m in {HEAVY} if m in sys.modules]"
    code = f"import sys; from api.app import create_app; create_app(); print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_openapi_describes_every_door_with_a_unique_name(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    names = [op["operationId"] for path in schema["paths"].values() for op in path.values()]
    assert len(names) == len(set(names)) > 40


def test_published_schema_is_valid_and_asks_for_a_key(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    jsonschema.Draft202012Validator.check_schema(schema["components"]["schemas"]["DocumentOut"])
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert bool(operation.get("security")) == (path not in ("/healthz", "/readyz"))
            assert "application/problem+json" in operation["responses"]["default"]["content"]
    used = {part for part in json.dumps(schema).split('"') if part.startswith("#/components/schemas/")}
    assert {ref.rsplit("/", 1)[1] for ref in used} <= schema["components"]["schemas"].keys()


def test_console_leaves_the_doors_alone(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    for path in ("/nothing", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/js/../../app.py"):
        assert client.get(path).status_code == 404
    assert client.post("/v1/nothing").json()["code"] == "not_found"
    assert client.put("/v1/search").headers["allow"] == "POST"


def test_metrics_of_several_processes_are_added_up(tmp_path: Path) -> None:
    count = "from core.metrics import REQUESTS; REQUESTS.labels('GET', '/x', '200').inc(2)"
    show = (
        "from api.metrics import render; from core.db import get_database; from migrations import run;"
        "db = get_database(); run.upgrade(db); print(render(db).decode())"
    )
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("GEO_")},
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        "GEO_DATA_DIR": str(tmp_path / "geo"),
    }
    run = partial(subprocess.run, check=True, capture_output=True, text=True, env=env)
    for _ in range(2):
        run([sys.executable, "-c", count])
    line = 'geo_http_requests_total{method="GET",path="/x",status="200"} 4.0'
    assert line in run([sys.executable, "-c", show]).stdout


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
