"""How well each cross-attention head agrees with a word alignment of dev pairs."""

from pathlib import Path
from typing import Annotated

from heads.analysis.alignment_heads import alignment_heads, golds_of
from heads.analysis.attention_weights import attend_to_source
from heads.base.columns import ALIGNMENT_COLUMNS
from heads.base.files import write_tsv
from heads.cli._flags import Analysis, SourceBpe, SourceText, Table, TargetBpe, TargetText
from heads.config.analyses import AlignmentHeadsSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.pharaoh import aligned_pairs, lines_of
from heads.text.encoding import vocabulary_of
from heads.training.devices import label_of, pick


def run(
    given: Analysis,
    source_bpe: SourceBpe,
    source: SourceText,
    source_words: Annotated[Path, "the source text with spaces between the words that links count"],
    target_bpe: TargetBpe,
    target: TargetText,
    target_words: Annotated[Path, "the target text with spaces between the words that links count"],
    links: Annotated[Path, "word alignment in Pharaoh format, one line per pair"],
    out: Table,
) -> str:
    """Measure and write the table; report on standard error what is left out."""
    settings = section(AlignmentHeadsSettings, given.settings["alignment_heads"])
    texts = [lines_of(path) for path in (source, target)]
    words = [lines_of(path) for path in (source_words, target_words)]
    pairs = aligned_pairs(lines_of(links), texts, words)
    vocabularies = [vocabulary_of(path) for path in (source_bpe, target_bpe)]
    golds = golds_of(pairs, vocabularies, settings, str(links))
    device = pick(given.device, given.threads)
    model = load_folder(given.model).to(device)
    heads = [(layer, head) for _, layer, head in model.shape.heads(("dec_enc",))]
    attended = attend_to_source(model, [(gold.source, gold.target) for gold in golds], settings.batch_tokens)
    write_tsv(out, alignment_heads(attended, golds, heads, settings), ALIGNMENT_COLUMNS)
    return label_of(device)
