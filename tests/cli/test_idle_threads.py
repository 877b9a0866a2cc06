"""How long idle threads of torch look for work is told to it before it is loaded."""

import os
import subprocess
import sys

import pytest

from heads.__main__ import SPINS, main


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
    ids=["nothing", "a number", "a policy"],
)
def test_idle_threads_sleep_soon_unless_it_is_said_otherwise(
    given: dict[str, str], told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    monkeypatch.setattr(os, "environ", {**others, **given})
    with pytest.raises(SystemExit):
        main(["translate", "--help"])
    assert os.environ.get("GOMP_SPINCOUNT") == told


def test_torch_is_loaded_only_after_that() -> None:
    asked = "import sys, heads.__main__; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False, timeout=60).returncode == 0
