"""One module per kind of matplotlib figure, drawn without global pyplot state.

Which figures a report shows is decided in `report.gallery` and its companions.
"""
