"""Every command of the command line as it should be given, and the folders of studies that they read.

`find_commands` and `list_options` read the commands that there are from the program itself, so that a new
command without a line here is noticed.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

import click

from felicity.cli.app import whole_program
from felicity.stimuli.extension import Extension
from tests.conftest import Answer, make_tiny_model
from tests.humans.studies import write_study
from tests.studies.acceptability.test_study import write_table
from tests.studies.causality.test_causality_parts import write_design

# What would start a cluster, ask a server for minutes, or score with the default model.
LEFT_ALONE = ("--model", "--ray-address", "--workers", "--url", "--open", "--tokenizer", "--length-tokenizer")
CLAIMS = """
paper = "mine"
title = "A paper"
citation = "An example"

[inputs]

[[table]]
id = "table1"
title = "Table 1"
columns = [{ name = "M", figure = "mean" }]
rows = [{ name = "all", condition = "all", cells = ["50.0"] }]
compute = "check.py:share"
"""
# What writes the folders that the lines below read.
BUILT = """
run {f}/pairs.csv {m} -o {f}/one
run {f}/pairs.csv -q -m {other} -o {f}/two --no-report
context {f}/pairs.csv {m} --lengths 0,30 --kind matched_acceptable -o {f}/context
acceptability {f}/rated.csv {m} -o {f}/acceptability --corpus {f}/corpus.txt --unseen 0.9
cloze {f}/blanks.csv {m} -o {f}/cloze
bias {f}/pairs.csv {m} -o {f}/bias
causality {f}/own.toml {m} -o {f}/causality --tokens 44
stimuli extend {f}/seeds.txt {m} -o {f}/extended --examples 1 --tokens 5 --most-requests 1
rate simulate {f}/rating -q
"""
LINES = """
judge "He left." "Him left." --context "It rained." {m}
surprisal {f}/corpus.txt {m}
surprisal {f}/pairs.csv --text good --by word -o {f}/surprisal.csv {m}
run {f}/pairs.csv -o {f}/out --no-report --sample 1 --seed 1 {m}
run {f}/pairs.csv -o {f}/out --no-report --measure lp --rule pair {m}
run {f}/pairs.csv --no-report -m openai:x --url http://127.0.0.1:1/v1 --patience 0.1
fill "The cat is ___." -k 2 {m}
generate "The cat" --tokens 2 --temperature 0 {m}
context {f}/pairs.csv --lengths 0,10 -o {f}/study --sample 1 --no-report {m}
context {f}/pairs.csv --contexts {f}/context/contexts.parquet -o {f}/study2 --no-report {m}
acceptability {f}/rated.csv -o {f}/accept2 --sample 4 --measure lp {m}
cloze {f}/blanks.csv -o {f}/cloze2 {m}
bias {f}/pairs.csv -o {f}/bias2 {m}
bias {f}/pairs.csv --debias {f}/fair.csv -o {f}/debias {m}
benchmark babylm --task wug_adj --sample 1 -o {f}/benchmark {m}
trajectory {f}/pairs.csv -m {f}/training -o {f}/trajectory
methods {f}/pairs.csv --method yes_no --sample 1 -o {f}/methods {m}
reading {f}/times.csv --surprisal bits --context sentence -o {f}/reading
replay {f}/scores.csv --good good -o {f}/replayed --no-report
reproduce {f}/claims.toml -o {f}/reproduced
reproduce list
causality {f}/own.toml -o {f}/causal2 --tokens 40 --sample 1 {m}
rate new {f}/sampled --from {f}/causality --verbs 1 --bins 2 --pairs 1 --parts 1
report {f}/causality
compare {f}/one {f}/two --measure lp
compare {f}/run {f}/other
fit "y ~ x" {f}/table.csv
fit "y ~ x + (1 | g)" {f}/table.csv --family gaussian
fit "margin ~ suite" {f}/one
power --only-first 0.1 --only-second 0.2 -n 50
power {f}/one {f}/two
plot {f}/table.csv --y y --x x --by g -o {f}/plot.svg
report {f}/one
report {f}/context
report {f}/cloze
explore {f}/one {f}/two --static {f}/explore.html
explore {f}/context --no-browser
export {f}/one --to csv -o {f}/export --safe
export {f}/bias --to jsonl -o {f}/export2
measures count {f}/corpus.txt -o {f}/counts.tsv {m}
data ls
data get blimp --from {f}
data cite blimp
data show {f}/pairs.csv
stimuli check {f}/pairs.csv
stimuli check {f}/rated.csv
stimuli pairs --paradigm causative -n 2 {m} -o {f}/fair.csv
stimuli repair {f}/pairs.csv --tokenizer {model} -o {f}/repaired.csv
stimuli template neg --categories {f}/categories.csv -o {f}/template.csv
stimuli extend {f}/seeds.txt -o {f}/extended2 --examples 1 --tokens 3 --most-requests 1 {m}
stimuli round-trip {f}/corpus.txt -o {f}/degraded.csv --command cat --through x
stimuli review {f}/extended --summary
stimuli review {f}/extended --terminal --reviewer ada
stimuli review {f}/extended
stimuli check {f}/seeds.txt
stimuli design that_trace -n 1 --tokenizer {model}
stimuli check {f}/extended
data convert {f}/table.csv --prediction "(1;%a%) < (2;%a%)"
rate new {f}/rating2 --from {f}/pairs.csv --points 5
rate preview {f}/rating --no-browser
rate serve {f}/rating --port 0
rate simulate {f}/rating --raters 1 -o {f}/simulated -q
rate status {f}/rating --database {answers}
rate export {f}/rating --database {answers} -o {f}/ratings
rate forget {f}/rating
rate release {f}/rating --database {answers} --idle 600
rate withdraw {f}/rating --database {answers} --platform-id nobody
rate links {f}/rating {f}/seeds.txt --url https://ratings.example.org -o {f}/links.csv
rate reopen {f}/rating --database {answers} --below .4 --dry-run
models ls
models get {model}
models info {model} --bos none
models info {f}/model -k 3
models verify
measures
cache ls
cache clear --model tiny
train ngram {f}/corpus.txt -o {f}/ngram.arpa --order 2
train lstm {f}/corpus.txt -o {f}/lstm --dropout 0.1 --epochs 1 --embedding 4 --hidden 4
train tdlm {f}/corpus.txt -o {f}/tdlm --topics 2 --topic-size 4 --filters 2 --epochs 1 --hidden 4
"""


def find_commands(
    command: click.Command | None = None, path: tuple[str, ...] = ()
) -> dict[str, click.Command]:
    """The commands that there are, by their words."""
    command = command or whole_program()
    below = getattr(command, "commands", None)
    if below is None:
        return {" ".join(path): command}
    # A group that does something by itself, such as `measures`.
    alone = path and getattr(command, "invoke_without_command", False)
    found: dict[str, click.Command] = {" ".join(path): command} if alone else {}
    for name, one in below.items():
        found |= find_commands(one, (*path, name))
    return found


def find_command(line: list[str], commands: dict[str, click.Command]) -> str:
    """The words of a line that name its command."""
    return max((name for name in commands if line[: len(name.split())] == name.split()), key=len)


def list_options(command: click.Command) -> list[tuple[str, bool]]:
    """The options of a command, each with whether it is a flag."""
    return [
        (option.opts[0], option.is_flag)
        for option in command.params
        if isinstance(option, click.Option) and option.opts[0] not in LEFT_ALONE
    ]


def build_folders(cli: Callable[..., Answer], folder: Path) -> str:
    """Write finished runs and studies of every kind below `folder`; gives the model that they are of."""
    model = make_tiny_model(folder / "tiny", seed=1, window=512)
    other = make_tiny_model(folder / "other-tiny", seed=2, window=512)
    pairs = folder / "pairs.csv"
    rows = [f"s{n % 2},The cat{n} annoys Tim.,The cat{n} annoy Tim.\n" for n in range(12)]
    pairs.write_text("suite,good,bad\n" + "".join(rows))
    (folder / "corpus.txt").write_text("the cat sat\nthe dog sat\nno dog has ever barked here\n" * 20)
    (folder / "blanks.csv").write_text(
        "item,condition,context_text,text\n1,a,The cat saw the,dog\n2,a,The dog saw the,cat\n"
    )
    (folder / "seeds.txt").write_text(
        "A robin is a bird,\nA robin is not a tree,\nAn oak is a tree,\nAn oak is not a bird,\n"
    )
    (folder / "categories.csv").write_text('Category,Members\nBird,"robin,eagle"\nTree,"oak,elm"\n')
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "check.py").write_text("def share(inputs, **told):\n    return 50.0\n")
    words = [f"{n // 8 + 1},{n % 8 + 1},w{n},{300 + n * 37 % 97},{1 + n * n % 11}\n" for n in range(80)]
    (folder / "times.csv").write_text("sentence,position,word,self_paced,bits\n" + "".join(words))
    for step in (1, 2):
        make_tiny_model(folder / "training" / f"checkpoint-{step}", seed=step)
    write_table(folder / "rated.csv")
    write_study(folder / "rating", more="[design]\nquota = 2\n")
    write_design(folder, norms='"norms.csv"')
    for line in BUILT.format(m=f"-q -m {model}", other=other, f=folder).strip().splitlines():
        answer = cli(*shlex.split(line))
        assert answer.code == 0, (line, answer)
    for number in range(3):
        texts = [f"A thing{number} is a tool", f"A thing{number} is not a bird"]
        Extension(folder / "extended").log.append(
            "propose", {"request": 9, "item": f"9.1.{number}", "texts": texts, "flags": []}
        )
    return str(model)


def list_lines(model: str, folder: str) -> list[list[str]]:
    """Commands as they should be; `build_folders` has written what they read."""
    answers = f"sqlite:///{folder}/rating/simulation/answers.sqlite"
    lines = LINES.format(m=f"-m {model}", model=model, f=folder, answers=answers)
    return [shlex.split(line) for line in lines.strip().splitlines()]
