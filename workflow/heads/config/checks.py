"""Check that the settings of a resolved experiment fit together. Imported by the Snakefile, so kept light."""

from collections.abc import Collection, Mapping

from heads.base.files import UserError
from heads.base.methods import least_of
from heads.base.names import FEEDFORWARDS, KINDS_OF, TRANSLATION, UNIT_SCOPES
from heads.base.targets import Target, groups_of
from heads.config.experiment import ChoiceSettings, Experiment, SweepSettings
from heads.config.messages import nearest
from heads.config.sweep import in_numbers, is_share
from heads.config.trainings import BaselineSettings, TrainingSettings

FOLDERS = (
    *("bench", "corpora", "distilled", "downloads", "figures", "log", "models", "tables"),
    *("explore.html", "report.html", "snakemake.txt"),
)
"""What results/ has besides experiments, so that no experiment may have such a name."""


def check_together(name: str, experiment: Experiment, corpora: Collection[str]) -> None:
    """Raise UserError if settings of a resolved experiment contradict each other. corpora: the names of all."""
    where, model, baseline = f"experiments.{name}", experiment.model, experiment.baseline
    if name in FOLDERS:
        raise UserError(f"{where} would lie in results/{name}, which has another use: give it another name.")
    if (corpus := experiment.corpus) not in corpora:
        raise UserError(f"{where}.corpus is {corpus!r}, which is not under corpora.{nearest(corpus, corpora)}")
    if model.width % model.heads:
        raise UserError(
            f"{where}.model.width {model.width} does not divide into {model.heads} heads: "
            "make width a multiple of heads."
        )
    if model.width % 2:
        raise UserError(f"{where}.model.width {model.width} is odd: positions need an even width.")
    _check_import(where, baseline)
    training, by_default = experiment.training, TrainingSettings.model_fields["learning_rate"].default
    if training.learning_rate_scale and training.learning_rate != by_default:
        raise UserError(
            f"{where}.training has both learning_rate {training.learning_rate:.12g} and learning_rate_scale "
            f"{training.learning_rate_scale:.12g}: set the latter to 0, or take the former out."
        )
    length = baseline.fine_tuning_updates or baseline.updates
    if baseline.checkpoint_updates and baseline.minutes:
        raise UserError(
            f"{where}.baseline.checkpoint_updates names updates, and baseline.minutes leaves open how many there are: "
            "drop one."
        )
    late = [update for update in baseline.checkpoint_updates if update > length]
    if late:
        raise UserError(
            f"{where}.baseline.checkpoint_updates has {late[0]}, but the training ends before that: take it out."
        )
    if experiment.maps.min_words > experiment.maps.max_words:
        raise UserError(f"{where}.maps.min_words is above max_words: swap them.")
    if max(experiment.speed.batch_sizes) > experiment.speed.sentences:
        raise UserError(f"{where}.speed.batch_sizes has sizes above speed.sentences: take them out.")
    _check_causal(where, experiment)
    _check_scratch(where, experiment.sweep)


def _check_causal(where: str, experiment: Experiment) -> None:
    """Raise UserError if heads are chosen by causal gates that are not fitted, or for models that have none."""
    chosen = experiment.sweep.selection
    if "causal" not in (*chosen.methods, *chosen.fine_tuned.methods):
        return
    named = f"{where}.sweep.selection names the method causal"
    if experiment.task != TRANSLATION:
        raise UserError(f"{named}, but models that classify have no causal gates: take causal out.")
    if not experiment.causal.updates:
        raise UserError(f"{named}, but causal.updates is 0: set it, or take causal out.")


def _check_scratch(where: str, sweep: SweepSettings) -> None:
    """Raise UserError if a lambda whose heads are to be trained from scratch is not swept in the same scope."""
    for scope in sweep.scratch_scopes:
        if missing := set(sweep.scratch_lambdas.get(scope, ())) - set(sweep.lambdas.get(scope, ())):
            raise UserError(
                f"{where}.sweep.scratch_lambdas.{scope} has {min(missing).lam:g}, which is not in "
                f"sweep.lambdas.{scope}: sweep it as well, or name others, [] for none."
            )


def kinds_of(experiment: Experiment) -> tuple[str, ...]:
    """The kinds of attention that the models of a resolved experiment have."""
    return KINDS_OF[experiment.task]


