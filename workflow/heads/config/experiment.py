"""The models of one experiment and of the whole of config.yaml: which settings there are, and their defaults."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, GetPydanticSchema, PlainSerializer
from pydantic_core import core_schema

from heads.base.methods import METHOD_FILES
from heads.base.names import AUTO, CHOICE_SCOPE, CLASSIFICATION, GATED_SCOPES, SCOPES, TOKENISERS, TRANSLATION
from heads.base.targets import BY_GATES, Target
from heads.config.analyses import (
    AblationSettings,
    AlignmentHeadsSettings,
    CausalSettings,
    CheckpointsSettings,
    ConfidenceSettings,
    ImportanceSettings,
    LrpSettings,
    MapsSettings,
    MaskingCurveSettings,
    RolesSettings,
    SelectionSettings,
    SpeedSettings,
    SurgeonSettings,
    TranslateSettings,
)
from heads.config.corpora import Corpus
from heads.config.fields import (
    AsWritten,
    Closed,
    Count,
    CountOrZero,
    EachOnce,
    Integer,
    Name,
    Number,
    Text,
    meant,
    one_of,
    required,
    section_of,
    setting,
)
from heads.config.trainings import (
    BaselineSettings,
    BpeSettings,
    GatesSettings,
    ModelSettings,
    ParserSettings,
    ScratchSettings,
    SelectedSettings,
    TrainingSettings,
)

Scope = Annotated[str, one_of(*SCOPES)]
GatedScope = Annotated[str, one_of(*GATED_SCOPES)]
Seed = Annotated[Integer, Field(ge=0, le=2**31 - 1)]
Lambda = Annotated[
    Target,
    GetPydanticSchema(
        lambda _source, handler: core_schema.no_info_after_validator_function(
            Target.of_penalty, handler(Annotated[Number, Field(ge=0, le=1_000_000_000)])
        )
    ),
    PlainSerializer(lambda target: target.lam),
]
"""A number in settings; a target everywhere else."""
SHARE = "(100|[1-9][0-9]?([.][0-9]+)?|0[.][0-9]*[1-9][0-9]*)%"
"""Above 0 % and at most 100 %, with the sign, so that 1 is always one head and never all of them."""
# A number may be text too, since all values inside a mapping of Snakemake's --config are text.
Budget = Annotated[
    CountOrZero | Annotated[str, Field(pattern=f"^((0|[1-9][0-9]*)((-(0|[1-9][0-9]*)){{1,2}})?|{SHARE})$")],
    meant('a number of heads such as 12, a share of them such as 25%, or several numbers as text such as "4-6-8"'),
]
Budgets = Annotated[
    tuple[
        Annotated[
            Count | Annotated[str, Field(pattern=f"^([1-9][0-9]*|{SHARE})$")],
            meant("a number of heads such as 12, or a share of them such as 25%"),
        ],
        ...,
    ],
    EachOnce,
]
IMPORTANCE = ("example", "token", "batch", "signed")
OTHER_METHODS = ("ablation", "confidence", "lrp", "surgeon", "optimal", "random", "stratified", "reversed")
LAMBDAS = (0.0003, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02)


class FineTunedSettings(Closed):
    """Which choices of heads are also fine-tuned."""

    methods: Annotated[tuple[Annotated[str, one_of(*BY_GATES, *METHOD_FILES)], ...], EachOnce] = setting(
        (*BY_GATES, "example", "example_layer", "token", "batch", "signed", *OTHER_METHODS),
        "gates driven to a number of heads, dsp (see gates.subset), or as in sweep.selection",
    )
    budgets: Budgets = setting(("25%", "50%", "75%"), "heads to keep, of all, as above")


class ChoiceSettings(Closed):
    """Which methods of choosing heads are compared, and at which numbers of heads."""

    methods: Annotated[tuple[Annotated[str, one_of(*METHOD_FILES)], ...], EachOnce] = setting(
        (*(f"{form}{end}" for form in IMPORTANCE for end in ("", "_layer")), *OTHER_METHODS),
        "Importance of Michel et al. 2019 by sentence (example, as in the paper), token, batch or signed, each also "
        "divided by the norm of its layer; BLEU lost when masked alone; confidence; LRP by absolute shares of its "
        "first rule; causal gates; surgeon: heads that make up for others; optimal: most importance; random; "
        "stratified; reversed example_layer",
    )
    budgets: Budgets = setting(
        ("25%", "50%", "60%", "75%", "90%"),
        "OURS: heads to keep, such as 12 or a share, rounded; raised to what optimal must keep if that is compared",
    )
    draws: Count = setting(5, "of random, and of stratified: of each kind as many as example_layer")
    fine_tuned: FineTunedSettings = section_of(
        FineTunedSettings,
        "Heads also cut out and fine-tuned for as long as gates; gates and dsp first choose in a training of their own",
    )


class SweepSettings(Closed):
    """What is swept: seeds, lambdas, numbers of heads and methods of choosing them."""

    model_config = ConfigDict(validate_default=True)

    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), EachOnce] = setting((1,), "a whole set of models for each")
    lambdas: Mapping[GatedScope, tuple[Lambda, ...]] = setting(
        dict.fromkeys(SCOPES, LAMBDAS),
        "Nats per target token per head, or per as many weights of units (scopes feedforward and everything): loss = "
        "mean cross-entropy + lambda * sum of P(open). The released code averages over attention modules: its c is our "
        "c / 6 (encoder) or c / 18 (all), its placeholder 0.1 0.0167 or 0.0056. The paper gives none. The control, 0, "
        "is always trained.",
    )
    budgets: Mapping[GatedScope, tuple[Budget, ...]] = setting(
        {"all": ("25%", "50%", "75%")},
        'How many heads to keep: 12 of the scope, 25% of it (rounded, at least one), "4-6-8" of its kinds of attention '
        'or, in everything, "65-8192" of heads and units. Lambda is driven until so many are expected to be open; at '
        "the end exactly as many stay, the likeliest. OURS: the numbers of other methods.",
    )
    selection: ChoiceSettings = section_of(
        ChoiceSettings,
        "Methods of choosing heads, compared at equal numbers of heads. All are scored by masking, without any update.",
    )
    scratch_scopes: Annotated[tuple[Scope, ...], EachOnce] = setting(
        ("all",), "the paper retrains from scratch the heads that pruning all attention left (Table 2)"
    )
    scratch_lambdas: Mapping[Scope, tuple[Lambda, ...]] = setting(
        {}, "OURS: in a scope named here, only the heads that these left"
    )
    gates_from_scratch_scopes: Annotated[tuple[Scope, ...], EachOnce] = setting(
        (),
        "Scopes whose lambdas are also trained with gates and penalty from a fresh initialisation, for as long as "
        "scratch models: 0.2 to 0.6 BLEU worse in the authors' preliminary runs (footnote 8) [second-hand].",
    )
    trained_on_scopes: Annotated[tuple[Annotated[str, one_of(CHOICE_SCOPE)], ...], EachOnce] = setting(
        (),
        "Scopes where the baseline is also cut down to the heads that each lambda left, and fine-tuned (selected): the "
        "pruned side of Table 2 if fine-tuning with gates has not converged. Only all.",
    )


class Experiment(AsWritten):
    """All settings of an experiment, as `defaults` or as the changes of one experiment."""

    task: ClassVar[str] = TRANSLATION
    """What its models are trained for, which its corpus decides."""

    corpus: Text = setting("demo", "which of corpora")
    tokenize: Annotated[str, one_of(*TOKENISERS)] = setting(
        AUTO, "OURS: for BLEU, a tokeniser of sacrebleu; auto: by the references' script (13a, zh, char)"
    )
    bpe: BpeSettings = section_of(BpeSettings, "the vocabularies, byte-pair encoding")
    model: ModelSettings = section_of(ModelSettings, "Transformer-base [second-hand]")
    training: TrainingSettings = section_of(TrainingSettings, "shared by all trainings")
    baseline: BaselineSettings = section_of(BaselineSettings, "the unpruned model")
    gates: GatesSettings = section_of(GatesSettings, "the fine-tuning with gates, which starts from the baseline")
    scratch: ScratchSettings = section_of(ScratchSettings, "the heads that gates left, trained from scratch")
    selected: SelectedSettings = section_of(
        SelectedSettings, "OURS: the baseline cut down to chosen heads and fine-tuned"
    )
    translate: TranslateSettings = section_of(
        TranslateSettings,
        "OURS: without the beam_spread 3 of the released code [repo], which drops poor hypotheses",
    )
    confidence: ConfidenceSettings = section_of(ConfidenceSettings, "mean maximum attention weight of each head")
    lrp: LrpSettings = section_of(LrpSettings, "layer-wise relevance propagation")
    roles: RolesSettings = section_of(
        RolesSettings,
        "A head has a role if its accuracy reaches the threshold, as in the paper, and, OURS, if the interval "
        "supports it: the lower end of accuracy minus threshold is not below zero (the baseline is resampled with it). "
        "Both verdicts are written. Positional heads are measured on subwords, the paper's tokens, which decide, and "
        "also on words, for information.",
    )
    alignment_heads: AlignmentHeadsSettings = section_of(
        AlignmentHeadsSettings,
        "Alignment error rate (Och and Ney 2003) of cross-attention heads, if the corpus has a word alignment of dev: "
        "the grammar's own, or one given under alignment in the corpus",
    )
    maps: MapsSettings = section_of(MapsSettings, "sentences whose attention maps are kept")
    speed: SpeedSettings = section_of(SpeedSettings, "Michel et al., Table 4; one job times all models in turn")
    importance: ImportanceSettings = section_of(
        ImportanceSettings,
        "Michel et al., sec. 4.1; on dev, since the paper uses text that it does not score on [second-hand]",
    )
    surgeon: SurgeonSettings = section_of(
        SurgeonSettings,
        "OURS: removes heads in closed form; those that stay are refitted by least squares",
    )
    causal: CausalSettings = section_of(
        CausalSettings,
        "Causal head gating (Nam et al. 2025), on dev: which heads help, interfere or do neither",
    )
    ablation: AblationSettings = section_of(AblationSettings, "Michel et al., Tables 1, 2 and 5, Figs 1 and 2")
    masking_curve: MaskingCurveSettings = section_of(MaskingCurveSettings, "Michel et al., Figs 3 and 4")
    checkpoints: CheckpointsSettings = section_of(
        CheckpointsSettings, "Michel et al., Fig 5, at baseline.checkpoint_updates"
    )
    parser: ParserSettings = section_of(
        ParserSettings, "Stanza, offline; its scores on gold trees: snakemake results/tables/table_parser.tsv"
    )
    selection: SelectionSettings = section_of(
        SelectionSettings, "heads chosen by other means than gates; the methods are under sweep"
    )
    sweep: SweepSettings = section_of(SweepSettings, "what differs between the models of an experiment")


class ClassifyingExperiment(Experiment):
    """An experiment on a corpus with labels, whose models are encoders that classify."""

    task: ClassVar[str] = CLASSIFICATION


class Changes(Experiment):
    """One experiment of config.yaml: what differs from `defaults`, or from the experiment that `like` names."""

    like: Name | None = setting(None, "another experiment, whose changes apply unless this one overrides them")


class Config(Closed):
    """The whole of config.yaml, including any files laid over it."""

    run: Annotated[tuple[Text, ...], Field(min_length=1), EachOnce] = required(
        "experiments whose tables and figures the default target makes"
    )
    corpora: Mapping[Name, Corpus] = required("corpora by name")
    defaults: Experiment = required("settings of every experiment that does not change them: the paper's values")
    experiments: Mapping[Name, Changes | None] = required("experiments by name: what differs from defaults")
