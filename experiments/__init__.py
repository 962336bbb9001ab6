"""Data, partitions, models, scenarios, metrics, reports and the `bcfl` command."""
