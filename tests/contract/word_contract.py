"""Reads of words, whichever engine answers: nothing is known of a word that only hidden assets have.

An engine's test class inherits `WordContract` and gives the fixture `engine`.
"""

from __future__ import annotations

from services.access.principal import LOCAL_ADMINISTRATOR, Principal
from services.access.rule import AccessRule, Level
from services.catalog.model import ObjectType
from services.retrieval.visibility import Visibility
from services.retrieval.words import LookUp, TermFacts
from tests.contract.engine import Engine, Hand, Written

VISITOR = Principal("visitor")
SECRET = AccessRule(Level.RESTRICTED)


def look_up(engine: Engine, terms: list[str], *phrases: str, principal: Principal = LOCAL_ADMINISTRATOR) -> LookUp:
    return engine.word_store.look_up(terms, phrases, Visibility(engine.search_store).acl_ids(principal))


def visible(engine: Engine, words: dict[str, str], principal: Principal = LOCAL_ADMINISTRATOR) -> set[str]:
    return set(engine.word_store.visible_words(words.items(), Visibility(engine.search_store).acl_ids(principal)))


def vocabulary(engine: Engine, after_seq: int = 0) -> dict[str, str]:
    return {word: term for _, word, term in engine.word_store.vocabulary(after_seq)}


def glossary_term(hand: Hand, asset_id: str, name: str, *synonyms: str, access: AccessRule | None = None) -> Written:
    changes = {} if access is None else {"access": access}
    return hand.asset(asset_id, "text", name=name, object_type=ObjectType.TERM, whole_synonyms=synonyms, **changes)


class WordContract:
    """Needs the fixture `engine`."""

    def test_before_anything_is_published_no_word_is_known(self, engine: Engine) -> None:
        assert look_up(engine, ["word"], "phrase") == LookUp({}, [])
        assert look_up(engine, []) == LookUp({}, [])
        assert vocabulary(engine) == {}
        assert visible(engine, {"word": "word"}) == visible(engine, {}) == set()

    def test_a_term_is_counted_over_all_assets_and_visible_where_the_caller_may_see_one(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            hand.asset("a", "text", postings={"both": 1.0, "open": 1.0}),
            hand.asset("b", "text", postings={"both": 1.0, "secret": 1.0}, access=SECRET),
        )
        terms = ["both", "open", "secret", "nowhere"]
        counted = {"both": TermFacts(2, True), "open": TermFacts(1, True)}
        assert look_up(engine, terms).terms == {**counted, "secret": TermFacts(1, True)}
        assert look_up(engine, terms, principal=VISITOR).terms == {**counted, "secret": TermFacts(1, False)}
        hand.publish(hand.asset("b", "text", postings={"secret": 1.0}))
        assert look_up(engine, terms, principal=VISITOR).terms["secret"] == TermFacts(1, True)
        hand.publish(hand.asset("b", "text", postings={"new": 1.0}))
        assert look_up(engine, terms).terms == {"both": TermFacts(1, True), "open": TermFacts(1, True)}

    def test_nobody_sees_a_word_whom_no_access_list_lets_in(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text", postings={"open": 1.0}, words={"opens": "open"}))
        assert engine.word_store.look_up(["open"], ["a"], ()).terms == {"open": TermFacts(1, False)}
        assert engine.word_store.visible_words([("opens", "open")], ()) == set()

    def test_a_glossary_term_is_found_by_its_name_or_a_synonym(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(
            glossary_term(hand, "t1", "annual revenue", "arr", "yearly sales"),
            glossary_term(hand, "t2", "margin", "arr"),
            hand.asset("a", "text", name="arr"),  # a table of that name is no glossary term
        )
        names = {"annual revenue", "arr", "yearly sales"}
        assert [set(found) for found in look_up(engine, [], "annual revenue").glossary] == [names]
        assert [set(found) for found in look_up(engine, [], "arr", "x").glossary] == [names, {"margin", "arr"}]
        assert look_up(engine, [], "annual", "sales").glossary == []

    def test_a_hidden_glossary_term_explains_nothing(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(glossary_term(hand, "t1", "falcon", "takeover", access=SECRET))
        assert look_up(engine, [], "falcon", principal=VISITOR).glossary == []
        assert len(look_up(engine, [], "falcon").glossary) == 1

    def test_the_vocabulary_grows_by_what_is_new(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        hand.publish(hand.asset("a", "text", words={"orders": "order", "customer": "custom"}))
        first = engine.word_store.vocabulary(0)
        assert {word: term for _, word, term in first} == {"orders": "order", "customer": "custom"}
        seqs = [seq for seq, _, _ in first]
        assert seqs == sorted(set(seqs))
        hand.publish(hand.asset("b", "text", words={"orders": "order", "ordering": "order"}))
        hand.publish(hand.asset("a", "other text", words={}))
        assert vocabulary(engine, seqs[-1]) == {"ordering": "order"}
        assert vocabulary(engine) == {"orders": "order", "ordering": "order", "customer": "custom"}

    def test_two_assets_published_together_may_bring_the_same_word(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        words = {"orders": "order"}
        hand.publish(hand.asset("a", "text", words=words), hand.asset("b", "text", words=words))
        assert vocabulary(engine) == words

    def test_a_word_is_visible_where_an_asset_that_may_be_seen_has_that_very_word(self, engine: Engine) -> None:
        hand = Hand(engine).begin()
        order = {"order": 1.0}
        hand.publish(
            hand.asset("a", "text", postings=order, words={"orders": "order"}),
            hand.asset("b", "text", postings=order, words={"ordering": "order"}, access=SECRET),
        )
        words = {"orders": "order", "ordering": "order", "ordered": "order"}
        assert visible(engine, words, VISITOR) == {"orders"}
        assert visible(engine, words) == {"orders", "ordering"}
        hand.publish(hand.asset("b", "text", postings=order, words={"ordering": "order"}))
        assert visible(engine, words, VISITOR) == {"orders", "ordering"}
        hand.publish(hand.asset("a", "text", postings=order, words={"ordered": "order"}))
        assert visible(engine, words, VISITOR) == {"ordered", "ordering"}
