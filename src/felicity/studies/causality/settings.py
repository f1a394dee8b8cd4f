"""The settings of the study of implicit causality."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from felicity.core.settings import argument, option
from felicity.studies.definition import StudyDefinition

if TYPE_CHECKING:
    from felicity.core.engine import Sampling

CONTINUATIONS = "Continuations"
# At most so many tokens with the prompt, cut at the first full stop, as in the paper.
WHOLE_TOKENS = 50
FULL_STOP = "."


@dataclass(frozen=True, kw_only=True)
class CausalitySettings:
    """Ask models which pronoun follows each verb, and have them continue every prompt.

    Surprisal of both pronouns after prompts such as *The man admired the woman because*, agreement with
    people's bias, mixed models; continuations with their flags and the noun they refer to. People can rate
    the continuations (`felicity rate new --from FOLDER`), and their ratings are analysed with
    `felicity report FOLDER --ratings`. After Huynh et al. (2022).

    \b
    Examples:
      felicity causality -m smollm2 -o runs/causality
      felicity causality my_verbs.toml -m gpt2 -m smollm2 --no-continue
      felicity causality --sample 2 --temperature 0.8 --samples 3 -o runs/sampled
    """

    stimuli: str | Path = argument(
        "implicit_causality, or a .toml file with your own verbs and nouns.",
        default="implicit_causality",
        metavar="STIMULI",
    )
    frequency: Path | None = option(
        None, "Table with verb and log_frequency, or count.  [default: the paper's, or wordfreq]"
    )
    continuations: bool = option(True, "Have the models continue the prompts.", flag="--continue")
    tokens: int = option(
        WHOLE_TOKENS,
        "Maximum number of tokens of prompt and continuation together.",
        least=2,
        panel=CONTINUATIONS,
    )
    stop: str = option(FULL_STOP, "Cut continuations at this text.", panel=CONTINUATIONS)
    temperature: float = option(0.0, "Above 0, continuations are sampled.", least=0, panel=CONTINUATIONS)
    top_p: float = option(
        1.0,
        "Sample from the most probable tokens with this much probability in total.",
        panel=CONTINUATIONS,
    )
    samples: int = option(1, "Continuations per prompt, if sampled.", least=1, panel=CONTINUATIONS)
    beams: int = option(1, "Number of beams in beam search.", least=1, panel=CONTINUATIONS)
    sample: int | None = option(None, "Use only this many noun pairs, the first ones.", least=1)
    seed: int = option(0, "Seed of the samples.", least=0)
    ratings: Path | None = option(
        None,
        "People's ratings of continuations: ratings.csv, or the folder, of `felicity rate export`.",
        analysis=True,
    )
    rated: str | None = option(
        None, "Model whose continuations were rated, if several wrote some.", metavar="MODEL", analysis=True
    )

    @property
    def sampling(self) -> "Sampling | None":
        """How prompts are continued; None if they are not."""
        from felicity.core.engine import Sampling

        if not self.continuations:
            return None
        return Sampling(
            tokens=self.tokens,
            whole=self.tokens,
            stop=(self.stop,),
            temperature=self.temperature,
            top_p=self.top_p,
            samples=self.samples,
            seed=self.seed,
            beams=self.beams,
        )


STUDY = StudyDefinition(
    name="causality",
    title="Implicit causality",
    settings=CausalitySettings,
    code="felicity.studies.causality",
)
