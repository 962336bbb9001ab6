"""One module per kind of matplotlib figure, drawn without global pyplot state.

Which figures a report shows is decided in `experiments.reports.galleries`.
"""
