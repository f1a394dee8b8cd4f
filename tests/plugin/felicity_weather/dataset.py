"""A dataset is the path of its catalogue entry; the entry says how its files are read and judged."""

from pathlib import Path

WEATHER = Path(__file__).with_name("weather.toml")
