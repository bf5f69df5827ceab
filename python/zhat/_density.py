"""The density of a table, as a scikit-learn estimator."""

from __future__ import annotations

import json
import os
import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from zhat import _given, _settings, _weights
from zhat._estimator import TakesTables
from zhat._home import Home
from zhat._progress import listener
from zhat._rows import Rows, TableWarning, frame_of_numbers, is_category, text_of
from zhat._settings import Sections
from zhat._shown import Shown
from zhat._stored import SCHEMA, Stored
from zhat._values import build, filled


Imputation = namedtuple("Imputation", ["filled", "quantiles", "effective_sample_size", "trusted"])
Imputation.__doc__ = """Filled tables (a list where there are copies), a table for each quantile, and for every row the
effective number of draws behind its worst missing cell (NaN where none is missing) and whether it is to be trusted."""


class Density(TakesTables, Sections, Stored, Shown, Rows, DensityMixin, BaseEstimator):
    """The density of a table with columns of any kind: scores, draws, fills and judges itself.

    It finds out what the columns are (numbers, whole numbers, positive or bounded ones, words, dates), splits the rows into
    parts for training, validation and test, and fits an autoregressive density, with an energy on top where that pays. Missing
    cells are summed over. Takes arrays of numpy and frames of pandas, polars and pyarrow, and gives back what came in.

    Parameters
    ----------
    preset : {"small", "power", "gas", "hepmass", "miniboone", "bsds300"}, optional
        Settings to start from; by the size of the table where there is none.
    criterion : {"ml-is", "rnce", "smc-rnce", "smc-rnce-trajectory", "q-only"}, optional
        What is minimised.
    steps : int, optional
        Training steps.
    patience : int, optional
        Stop after so many validations without a better one; 0 for never.
    time : float or str, optional
        Time for the whole fit, in seconds or such as ``"10m"``: the schedule is fitted to it.
    max_time : float or str, optional
        Time after which training ends wherever it is.
    kinds : dict, optional
        What columns are where that is not to be found out, such as ``{"zip": "categorical"}``: continuous, positive,
        ``bounded:LOW:HIGH``, ``cyclic:PERIOD`` (1d, 24), integer, categorical or identifier.
    data, model, step, training, validation, evaluation : dict, optional
        Sections of settings with the names of ``zhat config``, such as ``training={"batch-size": 64}``. Underscores do for
        hyphens, and ``set_params(training__batch_size=64)`` sets a single one, as in a grid.
    out : path, optional
        Run directory, which the command ``zhat`` opens too; a temporary one where there is none.
    random_state : int, Generator, RandomState or None, default 0
        Seed of everything random. The same whole number gives the same bits as ``zhat fit --seed``.
    n_jobs : int, optional
        Threads; None and -1 for as many as there are cores. No result depends on it.
    device : str, default "cpu"
        Where networks run, such as ``"vulkan"``: one of those that the command ``zhat devices`` lists.
    verbose : int, default 0
        1 shows progress: a picture in a notebook, a line every few seconds elsewhere.

    Attributes
    ----------
    log_likelihood_ : float
        Of the test rows, in nats a row, in the units of the data.
    log_likelihood_error_ : float
        Its standard error over rows.
    verdict_ : dict
        Whether the likelihood is to be trusted, and if not why.
    kinds_ : list of dict
        What the columns are.
    given_ : list of str
        The columns that are given; none where the density is of all of them.
    results_ : dict
        Everything that the fit ended with, as in ``results.json``.
    history_ : list of dict
        What was measured on the way, as in ``metrics.jsonl``.
    run_dir_ : Path
        The run directory.

    Examples
    --------
    >>> import numpy as np, zhat
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> density = zhat.Density(steps=30).fit(X)
    >>> density.score_samples(X[:3]).shape
    (3,)
    >>> density.sample(5).shape
    (5, 2)
    >>> density.score_samples([[0.0, 0.0]]) > density.score_samples([[4.0, -4.0]])
    array([ True])
    """

    def __init__(
        self,
        *,
        preset: str | None = None,
        criterion: str | None = None,
        steps: int | None = None,
        patience: int | None = None,
        time: float | str | None = None,
        max_time: float | str | None = None,
        kinds: dict[str, str] | None = None,
        data: dict | None = None,
        model: dict | None = None,
        step: dict | None = None,
        training: dict | None = None,
        validation: dict | None = None,
        evaluation: dict | None = None,
        out: str | os.PathLike | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ):
        self.preset = preset
        self.criterion = criterion
        self.steps = steps
        self.patience = patience
        self.time = time
        self.max_time = max_time
        self.kinds = kinds
        self.data = data
        self.model = model
        self.step = step
        self.training = training
        self.validation = validation
        self.evaluation = evaluation
        self.out = out
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    # --- fitting ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, given: Any = None) -> "Density":
        """Fits the density of the rows of ``X``; ``y`` is ignored.

        ``sample_weight`` is what each row counts: one of weight 2 as if it stood there twice. With columns that are ``given``, by name or in
        an array by place from 0, the density is that of the others given these: :meth:`score_samples` is then conditional,
        :meth:`sample` needs their values, and :meth:`evaluate` says what predictions are worth. They may not have missing cells.

        When it is interrupted (Ctrl-C, ``KeyboardInterrupt``) what was learnt is kept: :meth:`resume` goes on with it.
        """
        table = self._read(X, reset=True)
        if table.rows < 2:
            # Of a single row every column looks like a name of rows, which is not what is wrong with it.
            raise ValueError("X has 1 sample, and a density needs at least 20, and two for each column")
        weights = _weights.checked(sample_weight, table.rows)
        said = {column.name: "categorical" for column in table.schema.columns if is_category(column)}
        asked = json.loads(_settings.wanted(self, table.source, said))
        asked["seed"] = _settings.seed(self.random_state)
        self._forget()
        self._home = Home(self.out, _settings.threads(self.n_jobs), self.device)
        self._schema, self._table_seen, self._weights_seen = table.schema, X, weights
        if given is not None:
            _settings.of_data(asked, "given", _given.names(given, self._name))
        if weights is not None:
            self._schema.weight = _weights.name_beside(table.names)
            _settings.of_data(asked, "weight", self._schema.weight)
            table.columns.append((self._schema.weight, "number", weights))
        tell = listener(self.verbose, self._told)
        try:
            results = self._home.run.fit(table.columns, table.source, json.dumps(asked), tell)
        finally:
            if hasattr(tell, "close"):
                tell.close()
        return self._fitted(json.loads(results))

    def resume(
        self, X: Any = None, *, sample_weight: Any = None, steps: int | None = None, max_time: float | str | None = None
    ) -> "Density":
        """Goes on with a fit that was interrupted, to the same bits as if it had not been; or with one that has ended, for more ``steps``.

        The rows and their weights must be those of the fit; they need not be given again in the same process. With ``max_time=0`` training ends at
        once, with what was learnt so far.
        """
        if not hasattr(self, "_home"):
            raise ValueError("there is nothing to resume: call fit first, or load the model")
        table = self._own(X, sample_weight, "resume")
        asked: dict[str, Any] = {"source": table.source}
        if steps is not None:
            asked["steps"] = int(steps)
        if max_time is not None:
            asked["max_time"] = _settings.seconds("max_time", max_time)
        tell = listener(self.verbose, self._told)
        try:
            results = self._home.run.resume(table.columns, table.source, json.dumps(asked), tell)
        finally:
            if hasattr(tell, "close"):
                tell.close()
        return self._fitted(json.loads(results))

    def _fitted(self, results: dict) -> "Density":
        self.results_ = results
        (self._home.path / SCHEMA).write_text(json.dumps(self._schema.to_json(), default=str))
        self._describe()
        return self

    def _describe(self) -> None:
        card = json.loads(self._home.run.card())
        self.kinds_ = card.get("kinds", [])
        self._columns = card["columns"]
        self.given_ = self._columns[: card["model"].get("given", 0)]
        self.run_dir_ = self._home.path
        if self.results_:
            test = self.results_["test"]
            self.log_likelihood_, self.log_likelihood_error_ = test["log_likelihood"], test["se_test"]
            self.verdict_ = self.results_["verdict"]

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            if name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)
        self._notes: list[str] = []

    def _told(self, event: dict) -> None:
        if event["event"] == "warning":
            # Who gives weights need not be told that there are some.
            if self._schema.weight and event["text"].startswith(f"rows count by column {self._schema.weight},"):
                return
            self._notes.append(event["text"])
            warnings.warn(event["text"], TableWarning, stacklevel=5)

    @property
    def history_(self) -> list[dict]:
        """What was measured on the way."""
        check_is_fitted(self, "results_")
        path = self._home.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    # --- what a density is for ---------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, in nats and in the units of the data; what is missing of a row is summed over.

        Where columns are given it is that of the others given these, and NaN for a row without one of them. An array of 32-bit floats, row by row in memory, is not copied.
        """
        return self._score(X)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows, as :class:`sklearn.mixture.GaussianMixture` has it; ``y`` is ignored."""
        return float(np.nanmean(self.score_samples(X)))

    def score_errors(self, X: Any) -> np.ndarray:
        """The standard error of every log-density: that of the draws which stand for missing cells."""
        return self._score(X)[1]

    def explain(self, X: Any) -> Any:
        """The log-density of each column given those before it: they sum to :meth:`score_samples`, and the lowest say what makes a row strange.

        Columns that are given are left out.
        """
        check_is_fitted(self, "results_")
        rows, table = self._rows(X)
        found = self._home.run.score(rows, table.source, True)[2][:, len(self.given_) :]
        self._warn_unknown()
        if table.schema.kind == "array":
            return found
        return frame_of_numbers(table.schema.kind, self._columns[len(self.given_) :], found, getattr(X, "index", None))

    def sample(
        self,
        n_samples: int = 1,
        *,
        given: dict | None = None,
        given_rows: Any = None,
        random_state: Any = None,
        particles: int | None = None,
    ) -> Any:
        """Draws rows, given the values of some columns if so wanted, such as ``given={"age": 40}``.

        With ``given_rows``, a table, ``n_samples`` for each of its rows, which stand together: what a row has is given, and the columns that
        the table has not, and cells that are missing, are drawn. An array has all columns, or those of ``fit(given=...)`` in their order.

        Without a ``random_state`` the estimator's own is taken. Columns that are no part of the model are left out of frames, and are NaN
        in arrays.
        """
        check_is_fitted(self, "results_")
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}, but must be a whole number, at least 1")
        state = self.random_state if random_state is None else random_state
        texts = [(self._name(name), text_of(value)) for name, value in dict(given or {}).items()]
        rows, source, index = None, "", None
        if given_rows is not None:
            if given:
                raise ValueError("given and given_rows: what is given are the cells of the rows; leave one of them out")
            rows, table = _given.rows(self, given_rows)
            source = table.source
            if table.schema.kind == self._schema.kind == "pandas":
                index = given_rows.index.repeat(n_samples)
        draws, told = self._home.run.sample(int(n_samples), texts, particles, _settings.seed(state), rows, source)
        if rows is not None:
            self._warn_unknown()
        for text in json.loads(told)["warnings"]:
            warnings.warn(text, TableWarning, stacklevel=2)
        columns = []
        for column in self._schema.columns:
            if column.name in self._columns:
                columns.append((column, self._decoded(column, draws[:, self._columns.index(column.name)])))
            elif self._schema.kind == "array":
                columns.append((column, np.full(len(draws), np.nan)))
        return build(self._schema, columns, index)

    def impute(
        self,
        X: Any,
        *,
        fill: str = "mean",
        quantiles: list[float] | None = None,
        copies: int = 1,
        particles: int = 500,
        random_state: Any = None,
        details: bool = False,
    ) -> Any:
        """``X`` with its missing cells filled: by the conditional ``"mean"`` (of words the likeliest), ``"median"``, or a ``"draw"``.

        What is not missing stays as it is. With ``copies`` (of draws) a list of tables; with ``quantiles`` or ``details`` an
        ``Imputation`` with everything beside it.
        """
        check_is_fitted(self, "results_")
        rows, table = self._rows(X, model_order=False)
        levels = [float(level) for level in (quantiles or [])]
        state = self.random_state if random_state is None else random_state
        lines, names, _ = self._home.run.impute(
            rows, table.source, fill, int(copies), levels, int(particles), _settings.seed(state)
        )
        self._warn_unknown()
        places = {name: place for place, name in enumerate(table.names)}
        masks = {name: table.missing(places[self._own_name(name, table)]) for name in self._columns}

        def table_of(block: np.ndarray, first: int) -> Any:
            replaced = {}
            for at, name in enumerate(self._columns):
                column = table.schema.columns[places[self._own_name(name, table)]]
                if masks[name].any():
                    replaced[column.name] = (column, masks[name], self._decoded(column, block[:, first + at], name))
            return filled(X, table, replaced)

        blocks = [lines[copy::copies] for copy in range(copies)]
        tables = [table_of(block, 0) for block in blocks]
        result = tables[0] if copies == 1 else tables
        if not (levels or details):
            return result
        width = len(self._columns)
        of_levels = {level: table_of(blocks[0], width * (at + 1)) for at, level in enumerate(levels)}
        sizes, trusted = lines[::copies, names.index("effective_sample_size")], lines[::copies, names.index("trusted")]
        return Imputation(result, of_levels, sizes.copy(), trusted.astype(bool))

    def evaluate(
        self,
        X: Any = None,
        *,
        sample_weight: Any = None,
        particles: int = 50_000,
        estimates: int = 20,
        cross_check: bool = True,
        wasserstein: int | None = None,
        random_state: Any = 0,
    ) -> dict:
        """The likelihood of rows with its errors, ``log Z`` several ways where there is one to estimate, and a verdict, as a dict.

        Without rows on the test part of the fit's own, with its weights. Of a density with columns that are given ``"predictive"`` has
        what predictions of the others are worth: CRPS and coverage of numbers, log loss, accuracy and calibration error of words.
        """
        check_is_fitted(self, "results_")
        if X is None:
            table = self._own(None, sample_weight, "evaluate")
            rows, weights = self._home.run.test_rows(table.columns, table.source)
        else:
            rows, table = self._rows(X)
            weights = _weights.checked(sample_weight, table.rows)
        found = self._home.run.evaluate(
            rows,
            weights,
            table.source,
            int(particles),
            int(estimates),
            bool(cross_check),
            wasserstein,
            _settings.seed(random_state),
        )
        self._warn_unknown()
        return json.loads(found)

    def report(self, path: str | os.PathLike | None = None, X: Any = None, *, sample_weight: Any = None) -> Any:
        """The page of the fit: likelihood, verdict, columns, pictures. Written to ``path``, or as an object that a notebook shows.

        Pictures of the data need the rows of the fit and their weights, which need not be given again in the same process.
        """
        from zhat._html import Page

        check_is_fitted(self, "results_")
        is_here = X is not None or self._table_seen is not None
        table = self._own(X, sample_weight, "report") if is_here else None
        target = Path(path) if path is not None else self._home.path / "report.html"
        columns = None if table is None else table.columns
        self._home.run.report(target, columns, "" if table is None else table.source)
        return target if path is not None else Page(target.read_text())
