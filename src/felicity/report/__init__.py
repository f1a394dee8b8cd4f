"""Figures, tables and one HTML page."""

from felicity.report.input import ReportInput
from felicity.report.page import render_report, write_report

__all__ = ["ReportInput", "render_report", "write_report"]
