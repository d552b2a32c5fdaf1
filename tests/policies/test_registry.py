"""Policies by name, and the mistakes one can make when naming them."""

import pytest

from rheostat.model.errors import UserError
from rheostat.policies.ds2 import Ds2
from rheostat.policies.e2df import E2df
from rheostat.policies.registry import available, build, parameters, split_top
from rheostat.policies.static import Static


def test_a_name_alone_gives_the_papers_parameters() -> None:
    assert build("ds2") == Ds2()
    assert build(" static ( ) ") == Static()


def test_parameters_are_read_by_their_types() -> None:
    policy = build("e2df(C_r=3, S_s_out=0.5)")
    assert policy == E2df(C_r=3, S_s_out=0.5)
    assert build("autoscale(printed_equation=TRUE)") == build("autoscale(printed_equation=true)")
    assert build("static(provision=min)") == Static(provision="min")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("elysum", "unknown policy 'elysum'; did you mean 'elysium'?"),
        ("zebra", "unknown policy 'zebra'; known are autoscale, ds2"),
        ("", "cannot read policy ''; write it as name or name(parameter=value,...)"),
        ("ds2(restart_time=5", "cannot read policy"),
        ("ds2(restart_tme=5)", "policy 'ds2' has no parameter 'restart_tme'; did you mean 'restart_time'?"),
        ("ds2(restart_time)", "policy 'ds2' has no parameter 'restart_time'"),
        ("ds2(restart_time=soon)", "policy 'ds2': restart_time must be a number, not 'soon'"),
        ("ds2(restart_time=inf)", "policy 'ds2': restart_time must be finite"),
        ("ds2(restart_time=nan)", "policy 'ds2': restart_time must be finite"),
        ("ds2(restart_time=1,restart_time=2)", "policy 'ds2': restart_time is given twice"),
        ("ds2(restart_time=-1)", "policy 'ds2': catch_up_duration must be positive"),
        ("e2df(C_r=2.5)", "policy 'e2df': C_r must be a whole number, not '2.5'"),
        ("elysium(proactive=yes)", "policy 'elysium': proactive must be true or false, not 'yes'"),
        ("static(period_seconds=0)", "policy 'static': period_seconds must be positive"),
        ("multilevel(info=x)", "policy 'multilevel' has no parameter 'info'"),
        ("multilevel(schedule=sinus)", "sinus"),
        ("multilevel(map=/nowhere.json)", "/nowhere.json"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_known_word(spec: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        build(spec)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_list_of_policies_splits_only_outside_of_parentheses() -> None:
    assert split_top("static,ds2(a=1,b=2),e2df") == ["static", "ds2(a=1,b=2)", "e2df"]
    assert split_top("ds2(schedule=f(1,2),x=3),static") == ["ds2(schedule=f(1,2),x=3)", "static"]
    assert split_top("") == [""]


def test_every_installed_policy_lists_its_parameters_and_builds_from_them() -> None:
    for name, kind in available().items():
        stated = {key: value for key, value in parameters(kind).items() if "," not in str(value)}
        spec = ",".join(f"{key}={value}" for key, value in stated.items())
        assert build(f"{name}({spec})") == kind()
        assert kind.info.name == name
