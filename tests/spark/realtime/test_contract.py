"""The Spark engine in Real-Time Mode passes the Engine's contract."""

import pytest

from tests.contracts.engine import *  # noqa: F403
from tests.contracts.engine import Started
from tests.spark.contract import on_spark
from tests.spark.shared import Shared


@pytest.fixture
def started(shared: Shared) -> Started:
    return on_spark(shared)
