"""What an order gets before it runs."""

from dataclasses import replace
from pathlib import Path

from rheostat.policies.registry import build
from rheostat.run.order import Order, with_secret


def test_a_run_on_the_embedded_cluster_gets_a_secret_unless_the_user_decided_otherwise() -> None:
    order = Order("app", Path("app.py"), build("static"), "static", Path("run"))
    drawn = [with_secret(order).settings for _ in range(2)]
    assert [settings["spark.authenticate"] for settings in drawn] == ["true", "true"]
    assert len({settings["spark.authenticate.secret"] for settings in drawn}) == 2
    mine = replace(order, settings={"spark.authenticate.secret": "mine"})
    assert with_secret(mine).settings["spark.authenticate.secret"] == "mine"
    for other in (
        replace(order, master="spark://a:1"),
        replace(order, settings={"spark.authenticate": "false"}),
    ):
        assert with_secret(other) == other
