"""A run over Ray gives the tables of one process, also when a worker dies in the middle."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.run import ray_pool
from felicity.run.evaluate import Run, evaluate
from felicity.run.model import open_model
from felicity.run.ray_pool import Machines, PoolEngine, WorkerPool, Workers, divide_resources, split_shards
from felicity.run.scoring import SCORING
from tests.conftest import Answer, make_tiny_model

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'felicity[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
    ),
]

N_PAIRS = 60
SHARD = 16
# A shard is planned by itself, so a text's numbers may move as with any other batch: the noise of float32.
CLOSE = 1e-4


@pytest.fixture(scope="module")
def cluster(own_cache: Path) -> Iterator[None]:
    """One cluster for all tests, as a user's would be."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    passed_on = {name: os.environ[name] for name in ("FELICITY_CACHE", "HF_HUB_OFFLINE")}
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100_000_000,
        log_to_driver=False,
        runtime_env={"env_vars": passed_on},
    )
    yield
    ray.shutdown()


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of pairs that makes several shards."""
    monkeypatch.setattr(ray_pool, "SHARD", SHARD)
    path = tmp_path / "pairs.csv"
    rows = [f"s{n % 2},The cats annoy Tim {n}.,The cats annoys Tim {n}.\n" for n in range(N_PAIRS)]
    path.write_text("suite,good,bad\n" + "".join(rows))
    return str(path)


def assert_same(found: Run, wanted: Run) -> None:
    for table in ("items", "requests", "audit", "estimates"):
        assert found[table].equals(wanted[table]), table
    near = ("margin", "error")
    assert found["judgements"].drop(near).equals(wanted["judgements"].drop(near))
    for table in ("tokens", "scores"):
        assert (
            found[table]
            .drop("logprob", "value", strict=False)
            .equals(wanted[table].drop("logprob", "value", strict=False))
        )
    difference = found["tokens"]["logprob"].explode() - wanted["tokens"]["logprob"].explode()
    assert difference.abs().max() < CLOSE


def worker_processes() -> list[int]:
    """Processes of this cluster's workers, found among the descendants of this one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = []
    for process in parents:
        ancestor = process
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        title = Path(f"/proc/{process}/cmdline")
        if ancestor == os.getpid() and title.exists() and b"ray::Worker" in title.read_bytes():
            found.append(process)
    return found


def test_two_workers_give_the_tables_of_one_process(cluster: None, tiny_model: Path, pairs: str) -> None:
    pooled = open_model(str(tiny_model), workers=Workers(count=2), cache=False)
    found = evaluate(pairs, pooled)
    assert_same(found, evaluate(pairs, open_model(str(tiny_model), cache=False)))
    assert found.manifest["model"]["notes"]["workers"] == 2
    assert found.manifest["model"]["notes"]["scheduler"] == "trie"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found through /proc")
def test_a_worker_killed_in_the_middle_changes_nothing(cluster: None, tiny_model: Path, pairs: str) -> None:
    pooled = open_model(str(tiny_model), workers=Workers(count=2), cache=False)
    seen: list[int] = []
    killed: list[int] = []

    def kill_one(step: str, done: int, total: int) -> None:
        if step != SCORING:
            return
        seen.append(done)
        if 0 < done < total / 2 and not killed:
            killed.extend(worker_processes()[:1])
            os.kill(killed[0], signal.SIGKILL)

    found = evaluate(pairs, pooled, progress=kill_one)
    assert killed
    assert_same(found, evaluate(pairs, open_model(str(tiny_model), cache=False)))
    # Each text came once: what is counted goes up to all of them and no further.
    assert seen == sorted(set(seen))
    assert seen[-1] == 2 * N_PAIRS
    assert found.manifest["scored"]["now"] == 2 * N_PAIRS


def test_a_worker_s_refusal_is_the_user_s_sentence(cluster: None, tiny_model: Path) -> None:
    pooled = open_model(str(tiny_model), workers=Workers(count=1), cache=False)
    with pytest.raises(FelicityError, match="reads at most 64; shorten it"):
        pooled.score("cat " * 80)


def test_workers_with_other_files_are_refused(cluster: None, tiny_model: Path, tmp_path: Path) -> None:
    other = open_model(str(make_tiny_model(tmp_path / "other", seed=3)), cache=False).engine
    pooled = open_model(str(tiny_model), workers=Workers(count=1), cache=False).engine
    assert isinstance(pooled, PoolEngine)
    mixed = PoolEngine(other, pooled._open_again, Workers(count=1))
    prompts = pl.DataFrame({"request": ["1"], "context_text": [""], "text": ["cat"]})
    with pytest.raises(FelicityError, match="A worker of the cluster has other files"):
        list(mixed.score(prompts))


