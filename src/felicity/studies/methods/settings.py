"""The settings of the study of direct and metalinguistic judgements."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.settings import option
from felicity.studies.data_settings import DataSettings
from felicity.studies.definition import StudyDefinition

METHODS = ("direct", "in_template", "question", "yes_no")


@dataclass(frozen=True, kw_only=True)
class MethodsSettings(DataSettings):
    """Compare what a model's probabilities say about pairs with what it answers when it is asked.

    direct compares the probabilities of the sentences, or of words after a context. in_template does so after
    a sentence that presents them. question asks which of the two is better, in either order, and yes_no
    whether each is acceptable: the probability of Yes against that of No. The page gives the accuracy of each
    method and how often two of them agree. For pairs and cloze sets, and causal or served models. The prompts
    are felicity's own in the language of the set, or those of a TOML file. After Hu and Levy (2023).

    \b
    Examples:
      felicity methods starter --sample 5
      felicity methods blimp --sample 10 --method direct --method yes_no
      felicity methods my_pairs.csv -m smollm2 --prompts my_prompts.toml
    """

    methods: tuple[str, ...] = option(
        (), "A method; repeatable.  [default: all four]", flag="--method", choices=METHODS
    )
    prompts: Path | None = option(
        None, "TOML file with your own prompts.  [default: built-in]", metavar="FILE"
    )
    prompt_language: str = option(
        "en", "Language of the built-in prompts, for a set that does not state its own: de, en, fr or nl."
    )


STUDY = StudyDefinition(
    name="methods",
    title="Direct and metalinguistic judgements",
    settings=MethodsSettings,
    code="felicity.studies.methods",
)
