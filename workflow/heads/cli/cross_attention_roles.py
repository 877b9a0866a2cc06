"""Which target token's source heads look at: that of the one being written, the last or the next."""

from typing import Annotated

from heads.analysis.alignment_heads import golds_of, unlinked
from heads.analysis.cross_attention_roles import roles_of_cross_attention
from heads.base.columns import CROSS_ATTENTION_COLUMNS
from heads.base.files import UserError, write_tsv
from heads.cli._flags import Analysis, MaybePath, SourceBpe, SourceText, Table, TargetBpe, TargetText
from heads.config.analyses import AlignmentHeadsSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.pharaoh import aligned_pairs, lines_of
from heads.text.encoding import vocabulary_of
from heads.training.devices import label_of, pick


def run(
    *,
    given: Analysis,
    source_bpe: SourceBpe,
    source: SourceText,
    source_words: Annotated[MaybePath, "if there are links: the source text with spaces between words"] = None,
    target_bpe: TargetBpe,
    target: TargetText,
    target_words: Annotated[MaybePath, "if there are links: the target text with spaces between words"] = None,
    links: Annotated[MaybePath, "word alignment in Pharaoh format; none: by the model's own best aligner"] = None,
    out: Table,
) -> str:
    """Measure and write the table."""
    settings = section(AlignmentHeadsSettings, given.settings["alignment_heads"])
    vocabularies = [vocabulary_of(path) for path in (source_bpe, target_bpe)]
    texts = [lines_of(path) for path in (source, target)]
    if links and source_words and target_words:
        words = [lines_of(path) for path in (source_words, target_words)]
        golds = golds_of(aligned_pairs(lines_of(links), texts, words), vocabularies, settings, str(links))
    elif links:
        raise UserError(
            f"{links} counts words: give both texts with spaces between them as --source-words and --target-words."
        )
    else:
        golds = unlinked(texts, vocabularies, settings)
    device = pick(given.device, given.threads)
    model = load_folder(given.model).to(device)
    rows = roles_of_cross_attention(model, golds, settings, linked=bool(links))
    write_tsv(out, rows, CROSS_ATTENTION_COLUMNS)
    return label_of(device)
