"""README of an exported model: what the model is, where it comes from, and how to translate with it."""

import json
from collections.abc import Mapping
from typing import Any

from heads.base.names import ATTENTION_LABELS, FIDELITY, REFERENCES
from heads.interop.formats import MODEL_TYPES
from heads.model.encoder import Encoder
from heads.model.shape import ModelShape
from heads.text.vocabulary import ADDED
from heads.translation.model_folder import DESCRIBED, EARLY_STOPPING, PREFIX_SUBWORDS, PRETRAINED

Facts = Mapping[str, Any]
SEARCH = (4, 0.6)
"""Beam size and length penalty for a model that was never scored."""


def searched_with(score: Facts | None, about: Facts | None) -> tuple[int, float]:
    """Beam size and length penalty that a model was scored with, else its authors' own, else the defaults."""
    if score is None:
        return (about["num_beams"], about["length_penalty"]) if about else SEARCH
    return score["beam"], score["length_penalty"]


def page(model: Encoder, facts: Facts, score: Facts | None, use: str, about: Facts | None) -> str:
    """README of an exported model, as Markdown.

    use: its usage section. about: facts about the third-party model that it was made from, if any.
    """
    parameters = sum(value.numel() for value in model.parameters())
    return f"""# {facts["experiment"]}/{facts["run"]}

A Transformer that writes texts, with {parameters:,} parameters.

## Attention heads left

{head_table(model.shape)}

Layers are numbered from 0. All other heads are pruned.

## Score

{_score_text(score)}
{_origin_text(about)}
## Use

{use}
Text is UTF-8, one sentence per line. Nothing else from the experiment is needed, and no file here is a pickle.
"""


def use_of(form: str, origin: Facts, score: Facts | None, difference: float | None, about: Facts | None) -> str:
    """Usage section of an exported model's README, as Markdown: for our own command or for another program."""
    changed = ", with changes that were not committed" if origin["changed_since_commit"] else ""
    versions = ", ".join(f"{name} {origin[name]}" for name in ("python", "torch", "sentencepiece"))
    code = f"the code that trained the model, commit `{origin['commit']}`{changed}, with {versions}"
    if form == "folder":
        known = "" if score or about else " --beam {} --length-penalty {}".format(*SEARCH)
        return f"""    heads translate FOLDER{known} < source.txt > outputs.txt

FOLDER is this folder; its `model.json` lists the remaining heads. To install the command, run `pip install .` in
{code}."""
    beam, alpha = searched_with(score, about)
    theirs, origins = score is None and bool(about), about or {}
    ends = str(origins.get(EARLY_STOPPING, False)).lower()
    if form == "huggingface" and "model_type" in origins:
        form = "fairseq"
    described = origins.get(DESCRIBED) or origins.get("model_type") == "bart"
    before = origins["prefix"] if PREFIX_SUBWORDS in origins else ""
    added = CUT.format(added=origins[ADDED]) if origins.get(ADDED) else ""
    if form == "ctranslate2" and described:
        form = "described"
    how = USES[form].format(
        beam=beam,
        alpha=alpha,
        ours="as ours" if theirs else f"whereas ours were divided by ((5 + length) / 6) ** {alpha}",
        search=f" --length-offset 0 --early-stopping {ends}" if theirs else "",
        languages=LANGUAGES.format(**origins) if origins.get("source_language") else "",
        first=f"{json.dumps(begins, ensure_ascii=False)} + " if (begins := _prefix_of(origins)) else "",
        lines=json.dumps([f"{before}A sentence.", f"{before}Another one."], ensure_ascii=False),
        last=f" + {json.dumps(origins['suffix'])}" if origins.get("suffix") else "",
        forced=FORCED.format(**origins) if origins.get("target_prefix") else "",
        library="tokenizers" if described else "sentencepiece",
        defined=added,
        cut="cut(line)" if added else "source.encode(line, out_type=str)",
    )
    return f"""{how}
Written by {code}. At that time, no log-probability of a subword differed by more than {difference:.1e} nats from that
of the model in that code. `heads.tsv` lists the remaining heads, and `origin.json` says how the model was made."""


def _prefix_of(about: Facts) -> list[str]:
    """The subwords that each source begins with."""
    alone = [about["prefix"]] if about.get("prefix") else []
    found: list[str] = about.get(PREFIX_SUBWORDS, alone)
    return found


LANGUAGES = ', src_lang="{source_language}", tgt_lang="{target_language}"'
FORCED = ', target_prefix=[["{target_prefix}"]] * len(subwords)'
CUT = """import re


def cut(line):  # at subwords that were added to the vocabulary
    found, end = [], 0
    for one in re.finditer({added!r}, line):
        found += [*source.encode(line[end : one.start()], out_type=str), one[one.lastindex]]
        end = one.end()
    return [*found, *source.encode(line[end:], out_type=str)]


"""

