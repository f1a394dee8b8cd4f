"""Numbers in sentences, as printed in papers."""

from math import isfinite, isnan

# The level at which a sentence claims a difference; every other one is not detectable.
ALPHA = 0.05
NO_DIFFERENCE = "no detectable difference"


def is_detected(p: float | None, *, alpha: float = ALPHA) -> bool:
    """Whether a sentence may claim the difference that p belongs to; never without a p.

    >>> is_detected(0.05), is_detected(0.051), is_detected(None), is_detected(float("nan"))
    (True, False, False, False)
    """
    return p is not None and p <= alpha


def format_p(p: float | None) -> str:
    """A p-value with its sign, without the leading zero; a dash if there is none.

    >>> format_p(0.0421), format_p(0.0000021), format_p(0.5), format_p(None)
    ('p = .042', 'p < .001', 'p = .500', 'p –')
    """
    if p is None or isnan(p):
        return "p –"
    if p < 0.001:
        return "p < .001"
    if p > 0.9995:
        return "p > .999"
    return f"p = {p:.3f}".replace("0.", ".", 1)


def p_cell(p: float | None) -> str:
    """A p-value in a column that is headed p.

    >>> p_cell(0.0231), p_cell(0.00001), p_cell(None)
    ('.023', '< .001', '–')
    """
    return format_p(p).removeprefix("p ").removeprefix("= ")


def format_number(value: float) -> str:
    """A number with at least two and about three significant digits.

    >>> format_number(12.3456), format_number(0.0028096), format_number(-0.5), format_number(0.0)
    ('12.35', '0.00281', '-0.50', '0.00')
    """
    if not isfinite(value):
        return str(value)
    if value == 0 or abs(value) >= 0.1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def format_share(share: float) -> str:
    """A proportion as a percentage.

    >>> format_share(0.72149)
    '72.1%'
    """
    return f"{share:.1%}"


def format_df(df: float) -> str:
    """Degrees of freedom: as an integer if they are whole, else with one decimal.

    >>> format_df(17.0000003), format_df(12.34)
    ('17', '12.3')
    """
    return f"{df:.0f}" if abs(df - round(df)) < 0.005 else f"{df:.1f}"
