from .pages import report_study as report_study
