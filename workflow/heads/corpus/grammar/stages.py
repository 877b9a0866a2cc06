"""Stages: what three people or things do together, for scenes that say what each of them is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from heads.corpus.grammar.contrasts import NEAR, Draws, Pair
from heads.corpus.grammar.english import Node
from heads.corpus.grammar.lexicon import Verb
from heads.corpus.grammar.wording import Being, doing, joined, related, undergoing, with_object

Item = TypeVar("Item")


class Unsuitable(Exception):
    """The words that were drawn make no scene."""


def needed(item: Item | None) -> Item:
    """The item. Raises Unsuitable without one."""
    if item is None:
        raise Unsuitable
    return item


class Stage:
    """What three hosts do together, said in full or of one host with as little else as goes."""

    def __init__(self, draws: Draws, hosts: Sequence[Being], verb: Verb, other: Verb) -> None:
        self.draws, self.hosts, self.verb, self.other = draws, hosts, verb, other

    def full(self, nodes: Sequence[Node]) -> Node:
        """The first met the second, and the third slept."""
        second = doing(nodes[2], self.other, [])
        return joined([self._meeting(nodes), second], clauses=True)

    def about(self, topic: int, nodes: Sequence[Node]) -> Node:
        """Only the clause of one host."""
        return doing(nodes[2], self.other, []) if topic == 2 else self._meeting(nodes)

    def _meeting(self, nodes: Sequence[Node]) -> Node:
        assert self.verb.government is not None
        if not self.verb.government.english and self.draws.chance(0.3):
            return undergoing(nodes[1], self.verb, nodes[0])
        return doing(nodes[0], self.verb, [with_object(self.verb, nodes[1])])


class Row(Stage):
    """Three hosts in a row, to which somebody does the same."""

    def __init__(self, draws: Draws, hosts: Sequence[Being], verb: Verb, subject: Being) -> None:
        super().__init__(draws, hosts, verb, verb)
        self.subject = subject

    def full(self, nodes: Sequence[Node]) -> Node:
        """Somebody saw the first, the second and the third, in any order; or as many as there are."""
        row = joined(self.draws.shuffled(nodes), clauses=False)
        return doing(self.subject.node(), self.verb, [with_object(self.verb, row)])

    def about(self, topic: int, nodes: Sequence[Node]) -> Node:
        """Somebody saw one of them."""
        return doing(self.subject.node(), self.verb, [with_object(self.verb, nodes[topic])])


class Place(Stage):
    """Two hosts near a third."""

    def __init__(self, draws: Draws, hosts: Sequence[Being], verb: Verb) -> None:
        super().__init__(draws, hosts, verb, verb)
        self.near = draws.one_of(NEAR)

    def full(self, nodes: Sequence[Node]) -> Node:
        """The first met the second near the third."""
        meeting = self._meeting(nodes)
        meeting.after.append(related(nodes[2], "obl", self.near))
        return meeting

    def about(self, topic: int, nodes: Sequence[Node]) -> Node:
        """All of it for the third."""
        return self.full(nodes) if topic == 2 else self._meeting(nodes)


def stage_of(draws: Draws, pair: Pair | None) -> Stage:
    """A stage whose hosts are different nouns with contrasts. Raises Unsuitable where no words for it are found."""
    dice = draws.roll()
    verb = draws.acting.draw(draws.roll)
    assert verb.objects is not None
    objects = needed(draws.suiting(verb.objects, pair))
    if dice < 0.4:
        hosts = needed(draws.distinct(lambda: objects.draw(draws.roll)))
        subject = draws.person()
        if subject.noun in hosts:
            raise Unsuitable
        return Row(draws, [Being(host) for host in hosts], verb, subject)
    other = draws.one_of(draws.alone)
    third = draws.physical if dice < 0.65 else other.subjects
    if dice < 0.65 and not verb.placed:
        raise Unsuitable
    bags = (needed(draws.suiting(verb.subjects, pair)), objects, needed(draws.suiting(third, pair)))
    hosts = [bag.draw(draws.roll) for bag in bags]
    if len({host.singular for host in hosts}) < 3:
        raise Unsuitable
    beings = [Being(host) for host in hosts]
    return Place(draws, beings, verb) if dice < 0.65 else Stage(draws, beings, verb, other)
