"""Retrieval profiles as rows: versions, what is in force, the way back, whose they are. On both databases."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core.db import Database
from core.errors import Conflict, InvalidInput, NotFound
from core.models import CollectionRow
from core.settings import get_settings
from core.types import Role, Scope
from retrieval import profiles
from retrieval.profile import BUILT_IN, ProfileInForce, built_in
from retrieval.profiles import StoredProfile
from tests.retrieval.rows import add_collection, add_tenant

BODY = built_in(get_settings().retrieval).model_dump(mode="json")


class Bench:
    """A tenant with two collections, and another tenant."""

    def __init__(self, db: Database) -> None:
        self.db = db
        with db.write() as session:
            self.tenant, self.one = add_tenant(session, "t")
            self.two = add_collection(session, self.tenant, "two")
            self.foreign, self.theirs = add_tenant(session, "f")
        self.operator = Scope(self.tenant, None, "key_op", Role.OPERATOR)

    def add(
        self, collection: str | None = None, figures: Mapping[str, Any] | None = None, **changes: Any
    ) -> StoredProfile:
        with self.db.write() as session:
            return profiles.add_profile(
                session, self.operator, body={**BODY, **changes}, figures=figures, collection=collection
            )

    def apply(self, profile: StoredProfile, *, force: bool = False) -> str:
        with self.db.write() as session:
            return profiles.apply_profile(session, self.operator, profile_id=profile.id, force=force).id

    def back(self, collection: str | None = None) -> str:
        with self.db.write() as session:
            return profiles.roll_back_profile(session, self.operator, collection=collection).id

    def of(self, *collections: str, tenant: str = "") -> ProfileInForce:
        with self.db.read() as session:
            settings = get_settings().retrieval
            return profiles.profile_of(session, tenant or self.tenant, collections, settings)


@pytest.fixture
def bench(database: Database) -> Bench:
    return Bench(database)


def test_a_stored_profile_changes_nothing_until_it_is_applied(bench: Bench) -> None:
    stored = bench.add(rerank_k=7)
    assert bench.of(bench.one).id == BUILT_IN
    assert bench.apply(stored) == stored.id
    assert (bench.of(bench.one).id, bench.of(bench.one).profile.rerank_k) == (stored.id, 7)
    assert bench.of(bench.theirs, tenant=bench.foreign).id == BUILT_IN


def test_a_collections_own_profile_comes_before_its_tenants(bench: Bench) -> None:
    whole, own = bench.add(), bench.add("two")
    bench.apply(whole)
    bench.apply(own)
    assert (whole.version, own.version) == (1, 1)
    assert bench.of(bench.two).id == own.id
    assert bench.of(bench.one).id == whole.id
    assert bench.of(bench.one, bench.two).id == whole.id  # one ranking has one scale


def test_rollback_returns_step_by_step_and_applying_again_goes_on_from_there(bench: Bench) -> None:
    first, second, third = bench.add(), bench.add(), bench.add()
    assert [first.version, second.version, third.version] == [1, 2, 3]
    for profile in (first, second):
        bench.apply(profile)
    assert bench.back() == first.id
    bench.apply(third)
    assert [bench.back(), bench.back()] == [first.id, BUILT_IN]
    assert bench.of(bench.one).id == BUILT_IN
    with pytest.raises(Conflict, match="nothing to roll back"):
        bench.back()


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({"base": BUILT_IN, "held_out": {"difference": -0.002}}, "worse"),
        ({"base": "rpf_other", "held_out": {"difference": 0.01}}, "tune again"),
    ],
)
def test_a_profile_that_its_figures_speak_against_needs_force(
    bench: Bench, figures: Mapping[str, Any], why: str
) -> None:
    stored = bench.add(figures=figures)
    with pytest.raises(Conflict, match=why):
        bench.apply(stored)
    assert bench.of(bench.one).id == BUILT_IN
    assert bench.apply(stored, force=True) == stored.id


def test_a_better_one_than_the_present_is_applied(bench: Bench) -> None:
    first = bench.add()
    bench.apply(first)
    own = bench.add("two", figures={"base": first.id, "held_out": {"difference": 0.0}})
    assert bench.apply(own) == own.id  # compared with the tenant's, which the collection followed until now


def test_the_list_tells_which_is_in_force(bench: Bench) -> None:
    first, second = bench.add(), bench.add()
    bench.apply(first)
    with bench.db.read() as session:
        listed = profiles.list_profiles(session, bench.operator)
        one = profiles.get_profile(session, bench.operator, profile_id=first.id)
    assert [(p.id, p.in_force) for p in listed] == [(second.id, False), (first.id, True)]
    assert one.in_force
    assert one.body == BODY


@pytest.mark.parametrize(
    "changes", [{"rerank_k": 0}, {"unknown": 1}, {"en": {"dense": 1.0, "lexical": 1.0}}, {"entity": 99}]
)
def test_a_body_out_of_bounds_is_refused_by_name(bench: Bench, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"profile\."):
        bench.add(**changes)


def test_others_see_no_profile_of_a_tenant_or_of_a_collection_that_is_not_theirs(bench: Bench) -> None:
    whole, own = bench.add(), bench.add("two")
    stranger = Scope(bench.foreign, None, "key_s", Role.ADMIN)
    narrow = Scope(bench.tenant, (bench.one,), "key_n", Role.OPERATOR)
    with bench.db.read() as session:
        assert profiles.list_profiles(session, stranger) == []
        assert profiles.list_profiles(session, narrow) == []
        for scope in (stranger, narrow):
            for profile in (whole, own):
                with pytest.raises(NotFound):
                    profiles.get_profile(session, scope, profile_id=profile.id)
        with pytest.raises(NotFound):
            profiles.roll_back_profile(session, narrow)
        with pytest.raises(NotFound):
            profiles.add_profile(session, stranger, body=BODY, collection="two")


def test_a_purged_collection_takes_its_profiles_along(bench: Bench) -> None:
    own = bench.add("two")
    bench.apply(own)
    with bench.db.write() as session:
        session.delete(session.get_one(CollectionRow, bench.two))
    with bench.db.read() as session, pytest.raises(NotFound):
        profiles.get_profile(session, bench.operator, profile_id=own.id)


@pytest.mark.parametrize("collection", [None, "two"])
def test_profiles_added_at_once_are_versions_one_after_the_other(
    bench: Bench, collection: str | None
) -> None:
    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(lambda _: bench.add(collection), range(12)))
    assert sorted(profile.version for profile in added) == list(range(1, 13))
