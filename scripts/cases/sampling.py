"""Cases of ops that read between elements, and of lrn."""

import numpy as np

from cases.files import Cases, generator, lit, rnd, Tensor
from cases.numerics import chain, fma, INF, NAN, near_f64, rounded
from cases.windows import count_windows, filled, listed, per_channel


def weigh(x, dims, picked=()):
    """x (N, C, planes) at the taps of each dim (index, weight, inside), arrays over (N, output): (N, C, output)."""
    if not dims:
        n = np.arange(x.shape[0]).reshape(-1, 1, *(1,) * (picked[0][0].ndim - 1))
        channel = np.arange(x.shape[1]).reshape(1, -1, *(1,) * (picked[0][0].ndim - 1))
        inside, index = True, []
        for (at, ok), size in zip(picked, x.shape[2:]):
            index.append(np.clip(at, 0, size - 1)[:, None])
            inside = inside & ok[:, None]
        return np.where(inside, x[(n, channel, *index)], x.dtype.type(0))
    total = None
    for at, weight, ok in dims[0]:
        value = weigh(x, dims[1:], (*picked, (at, ok))) * weight[:, None]
        total = value if total is None else total + value
    return total


def cubic_weights(t):
    a = -0.75
    far = lambda x: ((x * t.dtype.type(a) - t.dtype.type(5 * a)) * x + t.dtype.type(8 * a)) * x - t.dtype.type(4 * a)
    near = lambda x: (x * t.dtype.type(a + 2) - t.dtype.type(a + 3)) * x * x + t.dtype.type(1)
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def mirrored(x, low, high):
    """x between low and high: what lies outside is turned back at the borders."""
    span = high - low
    if span == 0:
        return np.full_like(x, low)
    below = x < low
    distance = np.where(below, low - x, x - high).astype(x.dtype)
    turns = np.trunc(distance / x.dtype.type(span))
    rest = distance - turns * x.dtype.type(span)
    turned = np.where(below == (turns % 2 == 0), rest + x.dtype.type(low), x.dtype.type(high) - rest)
    return np.where(below | (x > high), turned, x)


def sampled(x, grid, mode="linear", padding="zeros", align_corners=False):
    dims, f = [], x.dtype.type
    for d, n in enumerate(x.shape[2:]):
        g = grid[..., x.ndim - 3 - d]
        p = (g + f(1)) / f(2) * f(n - 1) if align_corners else ((g + f(1)) * f(n) - f(1)) / f(2)
        p = np.rint(p) if mode == "nearest" else p
        low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
        outside = (p < low) | (p > high)
        if padding == "border":
            p = np.where(outside, np.clip(p, f(0), f(n - 1)), p)
        if padding == "reflection":
            p = mirrored(p, low, high)
        first = np.floor(p)
        t = p - first
        first = np.nan_to_num(first, nan=0.0, posinf=2.0 ** 60, neginf=-2.0 ** 60).astype(np.int64)
        if mode == "nearest":
            taps = [(first, np.ones_like(t))]
        elif mode == "linear":
            taps = [(first, 1 - t), (first + 1, t)]
        else:
            taps = [(first + i - 1, w) for i, w in enumerate(cubic_weights(t))]
        dims.append([])
        for at, w in taps:
            ok = (at >= 0) & (at < n) if padding == "zeros" else np.ones(at.shape, bool)
            if padding == "reflection":
                at = mirrored(at.astype(np.float64), low, high).astype(np.int64) if n > 1 else at * 0
            dims[-1].append((at, w, ok))
    return weigh(x, dims)


