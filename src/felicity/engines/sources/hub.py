"""Models from the Hugging Face hub: only the files that are needed, kept in the hub's own cache."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from felicity.core.errors import BadInput, FelicityError, NotPossible, UnknownName
from felicity.core.progress import Progress, no_progress
from felicity.engines.sources.folders import TOKENIZER_EXTRAS, VOCABULARIES, check_folder

# Python files are only run with the user's permission (`model_code`).
SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "*.tiktoken",
    "*.py",
    *VOCABULARIES,
    *TOKENIZER_EXTRAS,
)
# In the order in which transformers looks for them.
WEIGHT_PATTERNS = (
    ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin"),
)


class HubName(NamedTuple):
    """A repository on the hub and a revision, `gpt2` or `org/name@step100`."""

    repository: str
    revision: str

    @classmethod
    def parse(cls, spec: str) -> "HubName":
        """The parts of `spec`; without `@` the revision is the main branch."""
        repository, _, revision = spec.partition("@")
        return cls(repository, revision or "main")


def find_on_disk(name: HubName) -> Path | None:
    """The folder of a completely downloaded model, without using the network."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name.repository, "config.json", revision=name.revision)
        if not isinstance(cached, str):
            return None
        check_folder(Path(cached).parent)
    except (HFValidationError, BadInput):
        return None
    return Path(cached).parent


def fetch_from_hub(
    name: HubName, *, list_names: Callable[[], list[str]], progress: Progress = no_progress
) -> Path:
    """Download a model's configuration, tokenizer and weights, preferably as safetensors.

    `list_names` gives the model names to suggest from if the hub has no model of this name.

    Raises UnknownName, NotPossible for a model with restricted access, FelicityError if the hub does not
    answer, BadInput if the repository contains no model.
    """
    from huggingface_hub import snapshot_download

    for weights in WEIGHT_PATTERNS:
        with _hub_errors(name, list_names):
            folder = Path(
                snapshot_download(
                    name.repository,
                    revision=name.revision,
                    allow_patterns=[*SMALL_FILES, *weights],
                    tqdm_class=_reporting_bar(f"download {name.repository}", progress),
                )
            )
        if any((folder / file).is_file() for file in weights[:2]):
            break
    check_folder(folder)
    return folder


def hub_models() -> list[tuple[str, Path, int]]:
    """Repository, folder and bytes of every complete model in the hub's cache."""
    from huggingface_hub import CacheNotFound, scan_cache_dir

    with _quiet_hub():
        try:
            repositories = scan_cache_dir().repos
        except CacheNotFound:
            return []
    rows = []
    for repository in sorted(repositories, key=lambda entry: str(entry.repo_id)):
        folder = find_on_disk(HubName.parse(repository.repo_id)) if repository.repo_type == "model" else None
        if folder is not None:
            rows.append((str(repository.repo_id), folder, int(repository.size_on_disk)))
    return rows


@contextmanager
def _hub_errors(name: HubName, list_names: Callable[[], list[str]]) -> Iterator[None]:
    """Report the errors of the hub's library in a sentence."""
    from huggingface_hub import errors

    where = f"'{name.repository}'"
    try:
        with _quiet_hub():
            yield
    except errors.GatedRepoError as error:
        raise NotPossible(
            f"The model {where} is restricted to those who accepted its terms on the hub; accept them there, "
            "then log in with `hf auth login` or set HF_TOKEN."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise BadInput(f"The model {where} has no revision '{name.revision}' on the hub.") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        hint = "it is neither a local folder nor a model on the hub that you can access."
        raise UnknownName("model", name.repository, list_names(), hint=hint) from error
    except Exception as error:
        # The HTTP library raises errors of its own that the hub's library does not wrap.
        reason = " ".join(str(error.__cause__ or error).split())[:160].rstrip(".")
        raise FelicityError(
            f"Cannot download the model {where} from the hub: {reason}; check the network, give -m a model "
            "folder, or omit -m to use the built-in model."
        ) from error


@contextmanager
def _quiet_hub() -> Iterator[None]:
    from huggingface_hub.utils import logging as hub_logging

    verbosity = hub_logging.get_verbosity()
    hub_logging.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        hub_logging.set_verbosity(verbosity)


def _reporting_bar(step: str, progress: Progress) -> Any:
    """A class of progress bars that draw nothing and report bytes."""
    tqdm: Any = import_module("huggingface_hub.utils").tqdm

    def start(bar: Any, *arguments: Any, **options: Any) -> None:
        # By default a bar counts nothing if there is no terminal.
        tqdm.__init__(bar, *arguments, **options | {"disable": False})

    def display(bar: Any, *_: Any, **__: Any) -> None:
        if bar.unit == "B" and bar.total:
            progress(step, int(bar.n), int(bar.total))

    def close(bar: Any) -> None:
        bar.disable = True

    return type("ReportingBar", (tqdm,), {"__init__": start, "display": display, "close": close})
