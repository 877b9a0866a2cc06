"""What `heads prune` is asked for: flags as requests, those that do not go together, and numbers that fit a model."""

from typing import Any

import pytest

from heads.base.files import UserError
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.model.shape import shape_of
from heads.one_model.request import PruningRequest, fitted, request_of
from model_folders import Experiment


@pytest.mark.parametrize(
    ("given", "kinds", "expected"),
    [
        ({"keep": "encoder=12"}, ("enc_self",), {"keep": 12, "scope": "enc_self", "minutes": 10.0}),
        ({"keep": "12", "minutes": 0}, ATTENTIONS, {"keep": 12, "minutes": 0.0}),
        ({"feedforward": "1024"}, FEEDFORWARDS, {"units": 1024, "units_percent": None}),
        ({"feedforward": "66.7%"}, FEEDFORWARDS, {"units": None, "units_percent": 66.7}),
        ({"faster": 1.3}, (*ATTENTIONS, *FEEDFORWARDS), {"faster": 1.3}),
        ({"faster": 1.3, "format": "ctranslate2"}, (*ATTENTIONS, *FEEDFORWARDS), {"format": "ctranslate2"}),
        ({"megabytes": 9.5, "keep": "encoder=12", "format": "marian"}, ("enc_self", *FEEDFORWARDS), {"megabytes": 9.5}),
        ({"keep": "12", "by": "gates"}, ATTENTIONS, {"updates": 400, "minutes": 0.0}),
        ({"vocabulary": True}, (), {"vocabulary": True, "minutes": 0.0, "keep": None}),
        ({"vocabulary": True, "minutes": 2}, (), {"minutes": 2}),
        ({"vocabulary": True, "keep": "12"}, ATTENTIONS, {"vocabulary": True, "minutes": 10}),
    ],
)
def test_flags_say_what_may_go_and_how_much(
    given: dict[str, Any], kinds: tuple[str, ...], expected: dict[str, Any]
) -> None:
    request = request_of(**given)
    assert request.kinds(heads_save=True) == kinds
    assert {name: getattr(request, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "The size is missing: give --vocabulary, --keep, --loss, --feedforward, --faster or --megabytes."),
        ({"vocabulary": True, "by": "gates"}, "--by gates needs heads or hidden units that go: give --keep"),
        ({"faster": 1.2, "loss": 0.5}, "--faster does not go with --loss: remove one of them."),
        ({"megabytes": 3, "by": "gates"}, "--megabytes does not go with --by gates: remove one of them."),
        ({"faster": 1.0}, "--faster 1 is not above 1: give a number such as 1.3."),
        ({"faster": float("nan")}, "--faster nan is not above 1"),
        ({"megabytes": 0}, "--megabytes 0 is not above 0: give the most that the weights may take."),
        ({"feedforward": "two"}, "--feedforward two is not a number of hidden units such as 1024 or 67%."),
        ({"feedforward": "-3"}, "--feedforward -3 is not a number of hidden units"),
        ({"feedforward": "67%", "uniform": True}, "--uniform is for heads that the surgeon takes: give --keep,"),
        ({"keep": "3", "uniform": True, "by": "gates"}, "--faster or --megabytes, without --by gates."),
        ({"keep": "3", "minutes": float("inf")}, "--minutes inf is not possible: give 0 or more"),
    ],
)
def test_what_cannot_be_asked_for_gets_a_sentence(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        request_of(**given)
    assert told in str(caught.value)


@pytest.mark.parametrize("given", [{"keep": "3"}, {"loss": 0.5}, {"faster": 1.2}, {"megabytes": 3.0}])
def test_layers_may_lose_equally_many_heads_whatever_says_how_many(given: dict[str, Any]) -> None:
    assert request_of(**given, uniform=True).uniform


@pytest.mark.parametrize(("percent", "units"), [(67.0, 5), (50.0, 4), (80.0, 6)])
def test_a_percentage_is_of_the_units_that_the_model_has(experiment: Experiment, percent: float, units: int) -> None:
    request = PruningRequest("all", None, None, 1, "surgeon", units_percent=percent)
    assert fitted(request, shape_of(experiment.baseline)).units == units


def test_where_heads_save_nothing_they_go_only_if_a_number_is_asked_for() -> None:
    for given, kinds in (
        ({"faster": 1.3}, FEEDFORWARDS),
        ({"megabytes": 9.5}, FEEDFORWARDS),
        ({"faster": 1.3, "keep": "encoder=12"}, ("enc_self", *FEEDFORWARDS)),
    ):
        assert request_of(**given).kinds(heads_save=False) == kinds


def test_a_number_that_the_model_cannot_have_is_refused(experiment: Experiment) -> None:
    for request in (request_of(feedforward="1%"), request_of(feedforward="100%"), request_of(keep="18")):
        with pytest.raises(UserError, match="is not possible"):
            fitted(request, shape_of(experiment.baseline))
