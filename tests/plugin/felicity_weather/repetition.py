"""What the study of repetition scores, computes and shows."""

import polars as pl

from felicity.report import Page, Section, percent
from felicity.run import StudyFolder, digest_items, plan_run
from felicity.studies import Job, Models, Planned, Study, name_data
from felicity_weather.study import RepetitionSettings


def plan(settings: RepetitionSettings, models: Models, folder: StudyFolder) -> Planned:
    """Every sentence repeated, and a run of each model on them."""
    data, items = settings.read()
    repeated = items.with_columns(pl.concat_str([pl.col("text")] * settings.times, separator=" "))
    opened = ((model.name, model.open()) for model in models)
    return Planned(
        jobs=(Job(model=name, lm=lm, plan=plan_run(data, repeated, lm)) for name, lm in opened),
        facts={"dataset": name_data(settings.dataset)},
        inputs=digest_items(repeated),
    )


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Accuracy of every model, from the estimates of its run."""
    rows = [
        folder.run(model).read("estimates").filter(level="overall").with_columns(model=pl.lit(model))
        for model in folder.models
    ]
    return {"accuracy": pl.concat(rows).select("model", "n", "accuracy", "low", "high")}


def sections(study: Study) -> Page:
    """One sentence and one table."""
    best = study["accuracy"].sort("accuracy", descending=True).row(0, named=True)
    rows = [(row["model"], str(row["n"]), percent(row["accuracy"])) for row in study["accuracy"].to_dicts()]
    return Page(
        title="Repetition",
        subject=study.facts["dataset"],
        question=f"Are sentences judged as well when they are said {study.settings.times} times?",
        answer=f"{best['model']} is right about {percent(best['accuracy'])}% of {best['n']} items.",
        sections=(
            Section(
                name="accuracy",
                title="Accuracy",
                lede="The share of items with the better sentence preferred, %.",
                columns=("Model", "n", "Accuracy"),
                rows=tuple(rows),
            ),
        ),
    )
