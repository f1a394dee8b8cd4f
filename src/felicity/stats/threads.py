"""One BLAS thread for the many small products of a model fit.

The matrices here are small and the products many. Waking and awaiting a pool of threads for each costs
more than it saves, on a busy machine ten times more (500 x 500 Cholesky: 6 ms alone, 470 ms in a pool).
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function's linear algebra in one thread; without threadpoolctl it is only slower."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            controller = _controller()
        except ImportError:
            return function(*args, **kwargs)
        with controller.limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
