"""The words before a noun: determiners, adjectives with their adverbs, nouns that become Russian adjectives."""

from collections.abc import Callable

from heads.corpus.grammar.lexicon import COMPOUND_GROUP, Adjective, Lexicon, Noun
from heads.corpus.grammar.pronouns import DEMONSTRATIVES, POSSESSIVES
from heads.corpus.grammar.words import Node, article, leaf, stands_for

# cumulative shares of no adjective, one, two, one with an adverb of degree; the rest has two joined by "and"
NUMBER_OF_ADJECTIVES = (0.46, 0.62, 0.90, 0.95)

BOTH_OF_STUFF = 2 * COMPOUND_GROUP - 1  # "wooden" and "stone" exclude each other


class Modifiers:
    """Writes the words before a noun; `roll` gives random numbers in [0, 1)."""

    def __init__(self, lexicon: Lexicon, roll: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.roll = roll

    def determiner(self, noun: Noun, node: Node, agreement: int, case: int, *, many: bool, article_of: str) -> str:
        """Put the English determiner in front; return the Russian one with a space after it, or nothing."""
        dice = self.roll()
        forms = None
        word = ""
        if "only" in noun.classes:
            word = "the"
        elif article_of == "new":
            word = "" if many or "mass" in noun.classes else self._article(node)
        elif dice < 0.06 and article_of == "subject":
            word, forms = POSSESSIVES[int(self.roll() ** 1.5 * 4)]
        elif dice < 0.14 and "mass" not in noun.classes:
            one, more, forms = DEMONSTRATIVES[int(self.roll() ** 1.5 * len(DEMONSTRATIVES))]
            word = more if many else one
            if not word:
                word, forms = "the", None
        elif dice < 0.66:
            word = "the"
        elif not many and "mass" not in noun.classes:
            word = self._article(node)
        if not word:
            return ""
        lemma = {"an": "a", "these": "this", "those": "that"}.get(word, word)
        possessive = "PRON" if word in ("my", "our", "his", "their") else "DET"
        english = Node(word, lemma, possessive, "nmod:poss" if possessive == "PRON" else "det")
        node.before.insert(0, english)
        return f"{stands_for(forms[agreement][noun.animate][case], english)} " if forms else ""

    def _article(self, node: Node) -> str:
        following = (node.before[0].before or node.before)[0] if node.before else node
        return article(following.form)

    def adjectives(self, noun: Noun, node: Node, agreement: int, case: int) -> str:
        """Put up to two adjectives before the noun; return the Russian ones with a space after each."""
        bag = self.lexicon.adjectives.get(noun.singular)
        dice = self.roll()
        none, one, two, degree = NUMBER_OF_ADJECTIVES
        if bag is None or dice < none:
            return ""
        first = bag.draw(self.roll)
        word = self._modifier(first)
        russian = stands_for(first.forms[agreement][noun.animate][case], word)
        if one <= dice < two or dice >= degree:
            second = bag.draw(self.roll)
            if second.group == first.group and dice < two:
                second = bag.draw(self.roll)
            form = second.forms[agreement][noun.animate][case]
            if second.group != first.group and first.group + second.group < BOTH_OF_STUFF:
                other = self._modifier(second)
                pair = (first.group, word, russian), (second.group, other, stands_for(form, other))
                (_, outer, far), (_, inner, near) = sorted(pair, key=lambda adjective: adjective[0])
                node.before += [outer, inner]
                return f"{far} {near} "
            if dice >= degree and first.group == 0 and second.english != first.english:
                node.before.append(word)
                return f"{russian}{self.also(word, second, form)} "
        node.before.append(word)
        if two <= dice < degree:
            russian = f"{self.degree(first, word)}{russian}"
        return f"{russian} "

    def also(self, word: Node, adjective: Adjective, form: str) -> str:
        """Attach "and old" to another adjective; return the Russian with a space before it."""
        other, also = leaf(adjective.english, "ADJ", "conj"), leaf("and", "CCONJ", "cc")
        other.before.append(also)
        word.after.append(other)
        return f" {stands_for('и', also)} {stands_for(form, other)}"

    def _modifier(self, adjective: Adjective) -> Node:
        if adjective.group == COMPOUND_GROUP:
            return leaf(adjective.english, "NOUN", "compound")
        return leaf(adjective.english, "ADJ", "amod")

    def degree(self, adjective: Adjective, word: Node) -> str:
        """Put an adverb of degree before an adjective that allows one; return the Russian one with a space after it."""
        return f"{self.adverb('degree', word.before)} " if adjective.group <= 2 else ""

    def adverb(self, kind: str, words: list[Node]) -> str:
        """Append an English adverb to `words`; return the Russian one."""
        english, russian = self.lexicon.adverbs[kind].draw(self.roll)
        words.append(leaf(english, "ADV", "advmod"))
        return stands_for(russian, words[-1])
