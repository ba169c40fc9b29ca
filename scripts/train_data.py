#!/usr/bin/env python3
"""train_data.py FILE.npz ROWS SEED: writes rows for tests/train/models/blobs.ir, with nothing but Python.

x: f32[ROWS,16], points around one of four centres; target: i64[ROWS], which one. The same bytes everywhere.
"""

import random
import struct
import sys
import zipfile

FEATURES = 16
CLASSES = 4


def npy(descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    path, rows, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    centres = random.Random(1)
    middle = [[centres.uniform(-1, 1) for _ in range(FEATURES)] for _ in range(CLASSES)]
    draw = random.Random(seed)
    labels = [draw.randrange(CLASSES) for _ in range(rows)]
    x = [m + draw.uniform(-0.8, 0.8) for label in labels for m in middle[label]]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("x.npy"), npy("<f4", (rows, FEATURES), struct.pack(f"<{len(x)}f", *x)))
        archive.writestr(zipfile.ZipInfo("target.npy"), npy("<i8", (rows,), struct.pack(f"<{rows}q", *labels)))


if __name__ == "__main__":
    main()
