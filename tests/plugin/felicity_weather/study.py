"""A study: its settings are the options of its command and the keywords of its Python call."""

from dataclasses import dataclass

from felicity.core.settings import option
from felicity.studies import DataSettings, StudyDefinition


@dataclass(frozen=True, kw_only=True)
class RepetitionSettings(DataSettings):
    """Judge every sentence said several times in a row."""

    times: int = option(2, "How often a sentence is said.", least=2)


REPETITION = StudyDefinition(
    name="repetition",
    title="Repetition",
    settings=RepetitionSettings,
    code="felicity_weather.repetition",
)
