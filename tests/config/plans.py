"""A plan of small settings for tests, and a changed copy of the settings of the project."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from checkouts import configuration
from heads.config.plan import Plan
from heads.config.settings import merged

URL, LEARNT = "https://example.org/gold.conllu", "https://example.org/learn.conllu.gz"
LINKS = "https://example.org/dev.links"
SHA = "0" * 63 + "1"
TEXT = {
    "kind": "files",
    "source": "de",
    "target": "en",
    "folder": "texts",
    "train": [{"source": "a.de", "target": "a.en"}],
    "dev": [{"source": "b.de", "target": "b.en"}],
    "test": [{"sacrebleu": "wmt14"}],
    "cleaning": {"max_words": 60, "max_length_ratio": 4.0},
}
OTHER = [{"source": "o.de", "target": "o.en"}]
CORPORA: dict[str, Any] = {
    "plain": TEXT,
    "held": {**TEXT, "hold_out": {"roles": 5}, "parser_trees": "learn.conllu"},
    "rich": {
        **TEXT,
        "trees": {"url": URL, "sha256": SHA},
        "alignment": {"dev": {"links": {"url": LINKS}, "target": "cut.en"}, "test": "test.links"},
        "parser_trees": {"url": LEARNT},
        "out_of_domain": OTHER,
    },
    "written": {**TEXT, "source": "en", "trees": {"grammar": 7}},
}
NOTHING = {
    "seeds": [1],
    "lambdas": {"enc_self": [], "all": []},
    "budgets": {"enc_self": [], "all": []},
    "selection": {"methods": [], "budgets": [], "draws": 2, "fine_tuned": {"methods": [], "budgets": []}},
    "scratch_scopes": [],
    "scratch_lambdas": {},
    "gates_from_scratch_scopes": [],
    "trained_on_scopes": [],
}
GOLD, OWN, BOTH = {"trees": ["gold"]}, {"trees": ["own"]}, {"trees": ["stanza", "gold"]}
ALL = {"trees": ["own", "gold", "stanza"]}
EXPERIMENTS = {
    "bare": {"corpus": "plain", "roles": GOLD},
    "held": {"corpus": "held", "roles": {"trees": ["gold", "own"]}},
    "full": {"corpus": "rich", "roles": ALL},
    "gold": {"corpus": "rich", "roles": GOLD},
    "given": {"corpus": "plain", "roles": OWN, "parser": {"model": "stanza"}},
    "told": {"corpus": "written", "roles": GOLD},
}


def plan(sweep: Mapping[str, Any] = MappingProxyType({}), **experiments: Mapping[str, Any]) -> Plan:
    """A plan of the experiment `one` on the grammar, with this sweep, and of other experiments on corpora in files."""
    changes = {
        "run": ["one", *experiments],
        "corpora": CORPORA,
        "experiments": {
            "one": {"corpus": "demo", "roles": BOTH, "sweep": merged(NOTHING, sweep)},
            **{name: {"sweep": NOTHING, **said} for name, said in experiments.items()},
        },
    }
    return Plan(merged(configuration(), changes))


def below(folder: str, *ends: str) -> list[str]:
    return [f"{folder}/{end}" for end in ends]


def changed(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The configuration with one key of the experiment `demo` set."""
    inner = config["experiments"]["demo"]
    *folders, key = path.split(".")
    for folder in folders:
        inner = inner.setdefault(folder, {})
    inner[key] = value
    return config
