"""Tables and fitted densities that several tests share: a fit is made once."""

import numpy as np
import pytest

import zhat

#: Enough to learn something, and done in a second.
STEPS = 40


def mixed_frame(rows=1200, seed=0):
    """A frame with a column of every kind, and holes."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, rows)
    region = rng.choice(["north", "east", "west"], rows)
    frame = pd.DataFrame(
        {
            "height": height.astype("float32"),
            "weight": (0.9 * (height - 100) + rng.normal(0, 5, rows)).round(1),
            "children": rng.poisson(1.5, rows),
            "pets": pd.array(rng.poisson(0.7, rows), dtype="Int64"),
            "region": pd.Categorical(region, categories=["north", "east", "west"]),
            "word": np.where(height > 170, "tall", "short"),
            "member": rng.random(rows) < 0.3,
            "born": np.datetime64("1990-01-01") + rng.integers(0, 9000, rows).astype("timedelta64[D]"),
        }
    )
    frame.loc[3, "weight"] = np.nan
    frame.loc[5, "pets"] = pd.NA
    frame.loc[7, "region"] = np.nan
    frame.loc[9, "born"] = pd.NaT
    return frame


@pytest.fixture(scope="session")
def numbers():
    """Rows of two columns that depend on each other."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=1200)
    return np.column_stack([first, 0.5 * first + 0.3 * rng.normal(size=1200)])


@pytest.fixture(scope="session")
def fitted(numbers):
    return zhat.Density(steps=STEPS).fit(numbers)


@pytest.fixture(scope="session")
def frame():
    return mixed_frame()


@pytest.fixture(scope="session")
def fitted_frame(frame):
    return zhat.Density(steps=STEPS).fit(frame)