@generator("grid_sample")
def grid_sample(op):
    c = Cases(op)

    def run(name, x, grid, **attrs):
        y = sampled(x.w, grid.w, **attrs)
        if attrs.get("mode") != "nearest" and np.isfinite(grid.w).all():
            near_f64(y, sampled(x.w.astype(np.float64), grid.w.astype(np.float64), **attrs), 1e-4)
        c.run(name, [x, grid], rounded(y, x.dt), listed(**attrs))

    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                name = f"{mode}_{padding}{'_aligned' if align else ''}"
                attrs = dict(mode=mode, padding=padding, align_corners=align)
                run(name, rnd("f32", (2, 2, 3, 4), 1), rnd("f32", (2, 3, 5, 2), 2, -1.4, 1.4), **attrs)
                if padding == "reflection" and (mode == "linear" or not align):
                    grid = rnd("f32", (1, 2, 2, 2, 3), 4, -3.0, 3.0)
                    run(name + "_volume", rnd("f32", (1, 1, 2, 3, 2), 3), grid, **attrs)
    run("line", rnd("f32", (2, 2, 9), 5), rnd("f32", (2, 37, 1), 6, -1.2, 1.2))
    run("ties", lit("f32", [0.0, 1.0, 2.0, 3.0], (1, 1, 1, 4)),
        lit("f32", [[-1.0, 0.0], [-0.5, 0.0], [0.0, 0.0], [0.5, 0.0], [1.0, 0.0]], (1, 1, 5, 2)), mode="nearest")
    run("one_element", rnd("f32", (1, 2, 1, 1), 7), rnd("f32", (1, 3, 3, 2), 8, -2.0, 2.0), padding="reflection",
        align_corners=True)
    run("specials", lit("f32", [1.0, INF, -0.0, NAN], (1, 1, 2, 2)),
        lit("f32", [[0.0, 0.0], [NAN, 0.0], [-0.5, -0.5], [-0.5, 0.5], [1e30, 0.0], [0.5, 0.5]], (1, 1, 6, 2)))
    run("no_images", lit("f32", [], (0, 1, 3, 3)), lit("f32", [], (0, 2, 2, 2)))
    run("no_places", rnd("f32", (1, 1, 3, 3), 9), lit("f32", [], (1, 0, 2, 2)))
    run("f64", rnd("f64", (1, 2, 3, 4), 10), rnd("f64", (1, 2, 3, 2), 11, -1.4, 1.4), mode="cubic")
    for dt in ("f16", "bf16"):
        run(dt, rnd(dt, (1, 2, 3, 4), 12), rnd(dt, (1, 2, 3, 2), 13, -1.4, 1.4))
    x, g = "f32[2,3,4,5]", "f32[2,6,7,2]"
    c.refuse("integers", ["i32[2,3,4,5]", "i32[2,6,7,2]"], "dtype_mismatch",
             "x must have a float dtype, found i32[2,3,4,5]")
    c.refuse("dtypes", [x, "f64[2,6,7,2]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[2,3,4,5] and f64[2,6,7,2]")
    c.refuse("x_rank", ["f32[2,3]", g], "rank_mismatch", "x must have rank 3 or more, found f32[2,3]")
    c.refuse("grid_rank", [x, "f32[2,6,2]"], "rank_mismatch", "grid must have rank 4, found f32[2,6,2]")
    c.refuse("images", [x, "f32[1,6,7,2]"], "shape_mismatch",
             "grid f32[1,6,7,2] must have 2 images and 2 coordinates for x f32[2,3,4,5]")
    c.refuse("coordinates", [x, "f32[2,6,7,3]"], "shape_mismatch",
             "grid f32[2,6,7,3] must have 2 images and 2 coordinates for x f32[2,3,4,5]")
    c.refuse("empty_plane", ["f32[2,3,0,5]", g], "shape_mismatch", "x f32[2,3,0,5] has an empty plane")
    c.refuse("mode", [x, g], "invalid_argument", 'mode must be one of linear, nearest, cubic, found \\"area\\"',
             'mode="area"')
    c.refuse("padding", [x, g], "invalid_argument",
             'padding must be one of zeros, border, reflection, found \\"wrap\\"', 'padding="wrap"')
    c.write()


def affine(theta, size, align_corners=False):
    dims, f = len(size) - 2, theta.dtype.type
    coordinates = []
    for n in size[2:]:
        i = np.arange(n)
        if align_corners:
            coordinates.append(np.zeros(n, theta.dtype) if n == 1 else (2 * i).astype(theta.dtype) / f(n - 1) - f(1))
        else:
            coordinates.append((2 * i + 1).astype(theta.dtype) / f(n) - f(1))
    place = list(np.meshgrid(*coordinates, indexing="ij"))[::-1] + [np.ones(size[2:], theta.dtype)]
    y = np.zeros((size[0], *size[2:], dims), theta.dtype)
    for n, r in np.ndindex(size[0], dims):
        total = np.zeros(size[2:], theta.dtype)
        for k in range(dims + 1):
            total = fma(np.full(size[2:], theta[n, r, k]), np.ascontiguousarray(place[k]), total)
        y[n, ..., r] = total + f(0)
    return y


@generator("affine_grid")
def affine_grid(op):
    c = Cases(op)

    def run(name, theta, size, **attrs):
        y = affine(theta.w, size, **attrs)
        near_f64(y, affine(theta.w.astype(np.float64), size, **attrs))
        c.run(name, [theta], rounded(y, theta.dt), listed(size=size, **attrs))

    for align in (False, True):
        name = "aligned" if align else "plain"
        run(f"{name}_image", rnd("f32", (2, 2, 3), 1), (2, 3, 4, 5), align_corners=align)
        run(f"{name}_volume", rnd("f32", (1, 3, 4), 2), (1, 2, 2, 3, 4), align_corners=align)
        run(f"{name}_one", rnd("f32", (1, 2, 3), 3), (1, 1, 1, 3), align_corners=align)
    run("identity", lit("f32", [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 4, 4))
    run("line", rnd("f32", (1, 1, 2), 4), (1, 1, 19))
    run("no_images", lit("f32", [], (0, 2, 3)), (0, 1, 2, 2))
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (1, 2, 3), 5), (1, 1, 3, 4))
    c.refuse("integers", ["i32[1,2,3]"], "dtype_mismatch", "theta must have a float dtype, found i32[1,2,3]",
             "size=[1, 1, 2, 2]")
    c.refuse("size", ["f32[1,2,3]"], "invalid_argument", "size must have 3 entries or more, found [1,1]", "size=[1, 1]")
    c.refuse("size_range", ["f32[1,2,3]"], "invalid_argument",
             "each of size must lie in [0,1099511627776], found [1,1,2,-2]", "size=[1, 1, 2, -2]")
    c.refuse("theta", ["f32[1,3,4]"], "shape_mismatch", "theta must have shape [1,2,3], found f32[1,3,4]",
             "size=[1, 1, 2, 2]")
    c.write()


