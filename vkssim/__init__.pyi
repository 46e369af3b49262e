# The public API: names that stay. Whatever is not here may change from version to version.

from . import errors as errors
from . import maps as maps
from . import report as report
from .arrays import ms_ssim as ms_ssim
from .arrays import ssim as ssim
from .errors import VkssimError as VkssimError
from .files import score_files as score_files
from .frames.options import PictureOptions as PictureOptions
from .frames.options import RawDescription as RawDescription
from .frames.options import Selection as Selection
from .frames.options import SourcePictures as SourcePictures
from .frames.pairing.offset import find_offset as find_offset
from .gradients import ms_ssim_and_grad as ms_ssim_and_grad
from .gradients import ssim_and_grad as ssim_and_grad
from .many import PairScores as PairScores
from .many import score_many as score_many
from .report.results import FrameScores as FrameScores
from .report.results import ScoreReport as ScoreReport
from .scorer import Scorer as Scorer
from .search.ladder import search_ladder as search_ladder
from .search.recipe import EncoderSpec as EncoderSpec
from .search.search import search_setting as search_setting
from .search.shots import search_shots as search_shots
from .utils.version import __version__ as __version__
