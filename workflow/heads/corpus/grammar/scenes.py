"""Scenes: three topics, and sentences that assert a topic, exclude it or leave it open.

A scene writes premises that say something of each topic, by its state, and hypotheses that assert one topic alone. What
entails what is then known: the label of a pair is the state of the hypothesis's topic in the premise. As in SNLI
(Bowman et al. 2015, sec. 2.1) both sentences are of one event and of the same people and things, so that a car that was
red was not blue, who slept in the school did not sleep in the museum, and who was followed by the dog did not follow
it. Numbers are exact, and different nouns are of different people and things: the boy is not the child.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from heads.corpus.grammar.contrasts import COMPARATIVES, CONTRASTS, DAYS, MANNERS, NUMBERS, Draws
from heads.corpus.grammar.english import Node, leaf
from heads.corpus.grammar.lexicon import Noun, Verb
from heads.corpus.grammar.stages import Row, Stage, Unsuitable, needed, stage_of
from heads.corpus.grammar.wording import (
    Being,
    being,
    doing,
    exceeding,
    joined,
    noun_phrase,
    related,
    saying,
    undergoing,
    wishing,
    with_object,
    with_relative,
)

ASSERTED, EXCLUDED, OPEN = range(3)
TOPICS = range(3)
BRIEF = 0.95
"""Share of scenes, of those that share no words, whose premises do not even mention what they leave open."""


class Scene(ABC):
    """Sentences about three topics; every call throws dice for its wording, never for its meaning."""

    deniable = True
    """Whether a hypothesis can be denied, which turns asserted into excluded and the other way round."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws

    @abstractmethod
    def premise(self, states: Sequence[int]) -> Node:
        """A sentence in which each of the three topics is in its state."""

    @abstractmethod
    def hypothesis(self, topic: int, *, denied: bool) -> Node:
        """A sentence that asserts one topic, or denies it."""


def spoken_of(states: Sequence[int], *, brief: bool) -> list[tuple[int, int]]:
    """The topics that a premise speaks of, with their states; a `brief` one leaves out what is open."""
    return [(topic, state) for topic, state in enumerate(states) if not (brief and state == OPEN)]


class Qualities(Scene):
    """Each host of a stage has a quality, the one that excludes it, or none: the red car, the blue car, the car."""

    def __init__(self, draws: Draws, *, shared: bool) -> None:
        """shared: all hosts have to do with the same two qualities, so that words alone say nothing."""
        super().__init__(draws)
        pair = draws.one_of(CONTRASTS) if shared else None
        self.stage = stage_of(draws, pair)
        first = pair and draws.turned(pair)
        self.pairs = [first or draws.contrast_of(host.noun) for host in self.stage.hosts if host.noun]
        self.brief = not shared and isinstance(self.stage, Row) and draws.chance(BRIEF)

    def premise(self, states: Sequence[int]) -> Node:
        """Qualities before the nouns, or in a relative clause where nothing follows that it could be of as well."""
        relative = type(self.stage) is Stage and self.draws.chance(0.3)
        determiner = "a" if self.draws.chance(0.2) else "the"
        hosts = spoken_of(states, brief=self.brief)
        return self.stage.full([self._host(*host, determiner, relative=relative) for host in hosts])

    def _host(self, topic: int, state: int, determiner: str = "the", *, relative: bool = False) -> Node:
        host = self.stage.hosts[topic]
        if state == OPEN:
            return host.node(determiner)
        quality = self.pairs[topic][state]
        if relative:
            return with_relative(host.node(determiner), host.who, being(None, quality))
        return host.node(determiner, quality=quality)

    def hypothesis(self, topic: int, *, denied: bool) -> Node:
        """The car was red; or what was done with a red car, the other qualities dropped."""
        if denied or self.draws.chance(0.5):
            return being(self.stage.hosts[topic].node(), self.pairs[topic][ASSERTED], denied=denied)
        nodes = [self._host(other, ASSERTED if other == topic else OPEN) for other in TOPICS]
        with_others = not self.brief and self.draws.chance(0.3)
        return self.stage.full(nodes) if with_others else self.stage.about(topic, nodes)


