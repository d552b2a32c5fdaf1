"""One embedded cluster for all Spark tests: a Master costs seconds, and its nodes come and go per test."""

import signal
from collections.abc import Iterator

import pytest

from rheostat.infrastructure.local import LocalProvider

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalProvider]:
    with LocalProvider() as provider:
        yield provider
