"""A Ray cluster: joined or made, and its machines shared out among workers."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from felicity.core.errors import FelicityError

LOCAL = "local"
# What a worker on another machine must be told to find the same files and compute the same way.
TELL = ("FELICITY_CACHE", "FELICITY_DATA", "HF_HOME", "HF_HUB_OFFLINE", "ONEDNN_MAX_CPU_ISA")
# Shards are small; Ray would take a third of the memory for them.
OBJECT_STORE = 200_000_000
# Of a CPU or GPU, the smallest that Ray counts.
PARTS = 10_000

Machines = list[dict[str, float]]


@contextmanager
def join_cluster(address: str) -> Iterator[Machines]:
    """The cluster's machines, what each has of CPU and GPU; one that was joined here is left in the end.

    Raises FelicityError where there is no cluster at the address.
    """
    import ray

    joined = not ray.is_initialized()
    if joined:
        _join(address or os.environ.get("RAY_ADDRESS") or LOCAL)
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    finally:
        if joined:
            ray.shutdown()


def _join(address: str) -> None:
    import ray

    # Ray reports usage to its makers unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    told = {name: os.environ[name] for name in TELL if name in os.environ}
    options: dict[str, Any] = {"runtime_env": {"env_vars": told}, "log_to_driver": False}
    if address == LOCAL:
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        ray.init(address=address, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FelicityError(
            f"There is no Ray cluster at '{address}' ({reason}); check --ray-address or RAY_ADDRESS, or "
            "leave them out to use this machine."
        ) from error


def count_places(machines: Machines) -> int:
    """Workers that a cluster has room for: one for each GPU, else one a machine, with all its cores.

    >>> count_places([{"CPU": 8.0}, {"CPU": 8.0}])
    2
    """
    return max(1, int(sum(machine.get("GPU", 0) for machine in machines)) or len(machines))


def share_out(machines: Machines, count: int) -> dict[str, float]:
    """What each of so many workers takes, so that all of them fit.

    >>> share_out([{"CPU": 8.0}, {"CPU": 4.0}], 2)
    {'num_cpus': 4.0}
    >>> share_out([{"CPU": 8.0, "GPU": 2.0}], 3)
    {'num_cpus': 1.0, 'num_gpus': 0.5}
    """
    cores = [machine["CPU"] for machine in machines]
    cards = sum(int(machine.get("GPU", 0)) for machine in machines)
    sharing = ceil(count / cards) if cards else 0
    each = int(min([1 if cards else sum(cores) // count, *cores]))
    while each and _count_room(machines, each, sharing) < count:
        each -= 1
    # Ray counts in ten-thousandths, and those on one card must not round up to more than it.
    return {"num_cpus": float(each)} | ({"num_gpus": PARTS // sharing / PARTS} if cards else {})


def _count_room(machines: Machines, cores: int, sharing: int) -> int:
    """Workers that find room, each with so many cores, and so many `sharing` a GPU where there are any."""
    rooms = [int(machine["CPU"] // cores) for machine in machines]
    cards = [int(machine.get("GPU", 0)) for machine in machines]
    return sum(
        min(room, card * sharing) if sharing else room for room, card in zip(rooms, cards, strict=True)
    )
