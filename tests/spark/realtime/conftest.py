"""One application in Real-Time Mode for all tests of this folder."""

from collections.abc import Iterator

import pytest

from rheostat.services.local_cluster import LocalCluster
from tests.spark.shared import Shared, chain


@pytest.fixture(scope="package")
def shared(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    yield from chain(cluster, tmp_path_factory.mktemp("chain"), "realtime")
