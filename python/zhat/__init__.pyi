from zhat import log_z as log_z
from zhat import torch as torch
from zhat._anomaly import AnomalyDetector as AnomalyDetector
from zhat._contrast import contrast as contrast
from zhat._contrast import methods as methods
from zhat._density import Density as Density
from zhat._density import TableWarning as TableWarning
from zhat._imputer import Imputer as Imputer

__version__: str
