"""The trie: every distinct history once, in preorder, and nothing read that nobody asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from felicity.engines.causal.trie import Shape, build_trie, plan_units, split_spans
from tests.engines.random_models import draw_sequences, encode

few_tokens = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=12).map(lambda tail: [9, *tail]), min_size=1, max_size=30
)
shapes = st.builds(
    Shape,
    row=st.integers(2, 24),
    window=st.integers(2, 24),
    batch=st.integers(2, 60),
    chain=st.integers(1, 4),
)


def test_a_minimal_pair_shares_what_stands_before_the_difference() -> None:
    # 9 1 2 3 and 9 1 4 3: five tokens are distinct histories besides the root, of which the two last
    # need not be read.
    trie = build_trie(encode([[9, 1, 2, 3], [9, 1, 4, 3]]))
    assert len(trie.place_token) == 6
    assert trie.token.tolist() == [9, 1, 2, 4]
    assert trie.depth.tolist() == [0, 1, 2, 2]
    assert trie.parent.tolist() == [-1, 0, 1, 1]
    assert trie.end.tolist() == [4, 4, 3, 4]
    assert trie.ready.tolist() == [2, 3]


def test_a_duplicate_and_a_prefix_add_nothing() -> None:
    alone = build_trie(encode([[9, 1, 2, 3]]))
    more = build_trie(encode([[9, 1, 2, 3], [9, 1, 2], [9, 1, 2, 3], [9]]))
    assert more.token.tolist() == alone.token.tolist()
    assert more.ready.tolist() == [2, 1, 2, -1]


def test_a_context_that_nobody_asks_for_is_read_but_not_projected() -> None:
    encoded = encode([[9, 1, 2, 3, 4]])
    encoded.wanted[:3] = False
    trie = build_trie(encoded)
    assert len(trie) == 4
    assert sorted(set(trie.predicted_at.tolist())) == [-1, 2, 3]


@given(few_tokens)
def test_the_way_to_a_sequence_s_place_spells_the_sequence(sequences: list[list[int]]) -> None:
    encoded = encode(sequences)
    trie = build_trie(encoded)
    for number, tokens in enumerate(sequences):
        places = trie.node_of[encoded.bounds[number] : encoded.bounds[number + 1]]
        assert trie.place_token[places].tolist() == tokens
        nodes = trie.predicted_at[places[1:]]
        assert trie.token[nodes].tolist() == tokens[:-1]
        assert trie.path(int(nodes[-1])).tolist() == nodes[:-1].tolist()
    assert len({tuple(tokens[:size]) for tokens in sequences for size in range(1, len(tokens) + 1)}) == len(
        trie.place_token
    )


@given(few_tokens, shapes)
def test_spans_are_whole_by_themselves_and_leave_nothing_out(
    sequences: list[list[int]], shape: Shape
) -> None:
    trie = build_trie(encode(sequences))
    spans = split_spans(trie, shape)
    assert [span.begin for span in spans[1:]] == [span.end for span in spans[:-1]]
    assert spans[0].begin == 0
    assert spans[-1].end == len(trie)
    for span in spans:
        nodes = set(span.nodes.tolist())
        assert len(nodes) == len(span)
        assert {int(trie.parent[node]) for node in nodes} - {-1} <= nodes
    units = plan_units(trie, shape)
    assert sorted(span.begin for unit in units for span in unit) == [span.begin for span in spans]
    assert all(span.passes == 1 for unit in units if len(unit) > 1 for span in unit)


def test_short_sequences_waste_little_on_trunks_and_padding() -> None:
    # 400 pairs of 11 tokens that differ in one: below 6% over what is distinct.
    rng = np.random.default_rng(0)
    sequences = []
    for _ in range(400):
        first = [0, *rng.integers(1, 90, 10).tolist()]
        sequences += [first, [*first[:5], 91, *first[6:]]]
    trie = build_trie(encode(sequences))
    units = plan_units(trie, Shape())
    padded = sum(len(unit) * max(map(len, unit)) for unit in units)
    assert padded < 1.06 * len(trie)


def test_a_long_trunk_is_read_again_only_after_a_whole_chain() -> None:
    # 600 tokens of context before 3000 continuations of 6 tokens: three chains of 16 passes at most.
    trunk = [0, *draw_sequences(window=600)[-1][1:]]
    sequences = [[*trunk, 1 + number // 60, 1 + number % 60, 3, 4, 5, 6] for number in range(3000)]
    trie = build_trie(encode(sequences))
    shape = Shape(chain=16)
    spans = split_spans(trie, shape)
    assert len(spans) == -(-len(trie) // (shape.chain * shape.window))
    read = sum(map(len, spans))
    assert read < 1.1 * len(trie)
