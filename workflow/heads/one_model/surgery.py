"""Prune one model in closed form on its own outputs for a text: heads go, and output maps are refitted, in one pass."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from heads.analysis.masking import evaluation_of
from heads.analysis.speed import MEGABYTE
from heads.base.files import UserError
from heads.base.names import ATTENTIONS, FEEDFORWARDS
from heads.base.provenance import made_by
from heads.config.analyses import AblationSettings
from heads.model.encoder import Encoder
from heads.model.folder import HEADS, WEIGHTS, save_folder
from heads.model.head_removal import write_heads
from heads.model.shape import Place
from heads.one_model.answered_text import FIRST_OF_DEV, FIRST_SENTENCES, AnsweredText
from heads.one_model.answering import GREEDY, UNITS
from heads.one_model.costs import Costs
from heads.one_model.measuring import UNTRAINED
from heads.one_model.request import PruningRequest, step_of, total_of_units
from heads.one_model.timed_models import NEAR, Timed, fast_enough, next_to_time
from heads.pruning.closed_form import BATCH_TOKENS, Surgeon, gram_matrices, output_maps, output_of, rungs_of, without
from heads.pruning.ladders import HeldOut, compared_on, ladders_below, ladders_of
from heads.pruning.rungs import Ladder, Limits, interpolated, picked

SUBWORDS_AN_INPUT, SUBWORDS = 20, 30_000
"""About how many source subwords are read for each input of the widest output map that is refitted; and at most."""
ASKED_SENTENCES = SCORED_SENTENCES = FIRST_SENTENCES // 2
"""The most held-out sentences on which cut down layers are compared, and on which the sizes shown are scored.

