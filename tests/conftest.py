"""What the tests share: a tiny model made on the spot, the default model, published data, the CLI."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from felicity.core.files import cache_folder

if TYPE_CHECKING:
    from felicity.run import Model

# Parallel test processes share the processors: one thread each, in what they start too.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no failure: no test here is about time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).parents[1]
USER_CACHE = cache_folder()
TINY_WINDOW = 64
# A package of its own, which tests/test_plugins.py installs.
collect_ignore = ["plugin"]

IN_CI = os.environ.get("CI") == "true"
# The only reasons for which a test may skip in CI, by a part of the reason it gives.
MAY_SKIP_IN_CI = (
    "published data",  # absent from a bare clone; where it is present, `pytest_sessionfinish` says so
    "FELICITY_VLLM",  # vLLM needs an environment and a processor of its own
    "root may",  # root passes every permission check
    "may not mount",  # containers forbid it
)


def find_data() -> Path | None:
    """The published data: `$FELICITY_DATA`, else the folder beside the repository, if there."""
    named = os.environ.get("FELICITY_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder.resolve() if folder.is_dir() else None


DATA = find_data()


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of the tests stay out of the user's cache; the models in it are used."""
    folder = tmp_path_factory.mktemp("cache")
    (USER_CACHE / "models").mkdir(parents=True, exist_ok=True)
    (folder / "models").symlink_to(USER_CACHE / "models")
    os.environ["FELICITY_CACHE"] = str(folder)
    os.environ["HF_HUB_OFFLINE"] = "1"
    if DATA:
        os.environ["FELICITY_DATA"] = str(DATA)
    return folder


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, without models or scores."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FELICITY_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def published() -> Callable[[str], Path]:
    """A file or folder of the published data; skips where there is none, fails where it lacks the file."""

    def find(name: str) -> Path:
        if DATA is None:
            pytest.skip("the published data is not here; set FELICITY_DATA to its folder")
        path = DATA / name
        if not path.exists():
            pytest.fail(f"the published data lacks {name}")
        return path

    return find


@pytest.fixture(scope="session")
def default_model() -> "Model":
    """The default model, SmolLM2, loaded once per test process; its scores are not cached."""
    from felicity.run import open_model

    return open_model("smollm2", cache=False)


@pytest.fixture(scope="session")
def default_weights() -> Any:
    """The default model as transformers loads it, in float32, once per test process."""
    import torch
    from transformers import AutoModelForCausalLM

    from felicity.engines.sources import resolve_source

    return AutoModelForCausalLM.from_pretrained(resolve_source("smollm2").folder, dtype=torch.float32).eval()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small random GPT-2 and a byte-level tokenizer trained on a few sentences."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny-gpt2", seed=1)


def make_tiny_model(
    folder: Path, *, seed: int, width: int = 32, layers: int = 2, window: int = TINY_WINDOW
) -> Path:
    """Write a random GPT-2 of this width and depth with a small window."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    corpus = [
        "The cats annoy Tim.",
        "The cat annoys Tim.",
        "No dog has ever barked here.",
        "She saw herself.",
    ]
    tokenizer.train_from_iterator(corpus, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(fast),
        n_positions=window,
        n_embd=width,
        n_layer=layers,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Call the command line in this process."""
    from felicity.cli.app import main

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["felicity", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1 if stop.code else 0
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call


@pytest.fixture(autouse=True)
def _need_data(request: pytest.FixtureRequest) -> None:
    """Skip what is marked `data` without the published data, before it looks for them elsewhere."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("published")("")


def _fail_if_skipped(report: Any) -> None:
    """In CI a skipped test is a failed one, unless its reason is on the list."""
    if not IN_CI or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(allowed in reason for allowed in MAY_SKIP_IN_CI):
        report.outcome = "failed"
        report.longrepr = f"Nothing may skip in CI (tests/conftest.py), but: {reason}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files whose tests may take longest, so that no process ends with one of them alone."""
    longest: dict[Path, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        seconds = float(limit.args[0]) if limit else 0.0
        longest[item.path] = max(longest.get(item.path, 0.0), seconds)
    items.sort(key=lambda item: -longest[item.path])


def pytest_collection_finish() -> None:
    """What importing the tests has left stays for good; no later search for garbage need visit it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Report a test that skips in CI as failed."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Report a whole module that skips in CI as failed."""
    report = yield
    _fail_if_skipped(report)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With the published data here, a test that skips for want of it is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if DATA is not None and any("published data" in str(report.longrepr) for report in skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