USES = {
    "onnx": """    pip install onnxruntime {library} numpy
    python translate.py --beam {beam} --length-penalty {alpha}{search} < source.txt > outputs.txt

`encoder.onnx` takes subword ids ending with EOS, `step.onnx` the newest subword of each hypothesis and the outputs of
the encoder and of earlier steps; `translate.py` shows how.""",
    "ctranslate2": """    pip install ctranslate2 sentencepiece

```python
import ctranslate2, sentencepiece

source, target = (sentencepiece.SentencePieceProcessor(model_file=f"{{side}}.model") for side in ("source", "target"))
translator = ctranslate2.Translator(".")
{defined}subwords = [{first}{cut}{last} for line in ["A sentence.", "Another one."]]
for result in translator.translate_batch(subwords, beam_size={beam}, disable_unk=True{forced}):
    print(target.decode(result.hypotheses[0]))
```

CTranslate2 divides scores by length ** length_penalty, {ours}.""",
    "described": """    pip install ctranslate2 tokenizers

```python
import ctranslate2, tokenizers

source, target = (tokenizers.Tokenizer.from_file(f"{{side}}.model") for side in ("source", "target"))
translator = ctranslate2.Translator(".")
lines = source.encode_batch(["A sentence.", "Another one."])
subwords = [{first}[source.id_to_token(number) for number in line.ids]{last} for line in lines]
for result in translator.translate_batch(subwords, beam_size={beam}, disable_unk=True{forced}):
    print(target.decode([target.token_to_id(subword) for subword in result.hypotheses[0]]))
```

CTranslate2 divides scores by length ** length_penalty, {ours}.""",
    "huggingface": """    pip install transformers sentencepiece torch

```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = (kind.from_pretrained(".") for kind in (MarianTokenizer, MarianMTModel))
batch = tokenizer(["A sentence.", "Another one."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True, use_source_tokenizer=False))
```

Pruned heads are zeros, as every layer in Marian has the same number: the model is no smaller and no faster.
transformers divides scores by length ** length_penalty, {ours}; the beam size is {beam}.""",
    "fairseq": """    pip install transformers sentencepiece torch

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("."{languages})
model = AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer({lines}, return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

Ids and tokeniser are those that the model came with. Pruned heads are zeros, as every layer in transformers has the
same number: the model is no smaller and no faster. transformers divides scores by length ** length_penalty, {ours};
the beam size is {beam}.""",
    "marian": """The files have the names that the model came with, so that the same programs read this folder: Firefox,
translateLocally, Bergamot, Marian. Pruned heads are zero rows of the output projection, as every layer in Marian has
the same number of heads: the model is no smaller and no faster.""",
    "npz": """\
`model.npz` has plain float32 numbers under Marian's names, for `numpy.load` or Marian itself. Pruned heads
are zero rows of the output projection: the model is no smaller and no faster.""",
}
"""Usage texts by format; `described` is CTranslate2's where `tokenizers` cuts texts, `fairseq` is of all but Marian."""

ALIGNMENT_USE = """

`alignment_heads` in `config.json` lists the cross-attention heads that align words, best first, as [layer, head] in the
numbering of this model, from 0. `translate_batch(..., return_attention=True)` returns the mean attention of those in
the best one's layer: one row per target subword, one column per source subword.
"""

NAMELESS_USE = """

It is without the rows of the original's matrices that have no subword, which CTranslate2 could write: probabilities are
those among all others, in this comparison as well.
"""


def head_table(shape: ModelShape) -> str:
    """Number of remaining heads in each layer, as a Markdown table."""
    deepest = max(shape.layers(kind) for kind in ATTENTION_LABELS)
    rows = [["attention", *map(str, range(deepest)), "all"]]
    rows.append(["---"] * len(rows[0]))
    for attention, label in ATTENTION_LABELS.items():
        if not shape.layers(attention):
            continue
        left = [len(layer) for layer in shape.live_heads[attention]]
        lacking = [""] * (deepest - len(left))
        rows.append([label, *map(str, left), *lacking, f"{sum(left)} of {shape.original_heads * len(left)}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _origin_text(about: Facts | None) -> str:
    if about is None:
        return ""
    licence = f"under the licence {about['license']}" if about["license"] else "whose page names no licence"
    prefix = f" Each source sentence begins with `{about['prefix']}`." if about["prefix"] else ""
    prefix += f" Each source sentence ends with `{' '.join(about['suffix'])}`." if about.get("suffix") else ""
    prefix += f" Each translation begins with `{about['target_prefix']}`." if about.get("target_prefix") else ""
    kind = MODEL_TYPES[about.get("model_type", "marian")]
    return f"""
## Origin

Made from the {kind} model {about["name"]}, {licence}; its original files are in `{PRETRAINED}/`.{prefix}
Its authors search with a beam of {about["num_beams"]} and divide scores by length ** {about["length_penalty"]}, and so
does `heads translate`; experiments divide by a power of ((5 + length) / 6) instead. Unknown subwords are never
generated.
"""


def _score_text(score: Facts | None) -> str:
    if score is None:
        return "It was not scored."
    against = score.get("against", REFERENCES)
    name = "BLEU" if against == REFERENCES else FIDELITY
    written = "" if against == REFERENCES else f"Its targets were written by the {against}, not by people.\n"
    return (
        f"{name} {score['bleu']:.2f} on {score['sentences']} sentences of the {score['split']} set, with a beam of "
        f"{score['beam']} and length penalty {score['length_penalty']}.\n{written}sacrebleu: `{score['signature']}`"
    )
