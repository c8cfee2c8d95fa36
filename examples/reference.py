"""Writes `reference.json`: the numbers of scikit-learn, NumPy and SciPy that the tests of `gaussian_process.rs`, `least_squares.rs`,
`kalman_smoother.rs` and `digits/src/components.rs` compare with.

    pip install numpy scipy scikit-learn
    python examples/reference.py
"""

import json
import pathlib

import numpy as np
import scipy
import sklearn
from scipy.optimize import curve_fit, minimize
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

HERE = pathlib.Path(__file__).parent


def gaussian_process():
    rng = np.random.default_rng(1)
    at = rng.uniform(0.0, 4.0, (30, 2))
    height = np.sin(2.0 * at[:, 0]) + 0.4 * np.cos(0.7 * at[:, 1]) + 0.1 * rng.standard_normal(30)
    queries = rng.uniform(0.0, 4.0, (6, 2))

    def optimum(loss, start, bounds):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-16, "gtol": 1e-10})
        return found.x, found.fun

    kernel = ConstantKernel(1.0, (1e-6, 1e6)) * RBF([1.0, 1.0], (1e-6, 1e6)) + WhiteKernel(0.1, (1e-6, 1e6))
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=optimum).fit(at, height)
    mean, error = model.predict(queries, return_std=True)
    first, gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    noise = model.kernel_.k2.noise_level
    return {
        "at": at.tolist(),
        "height": height.tolist(),
        "queries": queries.tolist(),
        # At a variance and scales of 1 and a noise of 0.1. The gradient is with respect to the logarithms of the variance, the scales and the noise.
        "first_log_likelihood": first,
        "first_gradient": gradient.tolist(),
        "log_likelihood": model.log_marginal_likelihood_value_,
        "variance": model.kernel_.k1.k1.constant_value,
        "scales": model.kernel_.k1.k2.length_scale.tolist(),
        "noise": noise,
        "mean": mean.tolist(),
        # scikit-learn returns the standard deviations of observations. Here the variance of the noise is subtracted.
        "error": np.sqrt(error**2 - noise).tolist(),
    }


# E. Hubble, 1929: as in `least_squares.rs`.
NEBULAE = np.array([
    (0.032, 170), (0.034, 290), (0.214, -130), (0.263, -70), (0.275, -185), (0.275, -220), (0.45, 200), (0.5, 290),
    (0.5, 270), (0.63, 200), (0.8, 300), (0.9, -30), (0.9, 650), (0.9, 150), (0.9, 500), (1.0, 920),
    (1.1, 450), (1.1, 500), (1.4, 500), (1.7, 960), (2.0, 500), (2.0, 850), (2.0, 800), (2.0, 1090),
])


def least_squares():
    distance, velocity = NEBULAE.T
    design = np.stack([np.ones_like(distance), distance], 1)
    parameters, squares, *_ = np.linalg.lstsq(design, velocity)
    freedom = len(distance) - 2
    covariance = squares[0] / freedom * np.linalg.inv(design.T @ design)
    fitted, by_scipy = curve_fit(lambda d, a, b: a + b * d, distance, velocity)
    assert np.allclose(fitted, parameters) and np.allclose(by_scipy, covariance)
    at = np.array([0.0, 1.0, 2.2])
    grid = np.stack([np.ones_like(at), at], 1)
    quantile = scipy.stats.t.ppf(0.975, freedom)
    return {
        "parameters": parameters.tolist(),
        "covariance": covariance.tolist(),
        "at": at.tolist(),
        "curve": (grid @ parameters).tolist(),
        "band": (quantile * np.sqrt(np.einsum("gt,tu,gu->g", grid, covariance, grid))).tolist(),
    }


def kalman_smoother():
    rng = np.random.default_rng(2)
    tracks, times = 3, 12
    accuracy = np.array([0.2, 0.5, 1.0])
    turns = np.linspace(0.0, 3.0, times)[:, None] + np.arange(tracks)
    path = 5.0 * np.stack([np.cos(turns), np.sin(turns)], -1)
    seen = path + accuracy[:, None] * rng.standard_normal(path.shape)

    eye, none = np.eye(2), np.zeros((2, 2))
    motion = np.block([[eye, eye], [none, eye]])
    drift = 0.1 * np.block([[eye / 3.0, eye / 2.0], [eye / 2.0, eye]])
    sight = np.block([[eye, none]])
    means, covariances = np.zeros((times, tracks, 4)), np.zeros((times, tracks, 4, 4))
    for track in range(tracks):
        noise = accuracy[track] ** 2 * eye
        mean, covariance = np.zeros(4), 100.0 * np.eye(4)
        predicted, filtered = [], []
        for time in range(times):
            mean, covariance = motion @ mean, motion @ covariance @ motion.T + drift
            predicted.append((mean, covariance))
            gain = covariance @ sight.T @ np.linalg.inv(sight @ covariance @ sight.T + noise)
            mean = mean + gain @ (seen[time, track] - sight @ mean)
            covariance = covariance - gain @ sight @ covariance
            filtered.append((mean, covariance))
        for time in reversed(range(times)):
            if time < times - 1:
                (own, own_covariance), (next_, next_covariance) = filtered[time], predicted[time + 1]
                gain = own_covariance @ motion.T @ np.linalg.inv(next_covariance)
                mean = own + gain @ (mean - next_)
                covariance = own_covariance + gain @ (covariance - next_covariance) @ gain.T
            means[time, track], covariances[time, track] = mean, covariance
    return {
        "accuracy": accuracy.tolist(),
        "seen": seen.tolist(),
        "mean": means.tolist(),
        "variance": np.einsum("...ii->...i", covariances).tolist(),
        "first_covariance": covariances[0].tolist(),
    }


def components():
    table = np.loadtxt(HERE / "data/digits.csv.gz", delimiter=",")
    images = table[:, :64] / 16.0
    model = PCA(n_components=8, svd_solver="full").fit(images)
    return {
        "mean": model.mean_.tolist(),
        "variances": model.explained_variance_.tolist(),
        "shares": model.explained_variance_ratio_.tolist(),
        # The sign of a direction is arbitrary: here the element with the greatest absolute value is positive.
        "directions": signed(model.components_[:2]).tolist(),
        "class_means": [(images[table[:, 64] == digit] - model.mean_).mean(0)[:3].tolist() for digit in range(10)],
    }


def signed(rows):
    greatest = np.abs(rows).argmax(1)
    return rows * np.sign(np.take_along_axis(rows, greatest[:, None], 1))


def main():
    reference = {
        "versions": {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__},
        "gaussian_process": gaussian_process(),
        "least_squares": least_squares(),
        "kalman_smoother": kalman_smoother(),
        "components": components(),
    }
    lines = []
    for part, values in reference.items():
        inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
        lines.append(f" {json.dumps(part)}: {{\n{inner}\n }}")
    (HERE / "reference.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