They are the last and the first of the same few, so that sizes are scored on others if there are enough.
"""
SHOWN = (0.875, 0.75, 0.625, 0.5)
"""Shares of heads and units for which it is shown what they cost."""
SEARCH = AblationSettings(sentences=0, beam=1, length_penalty=0.0, batch_tokens=GREEDY.batch_tokens)
BRIEFLY = SEARCH.model_copy(update={"sentences": SCORED_SENTENCES})
TIMED = 4
"""How many models are timed at most, until one is as fast as asked for."""


class Surgery:
    """One model, from which any number of heads of a scope, and of hidden units, can be taken."""

    def __init__(self, costs: Costs) -> None:
        """costs: of the model, the text and the request."""
        self.costs, self.report = costs, costs.texts.report
        self.whole, self.model, self.texts, self.device = costs.whole, costs.model, costs.texts, costs.device
        self.halfway: Mapping[Place, Ladder] | None = None

    @property
    def request(self) -> PruningRequest:
        """What is asked for."""
        return self.costs.request

    def smaller(self, heads: int, out: Path) -> None:
        """Write the model with so many heads, if any may go, and of the size asked for, into a folder.

        If the folder has a model, nothing is done. Raises UserError if there is no model of that size.
        """
        if (out / WEIGHTS).is_file():
            return
        model = self.as_fast_as_asked(heads)
        out.mkdir(parents=True, exist_ok=True)
        write_heads(out / HEADS, model.shape)
        save_folder(model, out, {**UNTRAINED, **self.whole.facts}, made_by())

    def as_fast_as_asked(self, heads: int) -> Encoder:
        """The model with so many heads and of the size asked for; if it is too slow when timed, a smaller one.

        If it is much faster than asked for, a larger one; what is kept is the largest that is fast enough.
        """
        asked, more, timed = self.request.faster, 1.0, list[Timed]()
        if not self.costs.kinds:
            return self.model
        if asked is None:
            return self.of_numbers(self.numbers(heads))
        for _ in range(TIMED):
            try:
                numbers = self.numbers(heads, more)
            except UserError as error:
                if not timed:
                    raise
                found = f"timed, a model is {timed[-1].speed:.2f} times as fast"
                raise UserError(
                    f"--faster {asked:g} was not reached: {found}, and none is much smaller: ask for less."
                ) from error
            if fast_enough(timed, asked) and any(numbers == one.numbers for one in timed):
                break
            model = self.of_numbers(numbers)
            speed, *_ = self.costs.speeds({"smaller": model})["smaller"]
            self.report(f"timed in {self.costs.timed_in}, it is {speed:.2f} times as fast as the whole model")
            timed.append(Timed(more, speed, numbers, model))
            if asked <= speed <= NEAR * asked:
                break
            more = next_to_time(timed, asked)
        return (fast_enough(timed, asked) or timed[-1]).model

    def numbers(self, heads: int, more: float = 1.0) -> dict[Place, int]:
        """How many heads or units each sub-layer keeps.

        heads: of the scope, if a number was asked for. more: by what factor more time is to be saved than asked for.
        Raises UserError if no sub-layers have that size together.
        """
        request, costs = self.request, self.costs
        full = {place: max(ladder) for place, ladder in self.rungs.items()}

        def all_but(cost: Callable[[Place], float], saved: float) -> Limits:
            """Limits that save so much of what everything costs."""
            return Limits(cost, 0.0, sum(number * cost(place) for place, number in full.items()) - saved)

        limits: list[Limits] = []
        if request.units is not None:
            limits.append(self.of_units(request.units))
        if request.megabytes is not None:
            limits.append(all_but(costs.bytes, costs.whole_bytes - request.megabytes * MEGABYTE))
        if request.faster is not None:
            limits.append(all_but(costs.time, more * (1 - costs.faster_already / request.faster)))
        number = heads if request.keeps_a_number else None
        found = self.near(number, limits)
        if found is None:
            raise UserError(self.request.too_much(*self.farthest(full)))
        if number is not None:
            limits.append(self.of_heads(sum(left for (kind, _), left in found.items() if kind in ATTENTIONS)))
        again = picked(self.rungs_halfway(limits), limits, self.together)
        return found if again in (None, found) else min((found, again), key=self.divergence)

    def rungs_halfway(self, limits: Sequence[Limits]) -> Mapping[Place, Ladder]:
        """As `rungs`, once half of what is to go has gone; what the first of all calls asks for says what that is.

        Losses of layers do not add up where much goes. What is found halfway cannot be trusted either: of layers that
        do without their cross-attention as long as others have theirs, each may seem to need none. Therefore `numbers`
        takes the better one of two choices.
        """
        if self.halfway is None:
            full = {place: max(ladder) for place, ladder in self.rungs.items()}
            whole = [sum(number * limit.cost(place) for place, number in full.items()) for limit in limits]
            half = [Limits(one.cost, 0.0, (one.most + most) / 2) for one, most in zip(limits, whole, strict=True)]
            numbers = picked(self.rungs, half, self.together)
            assert numbers is not None, "all that was asked for can be had"
            self.report("comparing it once more without half of what is to go")
            self.halfway = in_steps(self.surgeon, ladders_below(self.surgeon, self.held_out, rungs_of, numbers))
        return self.halfway

    def divergence(self, numbers: Mapping[Place, int]) -> float:
        """How far answers move if each sub-layer keeps so many heads or units."""
        return HeldOut(self.of_numbers(numbers), self.held_out.batches, self.held_out).divergence(None)

    def near(self, heads: int | None, limits: Sequence[Limits]) -> dict[Place, int] | None:
        """How many each sub-layer keeps within limits and, unless it is None, with so many heads; None: none can.

        If layers lose heads together, not every number can be left: the nearest one that can, but neither none nor all.
        """
        if heads is None:
            return picked(self.rungs, limits, self.together)
        spare, most = self.spare(ATTENTIONS), sum(self.full(ATTENTIONS)) - 1
        numbers = range(max(1, heads - spare), min(most, heads + spare) + 1)
        nearest = sorted(numbers, key=lambda number: (abs(number - heads), -number))
        found = (picked(self.rungs, [self.of_heads(number), *limits], self.together) for number in nearest)
        return next(filter(None, found), None)

    def of_heads(self, number: int) -> Limits:
        """Limits of exactly so many heads."""
        return Limits(lambda place: float(place[0] in ATTENTIONS), number, number)

    def of_units(self, average: int) -> Limits:
        """Limits of so many hidden units in an average layer, or of the next number that a format can have."""
        own = self.full(FEEDFORWARDS)
        total = total_of_units(own, average)
        most = total + self.spare(FEEDFORWARDS) * step_of(max(own))
        return Limits(lambda place: float(place[0] in FEEDFORWARDS), total, most)

    def spare(self, kinds: Collection[str]) -> int:
        """How many heads, or steps of units, more than asked for must be allowed, as some go together."""
        return max((len(group) - 1 for group in self.together if group[0][0] in kinds), default=0)

    def farthest(self, full: Mapping[Place, int]) -> tuple[float, float]:
        """How small in megabytes, and how many times as fast, the model gets if each sub-layer is cut to its least."""
        gone = {place: number - min(self.rungs[place]) for place, number in full.items()}
        bytes_gone = sum(number * self.costs.bytes(place) for place, number in gone.items())
        time_gone = (
            sum(number * self.costs.time(place) for place, number in gone.items()) if self.request.faster else 0.0
        )
        fast = self.costs.faster_already if self.request.faster else 1.0
        return (self.costs.whole_bytes - bytes_gone) / MEGABYTE, fast / max(1 - time_gone, 0.01)

    def of_numbers(self, numbers: Mapping[Place, int]) -> Encoder:
        """The model in which each sub-layer keeps so many heads or units."""
        return without(
            self.model, self.surgeon.maps, {place: self.surgeon.kept(place, n) for place, n in numbers.items()}
        )

    @cached_property
    def rungs(self) -> dict[Place, Ladder]:
        """What each layer loses with any number of heads, or of units in steps."""
        return in_steps(self.surgeon, self.ladders)

    @cached_property
    def together(self) -> list[list[Place]]:
        """Groups of sub-layers that keep equally many heads or units for the format, and have equally many now."""
        groups = [[place for place in self.rungs if place[0] in kinds] for kinds in self.costs.alike]
        return [group for group in groups if len({max(self.rungs[place]) for place in group}) == 1]

    def sizes(self) -> Iterator[str]:
        """A line for each of some sizes: what it takes, and what is lost by it before any training."""
        if self.whole is not self.costs.original:
            size, speed = self.costs.whole_bytes / MEGABYTE, self.costs.faster_already
            lost = self.lost({"": self.model})[""]
            yield f"all heads and units, fewer subwords: {size:.1f} MB, {speed:.2f} times as fast, {lost}"
        if not self.costs.kinds:
            return
        models = {str(share): self.of_numbers(numbers) for share in SHOWN if (numbers := self.of_share(share))}
        speeds, losses = self.costs.speeds(models, repeats=1), self.lost(models)
        for name, model in models.items():
            own = [number for kind in FEEDFORWARDS if kind in self.costs.kinds for number in model.shape.units(kind)]
            counts = [f"{len(model.shape.heads(self.costs.kinds))} heads"] if self.full(ATTENTIONS) else []
            counts += [f"{sum(own) / len(own):,.0f} hidden units in an average layer"] if own else []
            size, (speed, *_) = self.costs.megabytes_of(model), speeds[name]
            yield f"{' and '.join(counts)}: {size:.1f} MB, {speed:.2f} times as fast, {losses[name]}"

    def of_share(self, share: float) -> dict[Place, int] | None:
        """How many each sub-layer keeps if about this share of all heads and of all units stays; None: none can."""
        heads, units = self.full(ATTENTIONS), self.full(FEEDFORWARDS)
        limits = [self.of_units(round(share * sum(units) / len(units)))] if units else []
        return self.near(round(share * sum(heads)) if heads else None, limits)

    def full(self, kinds: Collection[str]) -> list[int]:
        """How many heads or units each sub-layer of some kinds has that may lose some."""
        return [max(ladder) for place, ladder in self.rungs.items() if place[0] in kinds]

    def lost(self, models: Mapping[str, Encoder]) -> dict[str, str]:
        """What each model loses on the sentences on which sizes are compared, in words."""
        text, found = self.texts.encoded(FIRST_OF_DEV, self.whole), dict[str, str]()
        for name, model in models.items():
            answer, wanted, metric = evaluation_of(model, self.device, text, BRIEFLY)
            # The whole model would give the answers that are wanted once more.
            whole, score = (metric.drawn(answers, wanted, 1)[0] for answers in (wanted, answer(None)))
            found[name] = f"{score - whole:+.1f} {UNITS[metric.name]}"
        return found

    @cached_property
    def studied(self) -> AnsweredText:
        """The text that the surgeon reads: as much as what it refits needs."""
        inputs = max(output_of(part)[0].in_features for part in self.costs.parts.values())
        return self.texts.study(min(SUBWORDS, SUBWORDS_AN_INPUT * inputs))

    @cached_property
    def surgeon(self) -> Surgeon:
        """The surgeon, once it has read the text."""
        self.report("reading the text once for the outputs of all heads and units")
        batches = (batch.to(self.device) for _, batch in self.studied.pairs(self.whole).in_order(BATCH_TOKENS))
        return Surgeon(self.model, output_maps(self.model, gram_matrices(self.model, batches, self.costs.kinds)))

    @cached_property
    def held_out(self) -> HeldOut:
        """The sentences on which answers are compared."""
        pairs = self.texts[FIRST_OF_DEV].pairs(self.whole)
        return HeldOut(self.model, compared_on(pairs.only(pairs.index[-ASKED_SENTENCES:]), self.device))

    @cached_property
    def ladders(self) -> dict[Place, Ladder]:
        """How far answers move with fewer heads, or some numbers of units, in one layer alone."""
        surgeon = self.surgeon
        self.report("comparing what each layer loses with fewer of them")
        return ladders_of(surgeon, self.held_out, rungs_of)


def in_steps(surgeon: Surgeon, ladders: Mapping[Place, Ladder]) -> dict[Place, Ladder]:
    """What each layer loses with any number of heads, or of units in steps, from a few numbers that were measured."""
    found = dict[Place, Ladder]()
    for place, ladder in ladders.items():
        step = step_of(surgeon.maps[place].groups) if place[0] in FEEDFORWARDS else 1
        found[place] = interpolated(ladder, step, partial(surgeon.error, place))
    return found
