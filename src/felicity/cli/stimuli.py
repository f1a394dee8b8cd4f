"""felicity stimuli: make items, have them reviewed, check them."""

import typer

from felicity.cli.stimuli_check import check
from felicity.cli.stimuli_design import design
from felicity.cli.stimuli_extend import extend
from felicity.cli.stimuli_pairs import pairs
from felicity.cli.stimuli_repair import repair
from felicity.cli.stimuli_review import review
from felicity.cli.stimuli_round_trip import round_trip
from felicity.cli.stimuli_template import template

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make stimuli, review them, check them.")
for command in (pairs, design, repair, template, extend, round_trip, review, check):
    app.command()(command)
