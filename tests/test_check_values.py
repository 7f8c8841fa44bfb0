"""The numbers to hit, where the shared list is found beside the project; those of later releases are left out."""

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import noisette as nz
from noisette.holdout.bounds import hoeffding
from noisette.holdout.max_information import iid_max_information, max_information
from noisette.laws import DiscreteGaussian, DiscreteLaplace
from noisette.privacy.convert import gaussian_delta
from noisette.privacy.pld.compose import composed_delta, composed_epsilon
from noisette.privacy.pld.loss import Normal, Subsampled
from noisette.releases.strategies.haar import Haar
from noisette.releases.tree import Tree
from tests import services

LARGE = 4_294_967_291  # a prime: the buckets of local hashing are even to nine digits
LIST = services.SHARED / "check_values.json"
VALUES = {v["name"]: v for v in json.loads(LIST.read_text())} if LIST.exists() else {}


def number(text: Any) -> Fraction:
    """Read '1e-6', 0.1, 'ln2' (as the nearest float)."""
    if isinstance(text, str) and text.startswith("ln"):
        return Fraction(math.log(int(text.removeprefix("ln"))))
    return Fraction(str(text))


def geometric(i: dict[str, Any]) -> nz.Geometric:
    return nz.Geometric(1 / number(i["epsilon"]))


def analytic_sigma(i: dict[str, Any]) -> float:
    promise = nz.Approx(i["epsilon"], i["delta"])
    return float(nz.calibrate(nz.Gaussian, promise, sensitivity=i["l2_sensitivity"]).sigma)


def kfold_gaussian(i: dict[str, Any]) -> float:
    k = nz.sensitivity.Sensitivity(i["k"], i["k"], 1, i["k"], neighbours=nz.Neighbours.ADD_REMOVE)
    return nz.Gaussian(i["sigma"]).epsilon_at(i["delta"], k)


def truncated(i: dict[str, Any]) -> dict[str, float]:
    m = nz.TruncatedGeometric(1 / number(i["epsilon"]), high=i["n"])
    pairs = [(0, 0), (0, 3), (10, 3), (3, 3), (10, 10)]
    return {f"P(out={y}|true={x})": float(m.pmf(y, x)) for y, x in pairs}


def clamped_bias(i: dict[str, Any]) -> float:
    z = np.arange(1, 2000)
    return float(np.sum(z * geometric(i).pmf(z, 0)))


def zcdp(i: dict[str, Any]) -> dict[str, float]:
    return {"canonne2020_optimised": nz.ZCDP(i["rho"]).epsilon_at(i["delta"])}


def group(i: dict[str, Any]) -> dict[str, float]:
    together = nz.Approx(i["epsilon"], i["delta"]).group(i["k"])
    return {"epsilon": float(together.epsilon), "delta": float(together.delta)}


def grr(i: dict[str, Any]) -> float:
    return nz.RandomizedResponse(i["epsilon"], categories=i["domain"]).variance(i["n"], share=i["f"])


def sampled(sigma: Any, rate: Any) -> Subsampled:
    return Subsampled(Normal(1 / number(sigma)), number(rate))


def bracketed(epsilon: float) -> dict[str, float]:
    return {"upper": epsilon}


def subsampled(i: dict[str, Any]) -> dict[str, float]:
    loss = sampled(i["noise_multiplier"], i["sampling_prob"])
    return bracketed(composed_epsilon({loss: i["k"]}, float(i["delta"])))


def wavelet(i: dict[str, Any]) -> dict[str, float]:
    made, (low, high) = Haar(i["m"], equal=True), np.triu_indices(i["m"])
    scales = [1 / (share * i["epsilon"]) for share in made.shares(gaussian=False)]
    found = made.variances(low, high, [2 * scale**2 for scale in scales])
    full = found[i["m"] - 1]
    return {"lambda": max(scales), "max_range_variance": found.max(), "mean_range_variance": found.mean(),
            "full_range_variance": full}  # fmt: skip


def tree_prefixes(i: dict[str, Any]) -> dict[str, float]:
    sizes = tuple(i["fanout"] ** level for level in range(i["height"], -1, -1))
    ends, v = np.arange(sizes[0]), [i["per_node_variance"]] * len(sizes)
    prefixes = Tree(sizes[0], sizes).variances(np.zeros_like(ends), ends, v)
    return {"root": prefixes[-1], "leaf": prefixes[0]}


def bits(i: dict[str, Any]) -> dict[str, float]:
    independent = iid_max_information(i["epsilon"], i["n"], i["beta"])
    return {
        "pure_any_distribution_bits": float(max_information(i["epsilon"], i["n"]).bits),
        "product_distribution_beta_approx_bits": float(independent.bits),
    }


def adaptive(i: dict[str, Any]) -> dict[str, float]:
    fresh = hoeffding(i["n"], i["tau"])
    known = iid_max_information(i["epsilon"], i["n"], i["beta"])
    return {"nonadaptive": fresh, "adaptive_bound": known.bad_event(fresh)}


ANSWERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    r"analytic_gaussian_sigma_.*": analytic_sigma,
    r"gaussian_delta_.*": lambda i: gaussian_delta(1 / number(i["sigma"]), number(i["epsilon"])),
    r"kfold_gaussian_eps_.*": kfold_gaussian,
    r"continuous_gaussian_delta_.*": lambda i: gaussian_delta(
        1 / Fraction(math.isqrt(int(i["sigma_squared"]))), number(i["epsilon"])
    ),
    r"discrete_gaussian_delta_.*": lambda i: nz.Gaussian(math.isqrt(int(i["sigma_squared"])), grid=1).delta_at(
        i["epsilon"]
    ),
    r"discrete_gaussian_variance_.*": lambda i: DiscreteGaussian(i["sigma_squared"]).variance(),
    r"discrete_gaussian_pmf0_.*": lambda i: float(DiscreteGaussian(i["sigma_squared"]).pmf(0)),
    r"discrete_gaussian_rho_.*": lambda i: float(
        nz.Gaussian(math.isqrt(int(i["sigma_squared"])), grid=1).guarantee(i["sensitivity"]).rho
    ),
    r"geometric_pmf_.*": lambda i: [float(geometric(i).pmf(k, 0)) for k in i["k"]],
    r"geometric_variance_.*": lambda i: geometric(i).variance(),
    r"geometric_tail_ge5_.*": lambda i: float(1 - DiscreteLaplace(1 / number(i["epsilon"])).cdf(4)),
    r"truncated_geometric_.*": truncated,
    r"clamped_count_bias_.*": clamped_bias,
    r"laplace_95pct_halfwidth_b1": lambda i: nz.Laplace(i["scale"]).interval(0.95),
    r"randomized_response_p_.*": lambda i: nz.RandomizedResponse(i["epsilon"]).keep,
    r"grr_var_.*": grr,
    r"sue_var_.*": lambda i: nz.local.SUE(i["epsilon"], domain=9).variance(),
    r"oue_var_.*": lambda i: nz.local.OUE(i["epsilon"], domain=9).variance(),
    r"olh_var_.*": lambda i: {"integer_g": nz.local.OLH(i["epsilon"], domain=LARGE, buckets=i["g"]).variance()},
    r"hadamard_rr_var_.*": lambda i: nz.local.HadamardResponse(i["epsilon"], domain=9).variance(),
    r"zcdp_to_dp_.*": zcdp,
    r"kov_optimal_eps_.*": lambda i: (nz.Approx(i["eps0"], i["delta0"]) * i["k"]).epsilon_at(i["delta_total"]),
    r"kov_delta_at_eps0_.*": lambda i: (nz.Pure(i["eps0"]) * i["k"]).delta_at(i["eps_total"]),
    r"kov_delta_k2_.*": lambda i: (nz.Pure(math.log(2)) * i["k"]).delta_at(0),
    r"kfold_laplace_eps_.*": lambda i: bracketed(
        (nz.Laplace(i["scale"]).guarantee(i["l1_sensitivity"]) * i["k"]).epsilon_at(i["delta"])
    ),
    r"poisson_subsampled_gaussian_eps_.*": subsampled,
    r"subsampled_gaussian_1step_.*": lambda i: {"max": composed_delta({sampled(i["sigma"], i["q"]): 1}, 1.0)},
    r"privelet_haar_.*": wavelet,
    r"ols_tree_variance_.*": tree_prefixes,
    r"zcdp_of_pure_dp": lambda i: float((nz.Pure(i["epsilon"]) + nz.ZCDP(0)).rho),
    r"max_information_n\d+_.*": bits,
    r"max_information_transfer_hoeffding": adaptive,
    r"group_privacy_approx": group,
    r"float_ledger_trap_.*": lambda i: {
        "exact_remaining": float(number(i["budget"]) - sum((nz.Pure(c).epsilon for c in i["charges"]), Fraction(0)))
    },
}

NEVER_BELOW = {"analytic_gaussian_sigma", "kfold_gaussian_eps", "gaussian_delta", "zcdp_to_dp", "kov_"}


def answer_for(name: str) -> Callable[[dict[str, Any]], Any] | None:
    return next((f for pattern, f in ANSWERS.items() if re.fullmatch(pattern, name)), None)


KNOWN = [name for name in VALUES if answer_for(name)]


def as_dict(value: Any) -> dict[Any, float]:
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list) else {None: value}


def test_the_list_is_used():
    services.optional(LIST.name)
    assert len(KNOWN) >= 94, "fewer check values are recognised than this release answers"


@pytest.mark.parametrize("name", KNOWN or ["none"])
def test_check_value(name):
    services.optional(LIST.name)
    value = VALUES[name]
    answer = answer_for(name)
    assert answer is not None
    given, expected = as_dict(answer(value["inputs"])), as_dict(value["expected"])
    tolerance = value["tolerance"]
    for key, got in given.items():
        # A lattice of 2^-30 of the sensitivity stands behind "never below": it may cost a relative 1e-6, no more.
        relative = max(tolerance["rel"], 1e-6 if name.split("_eps")[0] in NEVER_BELOW or "gauss" in name else 1e-9)
        assert math.isclose(got, expected[key], rel_tol=relative, abs_tol=tolerance["abs"] + 1e-15), (key, got)
        if any(name.startswith(prefix) for prefix in NEVER_BELOW):
            assert got >= expected[key] * (1 - 1e-14)
