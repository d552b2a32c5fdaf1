"""One `rheostat run` of an unchanged script, with secrets in its settings, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from rheostat.model.secrets import properties, write_private
from tests.spark.controllers import Controller, controller

from .state import SETTINGS


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    place = tmp_path_factory.mktemp("plain")
    conf = place / "spark.conf"
    write_private(conf, properties(SETTINGS))
    options = f"--nodes 1:2 --conf-file {conf}"
    with controller(place, "plain", str(place / "run"), "50", options=options) as run:
        yield run.start()


@pytest.fixture
def run(shared: Controller) -> Controller:
    """The run; a test that ended it left a journal to resume from."""
    assert shared.process is not None
    if shared.process.poll() is not None:
        shared.start("--resume")
    return shared
