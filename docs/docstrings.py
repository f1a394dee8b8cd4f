"""For the API pages: examples in docstrings are shown as code."""

import re

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Put every `>>>` example of a docstring into a fenced block."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found.group().rstrip()}\n```\n", obj.docstring.value
            )
