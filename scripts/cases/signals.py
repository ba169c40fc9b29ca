"""Cases of random numbers, windows and Fourier transforms."""

import numpy as np

from cases.files import Cases, generator, lit, philox, rnd, seq, Tensor
from cases.numerics import NARROW, NUMPY, rounded


def words(seed, stream, count):
    """Like philox, for any stream."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    c = [blocks & mask, blocks >> np.uint64(32), np.full_like(blocks, stream & 0xFFFFFFFF), np.full_like(blocks, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), p0 & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    assert stream or (np.stack(c, axis=1).ravel()[:count] == philox(seed, count)).all()
    return np.stack(c, axis=1).ravel()[:count]


def units(seed, stream, count):
    return words(seed, stream, count).astype(np.float64) / 2.0 ** 32


def shape_text(shape):
    return f"shape=[{', '.join(map(str, shape))}]"


SEEDS = [("plain", 0, 0), ("seed", 7, 0), ("stream", 7, 3), ("large", 2 ** 40 + 5, 2 ** 33 + 1)]


def key_text(seed, stream):
    return ([f"seed={seed}"] if seed else []) + ([f"stream={stream}"] if stream else [])


def random_refusals(c):
    c.refuse("integers", [], "dtype_mismatch", "the result must have a float dtype, found i32[]", "shape=[2], dtype=i32")
    c.refuse("negative", [], "invalid_argument", "", "shape=[-2]")


@generator("random_uniform")
def random_uniform(op):
    c = Cases(op)

    def run(name, shape, seed=0, stream=0, dt="f32", lo=0.0, hi=1.0):
        y = lo + units(seed, stream, int(np.prod(shape))).reshape(shape) * (hi - lo)
        attrs = [shape_text(shape)] + key_text(seed, stream) + ([] if dt == "f32" else [f"dtype={dt}"])
        attrs += [] if (lo, hi) == (0.0, 1.0) else [f"lo={lo}, hi={hi}"]
        c.run(name, [], Tensor(dt, rounded(y, dt)), ", ".join(attrs))

    for name, seed, stream in SEEDS:
        run(name, (3, 7), seed, stream)
    run("range", (19,), 1, 2, lo=-3.5, hi=2.25)
    run("scalar", (), 5)
    run("empty", (0, 3), 5)
    run("rank5", (2, 1, 2, 1, 3), 5)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (9,), 6, 0, dt, -1.0, 1.0)
    random_refusals(c)
    c.write()


@generator("random_normal")
def random_normal(op):
    c = Cases(op, "log and cos of f64 may be 2 ulp off.")

    def run(name, shape, seed=0, stream=0, dt="f32", mean=0.0, scale=1.0):
        u = units(seed, stream, 2 * int(np.prod(shape))).reshape(-1, 2)
        z = np.sqrt(-2.0 * np.log(u[:, 0] + 2.0 ** -32)) * np.cos(2.0 * np.pi * u[:, 1])
        attrs = [shape_text(shape)] + key_text(seed, stream) + ([] if dt == "f32" else [f"dtype={dt}"])
        attrs += [] if (mean, scale) == (0.0, 1.0) else [f"mean={mean}, scale={scale}"]
        tol = "ulp 64 abs 1e-15" if dt == "f64" else "ulp 1"
        c.run(name, [], Tensor(dt, rounded((z * scale + mean).reshape(shape), dt)), ", ".join(attrs), tol)

    for name, seed, stream in SEEDS:
        run(name, (3, 7), seed, stream)
    run("mean_and_scale", (19,), 1, 2, mean=3.5, scale=0.25)
    run("scalar", (), 5)
    run("empty", (0, 3), 5)
    for dt in ("f64", "f16", "bf16"):
        run(dt, (9,), 6, 0, dt)
    random_refusals(c)
    c.write()


@generator("bernoulli")
def bernoulli(op):
    c = Cases(op)

    def run(name, p, seed=0, stream=0, dt="f32"):
        y = (units(seed, stream, p.a.size).reshape(p.a.shape) < p.a.astype(np.float64)).astype(np.float64)
        c.run(name, [p], Tensor(dt, rounded(y, dt) if dt in NARROW else y.astype(NUMPY[dt])),
              ", ".join([f"dtype={dt}"] + key_text(seed, stream)))

    for name, seed, stream in SEEDS:
        run(name, rnd("f32", (3, 7), 1, 0.0, 1.0), seed, stream)
    run("certain", lit("f32", [0.0, 1.0, -0.0, 0.5, float("nan")]), 3)
    run("scalar", lit("f32", 0.5), 5)
    run("empty", lit("f32", [], (0,)), 5)
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (9,), 6, 0.0, 1.0), 6, 0, dt)
    for dt in ("bool", "i32", "u8"):
        run(f"to_{dt}", rnd("f32", (9,), 7, 0.0, 1.0), 6, 0, dt)
    c.refuse("integers", ["i32[2]"], "dtype_mismatch", "p must have a float dtype, found i32[2]", "dtype=f32")
    c.write()


@generator("multinomial")
def multinomial(op):
    c = Cases(op)

    def run(name, x, samples=1, seed=0, stream=0, dt="i32"):
        batch, classes = x.a.shape
        u = (words(seed, stream, batch * samples * classes).astype(np.float64) + 0.5) / 2.0 ** 32
        score = x.a.astype(np.float64)[:, None] - np.log(-np.log(u.reshape(batch, samples, classes)))
        y = np.argmax(score, axis=2).astype(NUMPY[dt]) if score.size else np.zeros((batch, samples), NUMPY[dt])
        attrs = [f"sample_size={samples}"] + key_text(seed, stream) + ([] if dt == "i32" else [f"dtype={dt}"])
        c.run(name, [x], Tensor(dt, y), ", ".join(attrs))

    for name, seed, stream in SEEDS:
        run(name, rnd("f32", (3, 4), 1), 5, seed, stream)
    run("certain", lit("f32", [[-np.inf, 0.0, -np.inf], [0.0, -np.inf, -np.inf]]), 4, 1)
    run("one_class", rnd("f32", (2, 1), 2), 3)
    run("i64", rnd("f32", (2, 3), 3), 3, 1, dt="i64")
    run("no_samples", rnd("f32", (2, 3), 3), 0)
    for dt in ("f64", "f16"):
        run(dt, rnd(dt, (2, 3), 4), 3, 1)
    c.refuse("integers", ["i32[2,3]"], "dtype_mismatch", "x must have a float dtype")
    c.refuse("rank", ["f32[3]"], "rank_mismatch", "x must have rank 2, found f32[3]")
    c.refuse("classes", ["f32[2,0]"], "shape_mismatch", "x f32[2,0] has no classes")
    c.refuse("dtype", ["f32[2,3]"], "dtype_mismatch", "the result must have i32 or i64, found f32[]", "dtype=f32")
    c.refuse("samples", ["f32[2,3]"], "invalid_argument", "sample_size must not be negative, found -1", "sample_size=-1")
    c.write()


@generator("window_function")
def window_function(op):
    c = Cases(op)
    shares = {"hann": (0.5, 0.5, 0.0), "hamming": (25 / 46, 1 - 25 / 46, 0.0), "blackman": (0.42, 0.5, 0.08)}

    def run(name, kind, size, periodic=True, dt="f32"):
        n = np.arange(size) * (2.0 * np.pi)
        period = size if periodic else size - 1
        a0, a1, a2 = shares[kind]
        y = a0 - a1 * np.cos(n / period) + a2 * np.cos(2 * n / period) if period else np.ones(size)
        attrs = [f'kind="{kind}", size={size}'] + ([] if periodic else ["periodic=false"]) + ([] if dt == "f32" else [f"dtype={dt}"])
        y = rounded(y, dt) if dt in NARROW else np.trunc(y).astype(NUMPY[dt]) if dt[0] == "i" else y.astype(NUMPY[dt])
        c.run(name, [], Tensor(dt, y), ", ".join(attrs), "" if dt[0] == "i" else "ulp 1 abs 1e-15")

    for kind in shares:
        run(kind, kind, 10)
        run(f"{kind}_symmetric", kind, 9, False)
        run(f"{kind}_one", kind, 1, False)
        run(f"{kind}_empty", kind, 0)
        for dt in ("f64", "f16", "bf16"):
            run(f"{kind}_{dt}", kind, 11, True, dt)
    run("long", "hann", 400)
    c.refuse("kind", [], "invalid_argument", 'kind must be \\"hann\\", \\"hamming\\" or \\"blackman\\", found \\"box\\"',
             'kind="box", size=3')
    c.refuse("size", [], "invalid_argument", "", 'kind="hann", size=-1')
    c.write()


@generator("mel_weight_matrix")
def mel_weight_matrix(op):
    c = Cases(op)

    def run(name, bands, length, rate, lo, hi, dt="f32"):
        low, high = (2595 * np.log1p(f / 700) / np.log(10) for f in (lo, hi))
        mel = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
        edges = np.floor((length + 1) * (700 * np.expm1(mel / 2595 * np.log(10))) / rate).astype(int)
        y = np.zeros((length // 2 + 1, bands))
        for band in range(bands):
            begin, peak, end = edges[band:band + 3]
            for i in range(length // 2 + 1):
                if begin <= i < peak:
                    y[i, band] = (i - begin) / (peak - begin)
                elif peak <= i < end:
                    y[i, band] = (end - i) / (end - peak)
            y[peak, band] = 1.0
        attrs = f"num_mel_bins={bands}, dft_length={length}, sample_rate={rate}, lower_edge_hertz={lo}, upper_edge_hertz={hi}"
        c.run(name, [], Tensor(dt, rounded(y, dt)), attrs + ("" if dt == "f32" else f", dtype={dt}"))

    run("speech", 8, 16, 8192, 0.0, 8192 / 2.0)
    run("narrow", 4, 64, 16000, 100.0, 7000.0)
    run("many_bands", 20, 32, 8000, 20.0, 3900.0)
    run("f64", 4, 32, 8000, 20.0, 3900.0, "f64")
    run("f16", 4, 32, 8000, 20.0, 3900.0, "f16")
    base = "dft_length=16, sample_rate=8000, lower_edge_hertz={}, upper_edge_hertz={}, num_mel_bins={}"
    c.refuse("bins", [], "invalid_argument", "num_mel_bins must be positive, found 0", base.format(0.0, 4000.0, 0))
    c.refuse("edges", [], "invalid_argument", "edges must be ascending and not negative, found 9.0 and 4.0", base.format(9.0, 4.0, 2))
    c.refuse("beyond", [], "invalid_argument", "upper_edge_hertz 30000.0 lies beyond the last of 9 bins", base.format(0.0, 30000.0, 2))
    c.write()


def tolerance(dt, length):
    """Contractions with a table: absolute errors grow with the length."""
    return {"f32": f"ulp 4 abs {2e-7 * (length + 4):.1e}", "f64": f"ulp 4 abs {5e-16 * (length + 4):.1e}"}.get(dt, "ulp 1 abs 4e-3")


def complex_of(x):
    w = x.a.astype(np.float64)
    return w[..., 0] if w.shape[-1] == 1 else w[..., 0] + 1j * w[..., 1]


def parts(y, dt):
    return Tensor(dt, rounded(np.stack([y.real, y.imag], axis=-1), dt))


@generator("dft")
def dft(op):
    c = Cases(op, "Against numpy's fft in f64.")

    def run(name, x, axis=-2, length=0, inverse=False, onesided=False):
        at = axis % x.a.ndim
        z = complex_of(x)
        n = length or (2 * (x.a.shape[at] - 1) if inverse and onesided else x.a.shape[at])
        if inverse and onesided:
            y = Tensor(x.dt, rounded(np.fft.irfft(z, n, at)[..., None], x.dt))
        elif inverse:
            y = parts(np.fft.ifft(z, n, at), x.dt)
        else:
            y = np.fft.fft(z, n, at)
            y = parts(y.take(range(n // 2 + 1), at) if onesided else y, x.dt)
        attrs = ([] if axis == -2 else [f"axis={axis}"]) + ([f"length={length}"] if length else [])
        attrs += (["inverse=true"] if inverse else []) + (["onesided=true"] if onesided else [])
        c.run(name, [x], y, ", ".join(attrs), tolerance(x.dt, n))

    run("real", rnd("f32", (2, 8, 1), 1))
    run("complex", rnd("f32", (2, 8, 2), 2))
    run("odd", rnd("f32", (2, 7, 2), 3))
    run("prime", rnd("f32", (1, 37, 1), 4))
    run("one_point", rnd("f32", (3, 1, 2), 5))
    run("two_points", rnd("f32", (3, 2, 1), 6))
    run("onesided", rnd("f32", (2, 8, 1), 7), onesided=True)
    run("onesided_odd", rnd("f32", (2, 9, 1), 8), onesided=True)
    run("inverse", rnd("f32", (2, 8, 2), 9), inverse=True)
    run("inverse_real", rnd("f32", (2, 6, 1), 10), inverse=True)
    run("inverse_onesided", rnd("f32", (2, 5, 2), 11), inverse=True, onesided=True)
    run("inverse_onesided_odd", rnd("f32", (2, 5, 2), 12), inverse=True, onesided=True, length=9)
    run("inverse_onesided_longer", rnd("f32", (2, 3, 2), 13), inverse=True, onesided=True, length=10)
    run("inverse_onesided_cut", rnd("f32", (2, 7, 2), 13), inverse=True, onesided=True, length=6)
    run("longer", rnd("f32", (2, 5, 1), 14), length=8)
    run("cut", rnd("f32", (2, 9, 2), 15), length=6)
    run("first_axis", rnd("f32", (6, 3, 2), 16), axis=0)
    run("middle_axis", rnd("f32", (2, 5, 3, 1), 17), axis=1, onesided=True)
    run("rank2", rnd("f32", (12, 1), 18), axis=0)
    run("empty", lit("f32", [], (0, 4, 1)))
    run("long", rnd("f32", (1, 400, 1), 19), onesided=True)
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (1, 12, 2), 20))
    c.refuse("integers", ["i32[2,8,1]"], "dtype_mismatch", "x must have a float dtype")
    c.refuse("parts", ["f32[2,8,3]"], "shape_mismatch", "x must have rank 2 or more and a last dim of 1 or 2, found f32[2,8,3]")
    c.refuse("rank", ["f32[1]"], "shape_mismatch", "x must have rank 2 or more and a last dim of 1 or 2, found f32[1]")
    c.refuse("axis", ["f32[2,8,1]"], "invalid_argument", "axis 3 is outside of f32[2,8,1]", "axis=3")
    c.refuse("last_axis", ["f32[2,8,1]"], "invalid_argument", "axis -1 is that of the real and imaginary parts", "axis=-1")
    c.refuse("onesided_complex", ["f32[2,8,2]"], "shape_mismatch",
             "a onesided transform takes real and its inverse complex numbers", "onesided=true")
    c.refuse("onesided_inverse", ["f32[2,8,1]"], "shape_mismatch",
             "a onesided transform takes real and its inverse complex numbers", "onesided=true, inverse=true")
    c.refuse("no_length", ["f32[2,0,1]"], "invalid_argument", "length must be positive, found 0")
    c.refuse("large", ["f32[2,20000,1]"], "unsupported", "a transform of length 20000 of f32[2,20000,1] needs too large a matrix")
    c.write()


@generator("stft")
def stft(op):
    c = Cases(op, "Against numpy's fft in f64.")

    def run(name, x, step, window=None, length=0, onesided=True):
        size = length or (x.a.shape[1] if window is None else window.a.size)
        frames = (x.a.shape[1] - size) // step + 1
        z = np.stack([complex_of(x)[:, i * step:i * step + size] for i in range(frames)], axis=1)
        y = np.fft.fft(z if window is None else z * window.a.astype(np.float64), size, 2)
        y = parts(y[:, :, :size // 2 + 1] if onesided else y, x.dt)
        attrs = [f"frame_step={step}"] + ([f"frame_length={length}"] if length else []) + ([] if onesided else ["onesided=false"])
        c.run(name, [t for t in (x, window) if t is not None], y, ", ".join(attrs), tolerance(x.dt, size))

    run("plain", rnd("f32", (2, 20, 1), 1), 4, length=8)
    run("window", rnd("f32", (2, 20, 1), 2), 4, rnd("f32", (8,), 3, 0.0, 1.0), 8)
    run("whole", rnd("f32", (1, 16, 1), 4), 4)
    run("length_of_the_window", rnd("f32", (1, 16, 1), 4), 4, rnd("f32", (6,), 3, 0.0, 1.0))
    run("both_sides", rnd("f32", (1, 16, 1), 5), 3, length=8, onesided=False)
    run("complex", rnd("f32", (1, 16, 2), 6), 3, rnd("f32", (8,), 7, 0.0, 1.0), 8, False)
    run("no_overlap", rnd("f32", (1, 30, 1), 8), 10, length=10)
    run("gaps", rnd("f32", (1, 30, 1), 9), 12, length=5)
    run("empty", lit("f32", [], (0, 16, 1)), 4, length=8)
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (1, 16, 1), 10), 4, rnd(dt, (8,), 11, 0.0, 1.0), 8)
    x = "f32[2,20,1]"
    c.refuse("integers", ["i32[2,20,1]"], "dtype_mismatch", "x must have a float dtype", "frame_step=4")
    c.refuse("rank", ["f32[20,1]"], "rank_mismatch", "x must have rank 3, found f32[20,1]", "frame_step=4")
    c.refuse("long_frame", [x], "invalid_argument", "frames of 21 every 4 do not fit the signal f32[2,20,1]", "frame_step=4, frame_length=21")
    c.refuse("step", [x], "invalid_argument", "frames of 8 every 0 do not fit the signal f32[2,20,1]", "frame_step=0, frame_length=8")
    c.refuse("complex_onesided", ["f32[2,20,2]"], "shape_mismatch", "the last dim of x must be 1, found f32[2,20,2]", "frame_step=4")
    c.refuse("parts", ["f32[2,20,3]"], "shape_mismatch", "the last dim of x must be 1 or 2, found f32[2,20,3]",
             "frame_step=4, onesided=false")
    c.refuse("window_shape", [x, "f32[7]"], "shape_mismatch", "window must have shape [8], found f32[7]", "frame_step=4, frame_length=8")
    c.refuse("window_dtype", [x, "f16[8]"], "dtype_mismatch", "inputs must have one dtype", "frame_step=4, frame_length=8")
    c.write()


@generator("frames")
def frames(op):
    c = Cases(op)

    def run(name, x, axis, length, step):
        at = axis % x.a.ndim
        count = (x.a.shape[at] - length) // step + 1
        y = np.stack([x.a.take(range(i * step, i * step + length), at) for i in range(count)], axis=at)
        c.run(name, [x], y, f"axis={axis}, length={length}, step={step}")

    run("vector", seq("f32", 10), 0, 4, 3)
    run("middle", seq("f32", 2, 9, 3), 1, 4, 2)
    run("last", seq("f32", 2, 9), -1, 3, 1)
    run("gaps", seq("f32", 20), 0, 2, 7)
    run("whole", seq("f32", 3, 5), 1, 5, 1)
    run("empty", lit("f32", [], (0, 5)), 1, 2, 2)
    run("rank6", seq("f32", 1, 2, 1, 6, 2, 1), 3, 3, 2)
    for dt in ("f64", "f16", "bf16", "i8", "u8", "i64", "bool"):
        run(dt, rnd(dt, (9,), 1, 0.0, 9.0), 0, 4, 2)
    c.refuse("axis", ["f32[9]"], "invalid_argument", "axis 1 is outside of f32[9]", "axis=1, length=4, step=2")
    c.refuse("length", ["f32[9]"], "invalid_argument", "frames of 10 every 2 do not fit dim 0 of f32[9]", "axis=0, length=10, step=2")
    c.refuse("no_length", ["f32[9]"], "invalid_argument", "frames of 0 every 2 do not fit dim 0 of f32[9]", "axis=0, length=0, step=2")
    c.refuse("step", ["f32[9]"], "invalid_argument", "frames of 2 every 0 do not fit dim 0 of f32[9]", "axis=0, length=2, step=0")
    c.write()
