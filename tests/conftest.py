"""One embedded cluster and one broker for all tests: starting them costs seconds, nodes and topics little."""

import signal
from collections.abc import Iterator

import pytest

from rheostat.infrastructure import kafka
from rheostat.infrastructure.local import LocalProvider

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalProvider]:
    with LocalProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    with kafka.running(tmp_path_factory.mktemp("kafka")) as started:
        yield started