def _check_import(where: str, baseline: BaselineSettings) -> None:
    """Raise UserError if an imported model has settings of models trained here, or the other way round."""
    for key in ("fine_tuning_updates", "decoder", "labels", "prefix", "source_language", "target_language"):
        if getattr(baseline, key) and not baseline.pretrained:
            raise UserError(f"{where}.baseline.{key} needs baseline.pretrained: name a model there, or take it out.")
    if baseline.minutes and baseline.pretrained:
        raise UserError(f"{where}.baseline.minutes is for a model trained here: give fine_tuning_updates in its place.")
    if baseline.decoder and not baseline.fine_tuning_updates:
        raise UserError(
            f"{where}.baseline.decoder makes new weights, which are untrained: say under fine_tuning_updates for how "
            "long to train them."
        )
    if baseline.checkpoint_updates and baseline.pretrained and not baseline.fine_tuning_updates:
        raise UserError(
            f"{where}.baseline.checkpoint_updates needs a training, and a pretrained model has none here: empty it, or "
            "say how long to fine-tune the model under fine_tuning_updates."
        )


def sized(
    where: str, experiment: Experiment, heads: Mapping[str, tuple[int, int]], units: int | None = None
) -> Experiment:
    """An experiment with numbers of heads in place of shares, checked against the heads of its models.

    heads: layers, and heads per layer, by kind of attention. units: in each feed-forward layer, if it is known. Raises
    UserError if more heads or units are asked for.
    """
    of_kinds = {kind: layers * each for kind, (layers, each) in heads.items()}
    in_layers = {(kind, layer): each for kind, (layers, each) in heads.items() for layer in range(layers)}
    asked = experiment.selection.at_least
    needed = sum(least_of(asked, in_layers, f"{where}.selection.at_least").values())
    experiment = in_numbers(experiment, of_kinds, needed)
    for scope, budgets in experiment.sweep.budgets.items():
        for budget in budgets:
            subject = f"{where}.sweep.budgets.{scope} has {budget}"
            if scope in UNIT_SCOPES and is_share(budget):
                raise UserError(f"{subject}, and shares are of heads: give a number of hidden units.")
            _check_numbers(subject, scope, Target.of_choice("gates", budget), heads, units)
    _check_selection(where, experiment.sweep.selection, sum(of_kinds.values()), needed)
    return experiment


def sized_by_settings(where: str, experiment: Experiment) -> Experiment:
    """Like `sized`, with the layers and heads of the section `model`."""
    model = experiment.model
    heads = dict.fromkeys(kinds_of(experiment), (model.layers, model.heads))
    return sized(where, experiment, heads, model.feedforward)


def check_target(experiment: Experiment, scope: str, target: Target) -> None:
    """Raise UserError if the path of a run asks for more heads than the models of its resolved experiment have.

    Without this check, the error would come only after the baseline is trained. For an imported model, which needs no
    training, the stage itself raises it.
    """
    if not experiment.baseline.pretrained:
        model = experiment.model
        heads = dict.fromkeys(kinds_of(experiment), (model.layers, model.heads))
        _check_numbers(f"A path has {target}", scope, target, heads, model.feedforward)


def _check_numbers(
    subject: str, scope: str, target: Target, heads: Mapping[str, tuple[int, int]], units: int | None
) -> None:
    """Raise UserError if the numbers of a target do not fit a scope, or exceed what a model has, as in `sized`."""
    stacks = {
        stack: heads[kind][0]
        for stack, kind in zip(FEEDFORWARDS, ("enc_self", "dec_enc"), strict=True)
        if kind in heads
    }
    groups = groups_of(target, scope, [*heads, *stacks], subject)
    for number, group in zip(target.budgets, groups, strict=True):
        if group[0] in stacks:
            what, there = "hidden units", None if units is None else sum(stacks[stack] * units for stack in group)
        else:
            what, there = "heads", sum(layers * each for layers, each in (heads[kind] for kind in group))
        if there is not None and number > there:
            raise UserError(
                f"{subject}, which asks for {number} of the {there} {what} of {' and '.join(group)}: lower it."
            )


def _check_selection(where: str, selection: ChoiceSettings, there: int, needed: int) -> None:
    """Raise UserError if a number of heads to keep exceeds all heads, or is below what optimal must keep."""
    for key, sweep in (("selection", selection), ("selection.fine_tuned", selection.fine_tuned)):
        for budget in map(int, sweep.budgets):
            subject = f"{where}.sweep.{key}.budgets has {budget}"
            if budget > there:
                raise UserError(f"{subject}, but the model has {there} heads: lower it.")
            if "optimal" in sweep.methods and budget < needed:
                raise UserError(
                    f"{subject}, but {where}.selection.at_least makes optimal keep {needed}: "
                    "raise the budget or keep less."
                )
