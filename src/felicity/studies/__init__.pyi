from .saved import report_study as report_study
