"""The sections of the page about context: each takes the study's tables and gives figures and rows."""
