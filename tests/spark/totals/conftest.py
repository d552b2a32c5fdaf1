"""One stateful application in micro-batch for all tests of this folder."""

from collections.abc import Iterator

import pytest

from rheostat.services.local_cluster import LocalCluster
from tests.spark.shared import TOTALS_KIND, Shared
from tests.spark.support import application, check_totals, observe_batches


@pytest.fixture(scope="package")
def totals(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """When all tests are through, no row was lost or doubled."""
    folder = tmp_path_factory.mktemp("totals")
    start = {"in": 1, "key": 2, "total": 2}
    arguments = ("200", "microbatch", "count", str(folder / "totals"))
    with application(cluster, folder, "totals", *arguments, parallelism=start, kind=TOTALS_KIND) as engine:
        observe_batches(engine, 2)
        yield Shared(engine, folder)
    assert check_totals(folder / "totals") > 0
