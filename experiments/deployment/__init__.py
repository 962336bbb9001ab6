"""Ready files for a federation on Flower: the app, certificates, keys and start scripts."""

from experiments.deployment.project import Project, write_project
from experiments.deployment.status import status_lines

__all__ = ["Project", "status_lines", "write_project"]
