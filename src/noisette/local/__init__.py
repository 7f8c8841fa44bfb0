"""Local privacy: no trusted server, each person's own report is private.

contract       what a protocol is: `client` makes a report, `estimate` reads many; aggregates add up
frequencies    what frequency oracles share: unbiased shares, exact variances, error bars, consistency
choosing       `choose`: the protocol with the least variance for a domain and an epsilon
wire           `Round`, and its reports as short records
collector      `Collector`: files of reports, each once, from any number of collectors
grr, …         a file for each protocol, with the client and the collector side by side
windows        the law on a lattice that means and distributions share
shuffle, memo  what shuffled reports promise, and a device that keeps its reports
"""

from typing import TYPE_CHECKING, Any

from noisette.local.affine_subsets import AffineSubsets
from noisette.local.choosing import Choice, choose, compare
from noisette.local.collector import Collected, Collector
from noisette.local.contract import Aggregate, LocalProtocol
from noisette.local.density import Distribution, SquareWave
from noisette.local.frequencies import FrequencyOracle, Shares
from noisette.local.grr import GRR
from noisette.local.hadamard import HadamardResponse
from noisette.local.heavy_hitters import HeavyHitters, PrefixTree, code_of_text, text_of_code
from noisette.local.means import Duchi, Hybrid, Mean, Piecewise
from noisette.local.memo import Memo
from noisette.local.olh import OLH
from noisette.local.planar_laplace import MeanPlace, MetricPrivacy, PlanarLaplace
from noisette.local.projective import ProjectiveGeometry
from noisette.local.rappor import Rappor
from noisette.local.shuffle import shuffled, shuffled_delta
from noisette.local.split_queries import SplitQueries
from noisette.local.subset import SubsetSelection
from noisette.local.unary import OUE, SUE
from noisette.local.vectors import PrivUnitG, VectorMean
from noisette.local.wire import Round
from noisette.names import absent

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "SUE",
    "AffineSubsets",
    "Aggregate",
    "Choice",
    "Collected",
    "Collector",
    "Distribution",
    "Duchi",
    "FrequencyOracle",
    "HadamardResponse",
    "HeavyHitters",
    "Hybrid",
    "LocalProtocol",
    "Mean",
    "MeanPlace",
    "Memo",
    "MetricPrivacy",
    "Piecewise",
    "PlanarLaplace",
    "PrefixTree",
    "PrivUnitG",
    "ProjectiveGeometry",
    "Rappor",
    "Round",
    "Shares",
    "SplitQueries",
    "SquareWave",
    "SubsetSelection",
    "VectorMean",
    "choose",
    "code_of_text",
    "compare",
    "shuffled",
    "shuffled_delta",
    "text_of_code",
]


if not TYPE_CHECKING:  # type checkers know the names

    def __getattr__(name: str) -> Any:
        """Say which name may have been meant."""
        raise absent(__name__, name, __all__)
