"""What the tests share: a cluster and a broker. Starting them costs seconds, nodes and topics little.

A folder with a conftest.py of its own shares an application: its tests run in one process of xdist. They find
it in any state and bring it to the one that they need, so any order will do.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from rheostat.services import kafka_broker
from rheostat.services.local_cluster import LocalCluster

from .jvm import quicken
from .scripted import daemons

# A shell that starts the tests in the background lets them ignore Ctrl-C, and nohup a closed terminal. So
# would all that they start, if it were not handled here.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
os.environ.pop("COLUMNS", None)  # xdist sets it, and a console that finds it keeps that width for good

settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

TESTS = Path(__file__).parent
ON_SPARK = (TESTS / "apps", TESTS / "chaos", TESTS / "spark")  # need a JVM, unless marked


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a JVM come first, as they take long."""
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        on_spark = any(item.path.is_relative_to(place) for place in ON_SPARK)
        if used & {"cluster", "broker"} or (on_spark and not item.get_closest_marker("no_jvm")):
            item.add_marker("jvm")
    items.sort(key=lambda item: item.get_closest_marker("jvm") is None)


class ByFolder(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Deals out files, and folders that share an application as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(nodeid.partition("::")[0])
        shares = path.parent.name != TESTS.name and (TESTS.parent / path.parent / "conftest.py").exists()
        return str(path.parent if shares else path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("jvm"):
        quicken()


@pytest.fixture(autouse=True)
def _java(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tests that are marked find a Java, so that `make check` stays quick."""
    if not request.node.get_closest_marker("jvm"):
        monkeypatch.setenv("JAVA_HOME", str(TESTS / "no-java-here"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as provider:
        yield provider


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_broker.Broker]:
    with kafka_broker.running(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture
def scripted_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masters and Workers that are scripts, for tests that need processes and no Spark."""
    daemons.install(tmp_path, monkeypatch)