class Numbers(Scene):
    """Two dogs, three cats and horses: numbers exclude each other, and a plural alone leaves them open."""

    deniable = False

    def __init__(self, draws: Draws, *, shared: bool) -> None:
        """shared: as of Qualities."""
        super().__init__(draws)
        self.verb, self.subject = draws.acting.draw(draws.roll), draws.person()
        nouns = needed(draws.distinct(lambda: draws.object_of(self.verb)))
        if not all(noun.plural for noun in nouns):
            raise Unsuitable
        self.nouns = nouns
        numbers = draws.shuffled(NUMBERS)
        own = [(numbers[2 * topic], numbers[2 * topic + 1]) for topic in TOPICS]
        self.pairs = [own[0]] * 3 if shared else own
        self.brief = not shared and draws.chance(BRIEF)

    def premise(self, states: Sequence[int]) -> Node:
        """All in a row, in any order."""
        return self._row(spoken_of(states, brief=self.brief))

    def _row(self, kinds: Sequence[tuple[int, int]]) -> Node:
        nodes = [
            noun_phrase(self.nouns[topic], "", number="" if state == OPEN else self.pairs[topic][state])
            for topic, state in self.draws.shuffled(kinds)
        ]
        return doing(self.subject.node(), self.verb, [with_object(self.verb, joined(nodes, clauses=False))])

    def hypothesis(self, topic: int, *, denied: bool) -> Node:  # noqa: ARG002 - is never asked to deny
        """Those of one kind alone, or with the others, whose numbers are dropped, where all premises have those."""
        with_others = not self.brief and self.draws.chance(0.3)
        others = [other for other in TOPICS if other != topic and with_others]
        return self._row([(topic, ASSERTED), *((other, OPEN) for other in others)])


class Predicates(Scene):
    """Somebody slept, somebody else did not sleep, and somebody wanted to, or was said to, or did another thing."""

    def __init__(self, draws: Draws, *, shared: bool) -> None:
        """shared: all is about the same doing."""
        super().__init__(draws)
        meet = draws.chance(0.25)
        self.people = needed(draws.distinct(draws.somebody if meet else draws.person, 4))
        doings = [self._doing() for _ in range(4)]
        self.doings = [doings[0]] * 3 if shared else doings[:3]
        self.another = doings[3]
        self.brief = not shared and draws.chance(BRIEF)
        met = draws.one_of(draws.mutual)
        self.meeting = met if meet else None
        bases = {verb.base for verb, _ in self.doings}
        # Else a clause in passing would say what a topic is about.
        if {self.another[0].base, met.base} & bases or len(bases) not in (1, 3):
            raise Unsuitable

    def _doing(self) -> tuple[Verb, Being | None]:
        draws = self.draws
        if draws.chance(0.5):
            return draws.one_of(draws.alone), None
        verb = draws.acting.draw(draws.roll)
        return verb, Being(draws.object_of(verb))

    def _done(self, subject: Node | None, what: tuple[Verb, Being | None], **how: bool) -> Node:
        verb, thing = what
        return doing(subject, verb, [with_object(verb, thing.node())] if thing else [], **how)

    def premise(self, states: Sequence[int]) -> Node:
        """Clauses in a row, in any order; or relative clauses of people who meet, none where a topic is open."""
        if self.meeting is None:
            topics = self.draws.shuffled(spoken_of(states, brief=self.brief))
            members = [self._clause(topic, state) for topic, state in topics]
            # What stands behind "said that ..." could be said as well, so it stands last.
            return joined(sorted(members, key=_says), clauses=True)
        nodes = []
        for topic, state in enumerate(states):
            node = self.people[topic].node()
            if state != OPEN:
                clause = self._done(None, self.doings[topic], denied=state == EXCLUDED)
                node = with_relative(node, self.people[topic].who, clause)
            nodes.append(node)
        met = doing(nodes[0], self.meeting, [with_object(self.meeting, nodes[1])])
        return joined([met, self._done(nodes[2], self.another)], clauses=True)

    def _clause(self, topic: int, state: int) -> Node:
        draws, subject, what = self.draws, self.people[topic].node(), self.doings[topic]
        if state != OPEN:
            return self._done(subject, what, denied=state == EXCLUDED)
        dice = draws.roll()
        if dice < 0.45:
            return wishing(subject, draws.one_of(draws.wishes), self._done(None, what, bare=True))
        if dice < 0.75:
            return saying(self.people[3].node(), draws.one_of(draws.reports), self._done(subject, what))
        return self._done(subject, self.another)

    def hypothesis(self, topic: int, *, denied: bool) -> Node:
        """One of them did it."""
        return self._done(self.people[topic].node(), self.doings[topic], denied=denied)


