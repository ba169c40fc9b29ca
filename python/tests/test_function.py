"""@pyc.function: a model for each set of shapes."""

import numpy as np
import pyc
import pytest

X, W = np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.ones((3, 4), np.float32)


def test_a_layer_is_compiled_once_for_each_set_of_shapes():
    traced = []

    @pyc.function(threads=1)
    def layer(x, w):
        """A layer."""
        traced.append(x.shape)
        return pyc.ops.relu(x @ w + 0.5)

    for _ in range(2):
        assert np.array_equal(layer(X, W), np.maximum(X @ W + 0.5, 0))
    assert traced == [(2, 3)]
    assert layer(X[:1], W).shape == (1, 4)
    assert traced == [(2, 3), (1, 3)]
    assert (layer.__name__, layer.__doc__) == ("layer", "A layer.")
    assert [port.name for port in layer.model(X, W).inputs] == ["x", "w"]


def test_settings_tuples_lists_and_dtypes():
    @pyc.function
    def both(*values, axis):
        return pyc.ops.reduce_sum(values[0], axes=(axis,), keepdims=False), -values[-1]

    sums, minus = both([[1, 2], [3, 4]], np.ones(2, np.float64), axis=0)
    assert sums.tolist() == [4, 6] and sums.dtype == np.int64
    assert minus.tolist() == [-1, -1] and minus.dtype == np.float64
    assert both([[1, 2], [3, 4]], np.ones(2), axis=1)[0].tolist() == [3, 7]


def test_inputs_without_a_name_are_numbered():
    @pyc.function
    def total(first, *others):
        return first + others[0] + others[1]

    assert [port.name for port in total.model(X, X, X).inputs] == ["first", "x1", "x2"]


def test_what_comes_in_comes_out():
    assert pyc.function(lambda x: x)(X).tolist() == X.tolist()


def test_mistakes_are_named():
    with pytest.raises(pyc.InvalidArgumentError, match="returns int, not a value"):
        pyc.function(lambda x: 3)(X)
    with pytest.raises(pyc.ShapeMismatchError):
        pyc.function(lambda x, w: x @ w)(X, X)
    with pytest.raises(AttributeError, match="softmax"):
        pyc.function(lambda x: pyc.ops.sofmax(x))(X)
    with pytest.raises(pyc.InvalidArgumentError, match="none of the arguments is a value"):
        pyc.ops.relu(X)
    with pytest.raises(TypeError, match="missing a required argument: 'w'"):
        pyc.function(lambda x, w: x @ w)(X)
