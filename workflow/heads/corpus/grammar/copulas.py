"""Clauses with "was": about a quality, a trade, or what there was somewhere."""

from heads.corpus.grammar.lexicon import Noun
from heads.corpus.grammar.phrases import PLAIN, Phrase, Phrases
from heads.corpus.grammar.russian import INS, NOM, PLURAL
from heads.corpus.grammar.words import Node, leaf, stands_for

TO_BE = ("был", "была", "было", "были")
LAST_QUALITY = 3  # adjectives in groups up to colours can be predicates


class Copulas:
    """Writes clauses with "was" from `phrases`."""

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self.lexicon = lexicon = phrases.lexicon
        self.roll = phrases.roll
        self.trades = lexicon.bag("person -kin -male -female -ruler -guest -stranger -child")
        self.subjects_of_was = lexicon.bag(
            "person animal thing building outdoor text event food vehicle garment weather"
        )
        self.things_there = lexicon.bag("animal table chair bed lamp picture tree flower person vehicle")

    def there_was(self) -> Phrase:
        """A clause like "there was a dog in the garden": в саду была собака."""
        noun = self.things_there.draw(self.roll)
        many = noun.plural != "" and self.roll() < 0.4
        thing = self.phrases.counted(noun, NOM, "", PLAIN, many=many, article_of="new")
        thing.node.relation = "nsubj"
        where = self.phrases.where(PLAIN)
        node = Node("were" if many else "was", "be", "VERB", "root")
        node.before.append(leaf("there", "PRON", "expl"))
        node.after += [thing.node, where.node]
        verb = stands_for(TO_BE[thing.agreement], node)
        return Phrase(node, f"{where.russian} {verb} {thing.russian}", thing.agreement)

    def was(self, room: int) -> Phrase:
        """A clause like "the house was old" (дом был старым) or "the woman was a doctor"."""
        if self.roll() < 0.6:
            subject = self.phrases.of_people(NOM, "", room, subject=True)
        else:
            subject = self.phrases.common(self.subjects_of_was.draw(self.roll), NOM, "", room, subject=True)
        subject.node.relation = "nsubj"
        person = self.phrases.owners.items[0] if subject.noun is None else subject.noun
        if "person" in person.classes and self.roll() < 0.3:
            trade = self.trades.draw(self.roll)
            many = subject.agreement == PLURAL
            noun = self.phrases.counted(trade, INS, "", PLAIN, many=many, article_of="new")
            node, russian = noun.node, noun.russian
        else:
            node, russian = self._quality(person, subject.agreement)
        node.relation = "root"
        be: list[Node] = [Node("were" if subject.agreement == PLURAL else "was", "be", "AUX", "cop")]
        verb = stands_for(TO_BE[subject.agreement], be[0])
        dice = self.roll()
        if dice < 0.1:
            be.append(leaf("not", "PART", "advmod"))
            verb = f"{stands_for('не', be[-1])} {verb}"
        elif dice < 0.25:
            verb = f"{self.phrases.modifiers.adverb('frequency', be)} {verb}"
        node.before[:0] = [subject.node, *be]
        return Phrase(node, f"{subject.russian} {verb} {russian}", subject.agreement)

    def _quality(self, noun: Noun, agreement: int) -> tuple[Node, str]:
        """One predicate adjective for the noun, or two joined by "and"; Russian in the instrumental."""
        bag = self.lexicon.adjectives[noun.singular]
        first = next(a for a in iter(lambda: bag.draw(self.roll), None) if a.group <= LAST_QUALITY)
        word = leaf(first.english, "ADJ", "root")
        russian = stands_for(first.forms[agreement][False][INS], word)
        dice = self.roll()
        if dice < 0.35:
            return word, f"{self.phrases.modifiers.degree(first, word)}{russian}"
        second = bag.draw(self.roll)
        if (
            dice > 0.8
            and second.group == first.group
            and second.english != first.english
            and first.group < LAST_QUALITY
        ):
            russian += self.phrases.modifiers.also(word, second, second.forms[agreement][False][INS])
        return word, russian