def _says(clause: Node) -> bool:
    return any(node.relation == "ccomp" for node in clause.after)


class Adjuncts(Scene):
    """Somebody slept in the school, somebody sang in the museum, and somebody worked."""

    def __init__(self, draws: Draws, *, shared: bool) -> None:
        """shared: as of Qualities."""
        super().__init__(draws)
        self.people = needed(draws.distinct(draws.person))
        self.verbs = needed(draws.distinct(lambda: draws.one_of(draws.placed)))
        self.pairs = [self._pair()] * 3 if shared else [self._pair() for _ in TOPICS]
        self.brief = not shared and draws.chance(BRIEF)

    def _pair(self) -> tuple[tuple[str, Noun | None], ...]:
        """Two adjuncts that exclude each other: places, as preposition and noun, or adverbs."""
        draws = self.draws
        dice = draws.roll()
        if dice < 0.5:
            places = needed(draws.distinct(lambda: draws.buildings.draw(draws.roll), 2))
            return tuple((noun.place[0], noun) for noun in places if noun.place)
        adverbs = draws.turned(DAYS if dice < 0.65 else draws.one_of(MANNERS))
        return tuple((adverb, None) for adverb in adverbs)

    def _clause(self, topic: int, state: int, *, denied: bool = False) -> Node:
        rest = []
        if state != OPEN:
            word, noun = self.pairs[topic][state]
            rest.append(related(noun_phrase(noun, "the"), "obl", word) if noun else leaf(word, "ADV", "advmod"))
        return doing(self.people[topic].node(), self.verbs[topic], rest, denied=denied)

    def premise(self, states: Sequence[int]) -> Node:
        """Clauses in a row, in any order."""
        topics = self.draws.shuffled(spoken_of(states, brief=self.brief))
        return joined([self._clause(topic, state) for topic, state in topics], clauses=True)

    def hypothesis(self, topic: int, *, denied: bool) -> Node:
        """One of them alone."""
        return self._clause(topic, ASSERTED, denied=denied)


class Roles(Scene):
    """The first followed the second, and the third followed the second: who did it to whom, and not the other way."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self.verb = draws.one_of(draws.one_sided)
        self.quality = draws.one_of([*COMPARATIVES]) if draws.chance(0.5) else ""
        self.three = needed(draws.distinct(draws.person))

    def _clause(self, topic: int, state: int, *, denied: bool = False) -> Node:
        """Topic n: the relation of being n to the next."""
        pair = (self.three[topic], self.three[(topic + 1) % 3])
        first, second = (one.node() for one in (pair if state == ASSERTED else pair[::-1]))
        if self.quality:
            return exceeding(first, self.quality, COMPARATIVES[self.quality], second, denied=denied)
        if self.draws.chance(0.4):
            return undergoing(second, self.verb, first, denied=denied)
        return doing(first, self.verb, [with_object(self.verb, second)], denied=denied)

    def premise(self, states: Sequence[int]) -> Node:
        """Two of the three relations, in either order; the third stays open."""
        topics = self.draws.shuffled(spoken_of(states, brief=True))
        return joined([self._clause(topic, state) for topic, state in topics], clauses=True)

    def hypothesis(self, topic: int, *, denied: bool) -> Node:
        """One of them, active or passive."""
        return self._clause(topic, ASSERTED, denied=denied)