def test_the_command_line_spreads_a_run(
    cluster: None, tiny_model: Path, pairs: str, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    said = cli("run", pairs, "-m", tiny_model, "--workers", "ray", "-o", tmp_path / "run", "--no-report")
    assert said.code == 0, said.err
    assert "60 items of" in said.out


@pytest.mark.parametrize(
    ("machines", "count", "wanted"),
    [
        # Two cards for three: two on one of them, so half a card each.
        ([{"CPU": 8.0, "GPU": 2.0}], 3, {"num_cpus": 1.0, "num_gpus": 0.5}),
        # A seventh rounded up in ten-thousandths, seven times, would be more than a card.
        ([{"CPU": 8.0, "GPU": 1.0}], 7, {"num_cpus": 1.0, "num_gpus": 0.1428}),
        # The cards' machine has one core for two workers; the other machine's cores are of no use to them.
        ([{"CPU": 1.0, "GPU": 2.0}, {"CPU": 8.0}], 2, {"num_cpus": 0.0, "num_gpus": 1.0}),
        # With two cores each, five and three would hold two and one.
        ([{"CPU": 5.0}, {"CPU": 3.0}], 4, {"num_cpus": 1.0}),
        ([{"CPU": 8.0}, {"CPU": 8.0}], 2, {"num_cpus": 8.0}),
        ([{"CPU": 2.0}], 3, {"num_cpus": 0.0}),
    ],
)
def test_all_workers_find_room(machines: Machines, count: int, wanted: dict[str, float]) -> None:
    assert divide_resources(machines, count) == wanted


def start_doublers(passed_on: Path, **share: float) -> Callable[[], Any]:
    """Workers that double a number; a negative one kills its first worker, 13 every one, 0 is an error."""

    class Doubler:
        def hello(self) -> None:
            pass

        def score(self, number: int) -> int:
            first = passed_on / str(number)
            if number == 13 or (number < 0 and not first.exists()):
                first.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if not number:
                raise ValueError("nothing to double")
            return 2 * number

    return lambda: ray.remote(**share)(Doubler).remote()


def test_deaths_are_counted_for_each_shard(cluster: None, tmp_path: Path) -> None:
    # Six shards kill a worker each: more than one shard may.
    pool = WorkerPool(start_doublers(tmp_path, num_cpus=0))
    assert sorted(pool.work([(-n,) for n in range(1, 7)], 1)) == [-12, -10, -8, -6, -4, -2]


def test_a_shard_that_kills_every_worker_stops_the_run(cluster: None, tmp_path: Path) -> None:
    pool = WorkerPool(start_doublers(tmp_path, num_cpus=0))
    with pytest.raises(FelicityError, match="A worker died 5 times at the same work .*more memory"):
        list(pool.work([(1,), (13,)], 1))


def test_an_error_in_a_worker_is_no_death(cluster: None, tmp_path: Path) -> None:
    pool = WorkerPool(start_doublers(tmp_path, num_cpus=0))
    with pytest.raises(FelicityError, match=r"A worker met an error \(ValueError: nothing to double\); run"):
        list(pool.work([(0,)], 1))


def test_workers_without_room_hold_nothing_up(cluster: None, tmp_path: Path) -> None:
    pool = WorkerPool(start_doublers(tmp_path, num_cpus=2))
    assert sorted(pool.work([(1,), (2,), (3,)], 3)) == [2, 4, 6]


def test_a_cluster_without_room_is_told_of(cluster: None, tmp_path: Path) -> None:
    pool = WorkerPool(start_doublers(tmp_path, num_cpus=64), seconds=1.0)
    with pytest.raises(
        FelicityError, match="No worker of the cluster answered within 1 s; check with `ray status`"
    ):
        list(pool.work([(1,)], 1))


def test_shards_are_cut_the_same_way_whatever_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_pool, "SHARD", 4)
    names = [f"{n:02}" for n in range(10)]
    prompts = pl.DataFrame({"request": names, "context_text": [None] * 10, "text": names})
    whole = [shard["request"].to_list() for shard, _ in split_shards(prompts, set())]
    assert whole == [names[:4], names[4:8], names[8:]]
    rest = list(split_shards(prompts, {*names[:4], "05"}))
    assert [shard["request"].to_list() for shard, _ in rest] == whole[1:]
    assert rest[0][1] == ["05"]


def test_what_cannot_be_spread_is_refused(cli: Callable[..., Answer]) -> None:
    for workers in ("0", "two", "-1"):
        with pytest.raises(BadInput, match="neither 'ray' nor a number"):
            Workers.parse(workers)
    assert "add --workers ray" in cli("run", "starter", "--ray-address", "auto").err


def test_a_served_model_is_not_spread(tiny_model: Path) -> None:
    with pytest.raises(NotPossible, match="use --concurrency"):
        ray_pool.pool_engine(
            open_model(str(tiny_model), cache=False).engine,
            "openai:tiny",
            policy=ray_pool.Policy(),
            compute=ray_pool.Compute(),
            workers=Workers(),
        )
