"""Numbers in sentences and tables, as printed in papers: the one formatter of pages and terminal."""

from collections.abc import Callable
from math import isfinite, isinf, isnan

MINUS = "−"
MISSING = "–"

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
    ('12.35', '0.00281', '−0.50', '0.00')
    """
    if not isfinite(value) or value == 0 or abs(value) >= 0.1:
        return decimal(value)
    return f"{value:.3g}".replace("-", MINUS)


def format_share(share: float) -> str:
    """A proportion as a percentage.

    >>> format_share(0.72149)
    '72.1%'
    """
    return f"{percent(share)}%"


def format_df(df: float) -> str:
    """Degrees of freedom: as an integer if they are whole, else with one decimal.

    >>> format_df(17.0000003), format_df(12.34)
    ('17', '12.3')
    """
    return f"{df:.0f}" if abs(df - round(df)) < 0.005 else f"{df:.1f}"


def decimal(value: float | None, places: int = 2) -> str:
    """A number with a typographic minus and a fixed number of decimals; a dash if there is none.

    >>> decimal(-3.14159), decimal(-0.001), decimal(1234.5, 1), decimal(None)
    ('−3.14', '0.00', '1,234.5', '–')
    """
    if value is None or isnan(value):
        return MISSING
    if isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:,.{places}f}"
    return text.replace("-", MINUS) if any(digit in text for digit in "123456789") else text.lstrip("-")


def signed(value: float | None, places: int = 2) -> str:
    """A number that always shows its sign, except for a plain zero.

    >>> signed(0.5), signed(-0.5), signed(0.0)
    ('+0.50', '−0.50', '0.00')
    """
    text = decimal(value, places)
    return f"+{text}" if value is not None and value > 0 and text != decimal(0.0, places) else text


def format_digits(value: float, digits: int = 4) -> str:
    """A number to so many significant digits, for tables of any unit.

    >>> format_digits(-12.34567), format_digits(1500.0), format_digits(2.5e-7)
    ('−12.35', '1500', '2.5e−07')
    """
    return f"{value:.{digits}g}".replace("-", MINUS)


def percent(share: float | None, places: int = 1) -> str:
    """A share as a percentage, without the sign.

    >>> percent(0.7249), percent(None)
    ('72.5', '–')
    """
    return decimal(None if share is None else 100 * share, places)


def points(difference: float | None, places: int = 1) -> str:
    """A difference of two shares in percentage points, with its sign.

    >>> points(-0.0123), points(0.5)
    ('−1.2', '+50.0')
    """
    return signed(None if difference is None else 100 * difference, places)


def format_interval(
    low: float | None,
    high: float | None,
    show: Callable[..., str] = decimal,
    places: int | None = None,
) -> str:
    """The ends of an interval as another function of this module writes them; a dash if one is unknown.

    >>> format_interval(-0.123, 0.456), format_interval(0.7, 0.75, percent), format_interval(None, None)
    ('[−0.12, 0.46]', '[70.0, 75.0]', '–')
    """
    if low is None or high is None or isnan(low) or isnan(high):
        return MISSING
    more = {} if places is None else {"places": places}
    return f"[{show(low, **more)}, {show(high, **more)}]"


def percent_interval(share: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, as percentages.

    >>> percent_interval(0.7249, 0.7, 0.75), percent_interval(0.5, None, None)
    ('72.5 [70.0, 75.0]', '50.0')
    """
    span = format_interval(low, high, percent)
    return percent(share) if span == MISSING else f"{percent(share)} {span}"


def share_interval(share: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, for a sentence.

    >>> share_interval(0.7249, 0.7, 0.75)
    '72.5% [70.0, 75.0]'
    """
    span = format_interval(low, high, percent)
    return f"{percent(share)}%" if span == MISSING else f"{percent(share)}% {span}"


def count(number: int | None) -> str:
    """A whole number with thousands separators.

    >>> count(67000), count(None)
    ('67,000', '–')
    """
    return decimal(number, 0)


def counted(number: int, singular: str, plural: str = "") -> str:
    """A count with its noun.

    >>> counted(1, "tie"), counted(2, "tie"), counted(2, "suite")
    ('1 tie', '2 ties', '2 suites')
    """
    return f"{count(number)} {singular if number == 1 else plural or singular + 's'}"


def format_date(moment: str | None) -> str:
    """The day of a moment in ISO 8601, as it stands in a manifest.

    >>> format_date("2026-11-18T07:03:23+00:00"), format_date(None)
    ('2026-11-18', '')
    """
    return (moment or "").partition("T")[0]
