"""The settings of the project, as tests may change them."""

from typing import Any

import pytest
from plans import changed

from checkouts import configuration


@pytest.fixture
def config() -> dict[str, Any]:
    """A copy of the project's configuration that a test may change."""
    return configuration()


@pytest.fixture
def sized(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with a demo of 3 layers of 4 heads."""
    config["experiments"]["demo"]["model"] |= {"layers": 3, "heads": 4, "width": 64}
    changed(config, "sweep.budgets", {"enc_self": [1, 9], "all": [4, 27]})
    changed(config, "sweep.selection", {"budgets": [9, 27], "fine_tuned": {"methods": ["gates"], "budgets": [9]}})
    return config
