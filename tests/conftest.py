"""One embedded cluster for all Spark tests: a Master costs seconds, and its nodes come and go per test."""

from collections.abc import Iterator

import pytest

from rheostat.infrastructure.local import LocalProvider


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalProvider]:
    with LocalProvider() as provider:
        yield provider
