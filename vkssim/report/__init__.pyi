from .reading import read_report as read_report
from .results import worst_frames as worst_frames
from .writing import WRITERS as WRITERS
from .writing import render as render
from .writing import write as write
