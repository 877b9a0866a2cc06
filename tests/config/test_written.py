"""Files generated from the settings models: config.yaml's defaults and the schema for editors match the models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from checkouts import configuration
from heads.base.files import UserError
from heads.config import written
from heads.config.settings import resolve

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "config.yaml").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "workflow/schemas/config.schema.json").read_text(encoding="utf-8"))
EDITOR = Draft202012Validator(SCHEMA)


def test_the_defaults_of_config_yaml_and_the_schema_are_as_the_models_make_them() -> None:
    stale = "make settings writes them anew"
    assert written.with_defaults(TEXT) == TEXT, stale
    assert written.SCHEMA.read_text(encoding="utf-8") == written.json_schema(), stale
    assert written.CONFIG == ROOT / "config.yaml"


def test_a_spoilt_default_and_a_lost_comment_are_put_right_and_nothing_else_is_touched() -> None:
    spoilt = TEXT.replace("    warmup_updates: 16000\n", "    warmup_updates: 4000\n").replace(
        "# [repo]; the paper says", "# the paper says"
    )
    assert spoilt != TEXT and written.with_defaults(spoilt) == TEXT
    mine = TEXT.replace("run: [demo] ", "run: [multi30k] ").replace("{beam: 4", "{beam: 5")
    assert written.with_defaults(mine) == mine
    with pytest.raises(ValueError, match="no line `defaults:`"):
        written.with_defaults("run: [demo]\n")


def test_config_yaml_names_its_schema_where_editors_look_for_it() -> None:
    assert TEXT.splitlines()[0] == "# yaml-language-server: $schema=workflow/schemas/config.schema.json"


def settings_in(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of every settings model, with its entry in the schema."""
    for name, model in {"": schema, **schema["$defs"]}.items():
        for key, said in model.get("properties", {}).items():
            yield f"{name}.{key}", said


def test_every_setting_tells_an_editor_what_it_is() -> None:
    said = dict(settings_in(SCHEMA))
    assert len(said) > 150
    assert not [key for key, rule in said.items() if not rule.get("description")]
    warmup = said["TrainingSettings.warmup_updates"]
    assert (warmup["type"], warmup["minimum"], warmup["default"]) == ("integer", 1, 16000)
    assert "OURS: fine-tuning resumes the schedule" in warmup["description"]
    models = [SCHEMA, *SCHEMA["$defs"].values()]
    assert all(model["additionalProperties"] is False for model in models if "properties" in model)


def test_an_editor_finds_nothing_wrong_with_the_settings_of_the_project() -> None:
    assert not list(EDITOR.iter_errors(configuration()))
    assert not list(
        EDITOR.iter_errors(
            yaml.safe_load((ROOT / "tests/workflow/tiny.yaml").read_text(encoding="utf-8"))
            | {key: yaml.safe_load(TEXT)[key] for key in ("defaults", "corpora")}
        )
    )


@pytest.mark.parametrize(
    ("corpus", "changes"),
    [
        ("demo", {"kind": "files"}),
        ("demo", {"source": "de"}),
        ("demo", {"limit": 5}),
        ("demo", {"pairs": {"train": 1, "dev": 1}}),
        ("multi30k", {"source": "en; rm"}),
        ("multi30k", {"seed": 1}),
        ("multi30k", {"limit": 0}),
        ("multi30k", {"limit": None}),
        ("multi30k", {"hold_out": {"train": 5}}),
        ("multi30k", {"train": [{"source": "a"}]}),
        ("multi30k", {"train": [{"columns": "a", "separator": "", "source_column": 0, "target_column": 1}]}),
        ("multi30k", {"out_of_domain": [{"sacrebleu": "wmt14", "source": "a", "target": "b"}]}),
        ("multi30k", {"cleaning": {"max_words": 3, "max_length_ratio": 0.5}}),
    ],
)
def test_faults_of_a_corpus_are_marked_by_an_editor_and_refused(corpus: str, changes: dict[str, Any]) -> None:
    config = configuration()
    config["corpora"][corpus] = {**config["corpora"][corpus], **changes}
    assert list(EDITOR.iter_errors(config))
    with pytest.raises(UserError, match=rf"^corpora\.{corpus}\b.*[.?]$"):
        resolve(config)
