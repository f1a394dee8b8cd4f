import pytest

from felicity.core.errors import FelicityError, UnknownName
from felicity.core.policy import Policy


def test_equal_policies_have_equal_keys() -> None:
    assert Policy(bos="none").key == Policy(bos="none").key != Policy().key


def test_every_field_changes_the_key() -> None:
    others = {"bos": "none", "eos": "auto", "join": "\n", "seam": "count", "first": "refuse"}
    others |= {"casing": "lower", "overflow": "drop", "pll": "original", "seq2seq": "words"}
    others |= {"order": "left", "lead": "none", "unknown": "skip"}
    assert set(others) == set(Policy().as_dict())
    assert (
        len({Policy().key} | {Policy().replace(**{k: v}).key for k, v in others.items()}) == len(others) + 1
    )


@pytest.mark.parametrize("field", ["seam", "first", "casing", "overflow", "pll", "seq2seq", "order"])
def test_a_value_outside_the_choices_is_refused_by_name(field: str) -> None:
    with pytest.raises(UnknownName, match=f"policy {field}"):
        Policy(**{field: "sometimes"})


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(UnknownName, match="did you mean 'lower'"):
        Policy(casing="lowr")  # type: ignore[arg-type]


def test_an_empty_begin_token_is_refused_with_the_way_out() -> None:
    with pytest.raises(FelicityError, match="write 'none'"):
        Policy(bos="")


def test_unknown_program_to_be_compatible_with_suggests_the_known() -> None:
    with pytest.raises(UnknownName, match="did you mean 'minicons'"):
        Policy.compat("minicon")


def test_words_for_tokens_are_read_in_any_case() -> None:
    assert Policy(bos="Auto").key == Policy().key
    assert Policy(bos="NONE").bos == "none"