@generator("lrn")
def lrn(op):
    c = Cases(op, "Sums are exact; the power is within 1 ulp and is then divided by.")

    def run(name, x, size, tol="ulp 3", **attrs):
        channels = x.a.shape[1]
        wide = x.w
        total = np.zeros_like(wide)
        for ch in range(channels):
            for at in range(channels):
                if -((size - 1) // 2) <= at - ch <= size // 2:
                    total[:, ch] = total[:, ch] + wide[:, at] * wide[:, at]
        f = wide.dtype.type
        base = total * f(attrs.get("alpha", 1e-4) / size) + f(attrs.get("bias", 1.0))
        power = base.astype(np.float64) ** np.float64(f(attrs.get("beta", 0.75)))
        c.run(name, [x], rounded((wide.astype(np.float64) / power).astype(wide.dtype), x.dt),
              listed(size=size, **attrs), tol)

    run("image", rnd("f32", (2, 5, 2, 3), 1), 3)
    run("even", rnd("f32", (2, 5, 2, 3), 2), 4, alpha=0.5, beta=0.5, bias=2.0)
    run("wider_than_channels", rnd("f32", (1, 3, 2, 2), 3), 9, alpha=1.0)
    run("huge_size", rnd("f32", (1, 3, 2, 2), 9), 1 << 40, alpha=1e12)
    run("one", rnd("f32", (1, 3, 2, 2), 4), 1, alpha=2.0, beta=1.0)
    run("matrix", rnd("f32", (3, 37), 5), 5, alpha=0.1)
    run("rank8", rnd("f32", (1, 3, 1, 2, 1, 2, 1, 2), 6), 3)
    run("empty", lit("f32", [], (0, 3, 2)), 3)
    run("specials", lit("f32", [0.0, -0.0, INF, NAN, 3e38, -1.0], (1, 6, 1)), 3)
    run("f64", rnd("f64", (1, 4, 3), 7), 3, alpha=0.3)
    for dt in ("f16", "bf16", "f8e4m3fn", "f8e5m2"):
        run(dt, rnd(dt, (1, 4, 3), 8), 3, tol="ulp 1", alpha=0.3)
    c.refuse("integers", ["i32[1,2,3]"], "dtype_mismatch", "input must have a float dtype, found i32[1,2,3]", "size=3")
    c.refuse("rank", ["f32[3]"], "rank_mismatch", "input must have rank 2 or more, found f32[3]", "size=3")
    c.refuse("size", ["f32[1,2,3]"], "invalid_argument", "size must be positive, found 0", "size=0")
    c.write()


def deformed(x, w, offset, mask, group, offset_group, window):
    (n, channels, *planes), (out_channels, cg, *kernel) = x.shape, w.shape
    d = len(kernel)
    strides, pads, dilations = filled(d, **window)
    counts = count_windows(planes, kernel, strides, pads, dilations)
    offset = offset.reshape(n, offset_group, *kernel, d, *counts)
    mask = None if mask is None else mask.reshape(n, offset_group, *kernel, *counts)
    values, weights = [], []
    for k in np.ndindex(*kernel):
        sampled_groups = []
        for og in range(offset_group):
            dims = []
            for i in range(d):
                line = np.arange(counts[i]) * strides[i] - pads[i] + k[i] * dilations[i]
                line = line.reshape([-1 if j == i else 1 for j in range(d)]).astype(x.dtype)
                p = np.broadcast_to(line, counts) + offset[(slice(None), og, *k, i)]
                first = np.floor(p)
                t, first = p - first, first.astype(np.int64)
                dims.append([(at, weight, (at >= 0) & (at < planes[i])) for at, weight in
                             ((first, 1 - t), (first + 1, t))])
            per = channels // offset_group
            part = weigh(x[:, og * per:(og + 1) * per], dims)
            sampled_groups.append(part if mask is None else part * mask[(slice(None), og, *k)][:, None])
        patch = np.concatenate(sampled_groups, axis=1)
        first = np.arange(out_channels) // (out_channels // group) * cg
        for ci in range(cg):
            values.append(patch[:, first + ci])
            weights.append(np.broadcast_to(per_channel(w[(slice(None), ci, *k)], d), values[-1].shape))
    return chain(np.array(values), np.array(weights))


@generator("deform_conv")
def deform_conv(op):
    c = Cases(op)

    def run(name, x, w, offset_range, masked=False, bias=None, group=1, offset_group=1, to=None, **window):
        d = w.a.ndim - 2
        counts = count_windows(x.a.shape[2:], w.a.shape[2:], *filled(d, **window))
        taps = offset_group * int(np.prod(w.a.shape[2:]))
        offset = rnd(x.dt, (x.a.shape[0], taps * d, *counts), 51, -offset_range, offset_range)
        mask = rnd(x.dt, (x.a.shape[0], taps, *counts), 52, 0.0, 1.0) if masked else None
        y = deformed(x.w, w.w, offset.w, None if mask is None else mask.w, group, offset_group, window)
        wide = [t.w.astype(np.float64) for t in (x, w, offset)]
        near_f64(y, deformed(*wide, None if mask is None else mask.w.astype(np.float64), group, offset_group, window),
                 1e-4)
        if bias is not None:
            y = y + per_channel(bias.w, d)
        attrs = listed(**window, group=group if group != 1 else None,
                       offset_group=offset_group if offset_group != 1 else None, to=to)
        c.run(name, [t for t in (x, w, offset, mask, bias) if t is not None],
              Tensor(to or x.dt, rounded(y, to or x.dt)), attrs)

    run("plain", rnd("f32", (1, 1, 3, 3), 1), rnd("f32", (1, 1, 2, 2), 2), 0.5)
    run("no_offset", rnd("f32", (1, 2, 4, 4), 3), rnd("f32", (2, 2, 3, 3), 4), 0.0, pads=(1, 1, 1, 1))
    run("mask", rnd("f32", (1, 1, 3, 3), 5), rnd("f32", (2, 1, 2, 2), 6), 1.0, True)
    run("bias", rnd("f32", (1, 1, 3, 3), 7), rnd("f32", (2, 1, 2, 2), 8), 1.0, False, rnd("f32", (2,), 9))
    run("mask_and_bias", rnd("f32", (2, 2, 4, 3), 10), rnd("f32", (2, 2, 2, 2), 11), 1.0, True, rnd("f32", (2,), 12),
        pads=(1, 0, 1, 0))
    run("far", rnd("f32", (1, 1, 3, 3), 13), rnd("f32", (1, 1, 2, 2), 14), 6.0, pads=(1, 1, 1, 1))
    run("groups", rnd("f32", (1, 4, 3, 3), 15), rnd("f32", (2, 2, 2, 2), 16), 1.0, True, group=2)
    run("offset_groups", rnd("f32", (1, 4, 3, 3), 17), rnd("f32", (2, 4, 2, 2), 18), 1.0, True, offset_group=2)
    run("strides", rnd("f32", (1, 1, 6, 7), 19), rnd("f32", (1, 1, 2, 3), 20), 1.0, strides=(2, 2), dilations=(2, 1),
        pads=(1, 1, 0, 0))
    run("line", rnd("f32", (1, 2, 9), 21), rnd("f32", (2, 2, 3), 22), 1.0)
    run("volume", rnd("f32", (1, 1, 2, 3, 3), 23), rnd("f32", (1, 1, 2, 2, 2), 24), 1.0, True)
    run("two_segments", rnd("f32", (1, 80, 2, 2), 25), rnd("f32", (1, 80, 2, 2), 26), 0.7)
    run("no_images", lit("f32", [], (0, 1, 3, 3)), rnd("f32", (1, 1, 2, 2), 27), 1.0)
    for dt in ("f64", "f16", "bf16"):
        run(dt, rnd(dt, (1, 1, 3, 3), 28), rnd(dt, (1, 1, 2, 2), 29), 1.0, True, rnd(dt, (1,), 30))
    for dt in ("f16", "bf16"):
        run(f"{dt}_to_f32", rnd(dt, (1, 1, 3, 3), 28), rnd(dt, (1, 1, 2, 2), 29), 1.0, True, rnd(dt, (1,), 30), to="f32")
    c.refuse_to(["[1,4,5,5]", "[6,4,3,3]", "[1,18,3,3]"])
    x, w, o = "f32[1,4,5,5]", "f32[6,4,3,3]", "f32[1,18,3,3]"
    c.refuse("integers", ["i32[1,4,5,5]", "i32[6,4,3,3]", "i32[1,18,3,3]"], "dtype_mismatch",
             "x must have a float dtype, found i32[1,4,5,5]")
    c.refuse("dtypes", [x, w, "f64[1,18,3,3]"], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,4,5,5] and f64[1,18,3,3]")
    c.refuse("w_rank", [x, "f32[6,4,3]", o], "rank_mismatch", "w must have rank 4, found f32[6,4,3]")
    c.refuse("offset_group", [x, w, o], "invalid_argument", "offset_group 3 must divide the channels of x f32[1,4,5,5]",
             "offset_group=3")
    c.refuse("offset", [x, w, "f32[1,9,3,3]"], "shape_mismatch",
             "offset must have shape [1,18,3,3], found f32[1,9,3,3]")
    c.refuse("mask_shape", [x, w, o, "f32[1,18,3,3]"], "shape_mismatch",
             "mask must have shape [1,9,3,3], found f32[1,18,3,3]")
    c.refuse("bias_shape", [x, w, o, "f32[1,9,3,3]", "f32[4]"], "shape_mismatch",
             "bias must have shape [6], found f32[4]")
    c.refuse("window", ["f32[1,4,2,5]", w, o], "shape_mismatch",
             "the window reaches over 3 elements of dim 0 of the planes [2,5], with pads there are 2")
    c.write()


def aligned(x, rois, images, size, mode="avg", sampling_ratio=0, spatial_scale=1.0, half_pixel=True):
    f, (_, channels, *planes) = x.dtype.type, x.shape
    out = np.zeros((len(rois), channels, *size), x.dtype)
    for r, ph, pw in np.ndindex(len(rois), *size):
        places, counts = [], []
        for dim, p in enumerate((ph, pw)):
            low, high = (v * f(spatial_scale) for v in (rois[r, 1 - dim], rois[r, 3 - dim]))
            low, high = (low - f(0.5), high - f(0.5)) if half_pixel else (low, high)
            length = high - low if half_pixel else max(high - low, f(1))
            bin_size = length / f(size[dim])
            n = sampling_ratio or max(int(np.ceil(bin_size)), 0)
            start = low + f(p) * bin_size
            places.append([start + (f(i) + f(0.5)) * bin_size / f(n) for i in range(n)])
            counts.append(n)
        terms = []
        for y in places[0]:
            for z in places[1]:
                if not (-1 <= y <= planes[0] and -1 <= z <= planes[1]):
                    terms.append([np.zeros(channels, x.dtype)])
                    continue
                line = []
                for v, n in ((y, planes[0]), (z, planes[1])):
                    held = min(max(v, f(0)), f(n - 1))
                    at, rest = int(held), held - np.floor(held)
                    line.append(((at, f(1) - rest), (min(at + 1, n - 1), rest)))
                terms.append([wy * wx * x[images[r], :, iy, ix] for iy, wy in line[0] for ix, wx in line[1]])
        if mode == "avg":
            total = np.zeros(channels, x.dtype)
            for t in terms:
                total = total + sum(t[1:], t[0])
            out[r, :, ph, pw] = total / f(max(counts[0] * counts[1], 1))
        elif terms:
            out[r, :, ph, pw] = np.max([np.max(t, axis=0) for t in terms], axis=0)
    return out


@generator("roi_align")
def roi_align(op):
    c = Cases(op)

    def run(name, x, rois, images, size, **attrs):
        y = aligned(x.w, rois.w, images.a, size, **attrs)
        c.run(name, [x, rois, images], rounded(y, x.dt), listed(size=size, **attrs))

    x = rnd("f32", (2, 2, 6, 7), 1)
    rois = lit("f32", [[0.5, 1.0, 4.5, 4.0], [1.25, 0.0, 2.5, 5.75], [-2.0, -3.0, 3.0, 9.0]])
    images = lit("i64", [0, 1, 1])
    for mode in ("avg", "max"):
        for half in (True, False):
            name = f"{mode}_{'half' if half else 'whole'}"
            run(f"{name}_two", x, rois, images, (2, 3), mode=mode, sampling_ratio=2, half_pixel=half)
            run(f"{name}_adaptive", x, rois, images, (2, 2), mode=mode, half_pixel=half)
            run(f"{name}_scaled", x, rois, images, (1, 2), mode=mode, spatial_scale=0.5, half_pixel=half)
            run(f"{name}_large", rnd("f32", (1, 1, 3, 2), 2),
                lit("f32", [[-40.0, -30.0, 50.0, 60.0], [0.0, 0.0, 90.0, 1.0], [-90.0, 0.25, 1.0, 1.5]]),
                lit("i64", [0, 0, 0]), (1, 1), mode=mode, half_pixel=half)
    run("negative_only_max", lit("f32", [-1.0, -2.0, -3.0, -4.0], (1, 1, 2, 2)), lit("f32", [[0.0, 0.0, 2.0, 2.0]]),
        lit("i64", [0]), (2, 2), mode="max", sampling_ratio=1)
    run("reversed", x, lit("f32", [[4.0, 4.0, 1.0, 1.0], [4.0, 1.0, 1.0, 4.0]]), lit("i64", [0, 1]), (2, 2))
    run("point", x, lit("f32", [[2.0, 2.0, 2.0, 2.0]]), lit("i32", [1]), (1, 1), half_pixel=False)
    run("no_rois", x, lit("f32", [], (0, 4)), lit("i64", [], (0,)), (2, 2))
    run("f64", rnd("f64", (1, 2, 5, 5), 3), lit("f64", [[0.3, 0.2, 3.9, 4.1]]), lit("i64", [0]), (2, 2))
    for dt in ("f16", "bf16"):
        run(dt, rnd(dt, (1, 2, 5, 5), 4), lit(dt, [[0.3, 0.2, 3.9, 4.1]]), lit("i64", [0]), (2, 2))
    c.fail("image_out_of_range", [x, lit("f32", [[0.0, 0.0, 1.0, 1.0]]), lit("i64", [2])], "image out of range",
           "size=[1, 1]")
    c.fail("negative_image", [x, lit("f32", [[0.0, 0.0, 1.0, 1.0]]), lit("i64", [-1])], "image out of range",
           "size=[1, 1]")
    a, r, i, size = "f32[1,2,5,5]", "f32[3,4]", "i64[3]", "size=[2, 2]"
    c.refuse("integers", ["i32[1,2,5,5]", "i32[3,4]", i], "dtype_mismatch",
             "x must have a float dtype, found i32[1,2,5,5]", size)
    c.refuse("dtypes", [a, "f64[3,4]", i], "dtype_mismatch",
             "inputs must have one dtype, found f32[1,2,5,5] and f64[3,4]", size)
    c.refuse("image_dtype", [a, r, "f32[3]"], "dtype_mismatch", "images must have i32 or i64, found f32[3]", size)
    c.refuse("rank", ["f32[2,5,5]", r, i], "rank_mismatch", "x must have rank 4, found f32[2,5,5]", size)
    c.refuse("image_rank", [a, r, "i64[3,1]"], "rank_mismatch", "images must have rank 1, found i64[3,1]", size)
    c.refuse("rois", [a, "f32[3,5]", i], "shape_mismatch", "rois must have shape [3,4], found f32[3,5]", size)
    c.refuse("empty_plane", ["f32[1,2,0,5]", r, i], "shape_mismatch", "x f32[1,2,0,5] has an empty plane", size)
    c.refuse("size", [a, r, i], "invalid_argument", "each of size must lie in [1,1099511627776], found [0,2]",
             "size=[0, 2]")
    c.refuse("mode", [a, r, i], "invalid_argument", 'mode must be one of avg, max, found \\"sum\\"',
             size + ', mode="sum"')
    c.refuse("ratio", [a, r, i], "invalid_argument", "sampling_ratio must lie in [0,1048576], found -1",
             size + ", sampling_ratio=-1")
    c.write()
