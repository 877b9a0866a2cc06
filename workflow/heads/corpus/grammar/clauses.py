"""Clauses: who does what, and where and when, in both languages.

Word order differs between English and Russian by rule. Adverbs of manner and frequency come before the Russian verb
wherever they are in English; adverbs of time open the Russian main clause, and come before the verb of a dependent one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from heads.corpus.grammar.copulas import Copulas
from heads.corpus.grammar.lexicon import Lexicon, Verb
from heads.corpus.grammar.phrases import MODIFIED, PLAIN, Phrase, Phrases
from heads.corpus.grammar.russian import DAT, GEN, INS, PLURAL
from heads.corpus.grammar.words import Node, leaf, stands_for

MAIN, DEPENDENT, RELATIVE, JOINED, INFINITIVE = range(5)  # only the first two take adverbs of time
KINDS = (
    ("acting", 0.44),
    ("being", 0.62),
    ("motion", 0.70),
    ("give", 0.78),
    ("speech", 0.86),
    ("wish", 0.92),
    ("state", 0.95),
)
DOING = ("acting", "being", "motion")


@dataclass(slots=True)
class Predicate:
    """A verb with its objects; `opening`: the Russian adverb of time, `times`: the kind it can still take, or ""."""

    node: Node
    opening: str
    russian: str
    closed: bool
    times: str


class Clauses:
    """Writes clauses; `roll` gives random numbers in [0, 1)."""

    def __init__(self, lexicon: Lexicon, roll: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.roll = roll
        self.phrases = Phrases(lexicon, roll)
        self.adverb = self.phrases.modifiers.adverb
        self.copulas = Copulas(self.phrases)
        self.goals = lexicon.bag("place person -balcony -tower")
        self.grounds = lexicon.bag("place -balcony")

    def clause(self, place: int, room: int) -> Phrase:
        """A complete clause with its subject; `room` limits what its noun phrases carry."""
        dice = self.roll()
        if dice < 0.04:
            return self.copulas.there_was()
        if dice < 0.14:
            return self.copulas.was(room)
        dice = self.roll()
        kind = next((kind for kind, upto in KINDS if dice < upto), "turned")
        if kind == "speech" and place != MAIN:
            kind = "acting"
        verb = self.lexicon.verbs_of[kind].draw(self.roll)
        subject = self.subject(verb, room)
        if kind == "turned":
            predicate = self.turned(verb, room)
        elif kind == "speech":
            predicate = self.speech(verb, subject.agreement)
        elif kind == "wish":
            predicate = self.wish(verb, subject.agreement)
        else:
            predicate = self.predicate(verb, subject.agreement, place, MODIFIED if subject.closed else room)
            if kind in DOING and verb.subjects.people and not predicate.closed and self.roll() < 0.1:
                self.join(predicate, subject.agreement)
        return self.put_together(subject, predicate, place)

    def subject(self, verb: Verb, room: int) -> Phrase:
        """The subject of a verb, in the case that the Russian verb requires; relation nsubj."""
        case, preposition = verb.subject.case, verb.subject.russian
        if verb.subjects.people and (self.roll() < 0.7 or len(verb.subjects.items) < 90):
            subject = self.phrases.of_people(case, preposition, room, subject=True)
        else:
            subject = self.phrases.common(verb.subjects.draw(self.roll), case, preposition, room, subject=True)
        subject.node.relation = "nsubj"
        self.phrases.taken = subject.node.form if subject.node.upos == "PRON" else ""
        return subject

    def put_together(self, subject: Phrase, predicate: Predicate, place: int) -> Phrase:
        """Join subject and predicate; a main clause sometimes opens with an adverb of time or a place."""
        node, opening = predicate.node, predicate.opening
        node.before.insert(0, subject.node)
        if place == MAIN and not opening:
            dice, first = self.roll(), list[Node]()
            if dice < 0.12 and predicate.times:
                opening = self.adverb(predicate.times, first)
            elif dice < 0.17:
                where = self.phrases.where(PLAIN)
                first, opening = [where.node], where.russian
            node.before[:0] = first
        words = [subject.russian, predicate.russian]
        if opening:
            words.insert(0 if place == MAIN else 1, opening)
        return Phrase(node, " ".join(words), subject.agreement, predicate.closed)

    def predicate(self, verb: Verb, agreement: int, place: int, room: int) -> Predicate:
        """The verb with adverbs, objects and places; an infinitive ignores `agreement`."""
        infinitive = place == INFINITIVE
        node = Node(verb.base if infinitive else verb.english, verb.base, "VERB", "root")
        if verb.kind == "state":
            node.upos = "ADJ"
            node.before.append(Node("were" if agreement == PLURAL else "was", "be", "AUX", "cop"))
        said = [*node.before, node]
        tail, closed = self._objects(verb, node, room)
        form = verb.infinitive if infinitive else verb.past[agreement]
        russian = stands_for(form, *said)
        opening, times = "", self._times(verb)
        dice = self.roll()
        late = not closed and place != RELATIVE
        where = not closed and verb.placed and self.roll() < (0.2 if verb.objects else 0.45)
        if dice < 0.27:
            if not infinitive and verb.aspect != "p" and self.roll() < 0.6:
                russian, times = self.habit(verb, node, russian), ""
            elif verb.aspect != "s" and verb.kind != "state" and verb.subjects.people:
                early = not infinitive and (not late or self.roll() < 0.45)
                if early or late:
                    russian = f"{self.adverb('manner', node.before if early else node.after)} {russian}"
        elif dice < 0.33 and not infinitive and verb.kind != "state":
            node.form = verb.base
            did, denied = Node("did", "do", "AUX", "aux"), leaf("not", "PART", "advmod")
            node.before += [did, denied]
            russian = f"{stands_for('не', denied)} {stands_for(form, did, node)}"
        russian += tail
        timed = late and place in (MAIN, DEPENDENT) and 0.33 <= dice < 0.45
        if where:
            phrase = self.phrases.where(room if not timed and place == MAIN else PLAIN)
            node.after.append(phrase.node)
            russian, closed = f"{russian} {phrase.russian}", phrase.closed
        if timed:
            opening = self.adverb(times, node.after)
        return Predicate(node, opening, russian, closed, times)

    def _times(self, verb: Verb) -> str:
        """The kind of adverb of time for a verb; only perfective verbs take adverbs of a moment."""
        return "moment" if verb.aspect == "p" and self.roll() < 0.5 else "time"

    def habit(self, verb: Verb, node: Node, russian: str) -> str:
        """Put an adverb before the verb: of manner if it is perfective, else of frequency."""
        kind = {"p": "manner", "i": "frequency", "s": "always"}[verb.aspect]
        return f"{self.adverb(kind, node.before)} {russian}"

    def _objects(self, verb: Verb, node: Node, room: int) -> tuple[str, bool]:
        """Attach objects, recipient, tool or goal to the verb; return Russian after a space, and whether closed."""
        if verb.kind == "motion":
            return self._way(verb, node)
        if verb.objects is None:
            return "", False
        if verb.kind == "give":
            return self._given(verb, node, room)
        takes_more = self.roll() < 0.3 if verb.tools else verb.base == "buy" and self.roll() < 0.25
        thing = self.phrases.governed(verb, MODIFIED if takes_more else room)
        node.after.append(thing.node)
        if not takes_more:
            return f" {thing.russian}", thing.closed
        if verb.tools:
            more = self.phrases.oblique("with", self.phrases.common(verb.tools.draw(self.roll), INS, "", PLAIN))
        else:
            more = self.phrases.oblique("for", self.phrases.of_people(GEN, "для", PLAIN))
        node.after.append(more.node)
        return f" {thing.russian} {more.russian}", False

    def _way(self, verb: Verb, node: Node) -> tuple[str, bool]:
        dice = self.roll()
        if dice < 0.65:
            bag = self.goals if verb.subjects.people else self.grounds
            way = self.phrases.goal(None if dice < 0.1 else bag.draw(self.roll))
        elif dice < 0.8:
            town = self.roll() < 0.3
            way = self.phrases.oblique("from", self.phrases.home(None if town else self.phrases.places.draw(self.roll)))
        else:
            return "", False
        node.after.append(way.node)
        return f" {way.russian}", False

    def _given(self, verb: Verb, node: Node, room: int) -> tuple[str, bool]:
        """ "gave the boy a book" and "gave a book to the boy" differ in word order in Russian; pronouns come first."""
        first = self.roll() < 0.55
        thing = self.phrases.governed(verb, room if first else PLAIN)
        whom = self.phrases.of_people(DAT, "", PLAIN)
        if first:
            whom.node.relation = "iobj"
            node.after += [whom.node, thing.node]
            return f" {whom.russian} {thing.russian}", thing.closed
        self.phrases.oblique("to", whom)
        node.after += [thing.node, whom.node]
        pronoun = whom.node.upos == "PRON"
        return f" {whom.russian} {thing.russian}" if pronoun else f" {thing.russian} {whom.russian}", False

    def turned(self, verb: Verb, room: int) -> Predicate:
        """The predicate of "the boy had a dog": у мальчика была собака. The Russian verb agrees with the object."""
        node = Node(verb.english, verb.base, "VERB", "root")
        thing = self.phrases.governed(verb, room)
        node.after.append(thing.node)
        russian = f"{stands_for(verb.past[thing.agreement], node)} {thing.russian}"
        return Predicate(node, "", russian, thing.closed, self._times(verb))

    def speech(self, verb: Verb, agreement: int) -> Predicate:
        """The predicate of "he said that ..."; the inner clause ends the sentence."""
        node = Node(verb.english, verb.base, "VERB", "root")
        russian, times = stands_for(verb.past[agreement], node), self._times(verb)
        if verb.government:
            listener = self.phrases.of_people(verb.government.case, "", PLAIN)
            listener.node.relation = "obj"
            node.after.append(listener.node)
            russian += f" {listener.russian}"
        elif self.roll() < 0.15:
            russian, times = self.habit(verb, node, russian), ""
        inner = self.clause(DEPENDENT, MODIFIED)
        inner.node.relation = "ccomp"
        that = leaf("that", "SCONJ", "mark")
        inner.node.before.insert(0, that)
        node.after.append(inner.node)
        inside = f"{stands_for('что', that)} {inner.russian}"
        return Predicate(node, "", f"{russian} , {inside} ,", closed=True, times=times)

    def wish(self, verb: Verb, agreement: int) -> Predicate:
        """The predicate of "he wanted to sleep"."""
        node = Node(verb.english, verb.base, "VERB", "root")
        russian, times = stands_for(verb.past[agreement], node), self._times(verb)
        if self.roll() < 0.15 and verb.aspect == "s":
            russian, times = self.habit(verb, node, russian), ""
        inner = self.predicate(self.done_by_people(), agreement, INFINITIVE, MODIFIED)
        inner.node.relation = "xcomp"
        inner.node.before.insert(0, leaf("to", "PART", "mark"))
        node.after.append(inner.node)
        return Predicate(node, "", f"{russian} {inner.russian}", inner.closed, times)

    def done_by_people(self) -> Verb:
        """A verb with people as subjects: no state, and of the verbs of motion only perfective ones."""
        while True:
            verb = self.lexicon.verbs_of[DOING[int(self.roll() * len(DOING))]].draw(self.roll)
            if verb.subjects.people and verb.aspect != "s" and (verb.kind != "motion" or verb.aspect == "p"):
                return verb

    def done_somewhere(self) -> Verb:
        """A verb without object, with people as subjects, for a clause of place."""
        while True:
            verb = self.lexicon.verbs_of["being"].draw(self.roll)
            if verb.subjects.people:
                return verb

    def join(self, predicate: Predicate, agreement: int) -> None:
        """Add "and" and a second verb with the same subject."""
        other = self.predicate(self.done_by_people(), agreement, JOINED, MODIFIED)
        other.node.relation = "conj"
        also = leaf("and", "CCONJ", "cc")
        other.node.before.insert(0, also)
        predicate.node.after.append(other.node)
        predicate.russian += f" {stands_for('и', also)} {other.russian}"
        predicate.closed = other.closed
