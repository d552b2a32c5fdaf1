"""One embedded cluster and one broker for all tests: starting them costs seconds, nodes and topics little."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rheostat.infrastructure import kafka
from rheostat.infrastructure.local import LocalProvider

from .jvm import quicken

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("COLUMNS", None)  # xdist sets it, and a console that finds it keeps that width for good

settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

TESTS = Path(__file__).parent
ON_SPARK = (TESTS / "apps", TESTS / "chaos", TESTS / "contracts" / "test_engine.py", TESTS / "spark")


# From the longest file on, so that the two processes of `make test` end together; all others come after them.
LONGEST_FIRST = (
    "contracts/test_engine.py",
    "spark/test_run_command.py",
    "chaos/test_chaos.py",
    "spark/test_graph.py",
    "spark/test_bad_days.py",
    "spark/test_trial.py",
    "spark/test_rescale.py",
    "spark/test_state_spread.py",
    "spark/test_microbatch.py",
    "chaos/test_healing.py",
    "apps/test_results.py",
    "spark/test_warm.py",
    "spark/test_security.py",
    "spark/test_realtime.py",
    "spark/test_kafka.py",
    "spark/test_demo.py",
    "spark/test_local_provider.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {TESTS / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _on_spark(item.path):
        quicken()


def _on_spark(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in ON_SPARK)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalProvider]:
    with LocalProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    with kafka.running(tmp_path_factory.mktemp("kafka")) as started:
        yield started
