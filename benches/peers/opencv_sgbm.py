#!/usr/bin/env python3
"""Times OpenCV's StereoSGBM and this project's CPU backend alternately, in one run.

Every round runs `stereo bench` on the CPU and then each OpenCV mode, at the same size, number of
disparities and threads, so that a machine's moods fall on both alike. Reported are the smallest and the
median time of a match in milliseconds, and OpenCV's time over ours from the smallest times: MODE_HH (8 paths)
over our 8 paths, MODE_HH4 (4 paths) over our 4 paths, MODE_SGBM_3WAY (3 paths) over our 8 paths.

OpenCV runs with a 3x3 block, its recommended P1 and P2, uniqueness and left-right check on; ours with its
defaults, all checks on. Neither time includes reading or writing files, nor the first match.

Needs: pip install opencv-python-headless numpy; cargo build --release -p stereo-host

  python3 benches/peers/opencv_sgbm.py
  python3 benches/peers/opencv_sgbm.py --sizes 640x480x64 --threads 1 --rounds 10
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

try:
    import cv2
    import numpy as np
except ImportError as error:
    sys.exit(f"{error}; pip install opencv-python-headless numpy")

MODES = {
    "HH": cv2.STEREO_SGBM_MODE_HH,
    "HH4": cv2.STEREO_SGBM_MODE_HH4,
    "3WAY": cv2.STEREO_SGBM_MODE_SGBM_3WAY,
}
# Which of our path counts each mode is held against.
AGAINST = {"HH": 8, "HH4": 4, "3WAY": 8}
BLOCK = 3


def pair(width, height, disparities):
    """A smoothed texture, and the same moved by a quarter of the range."""
    noise = np.random.default_rng(1).integers(0, 256, (height, width + disparities), dtype=np.uint8)
    texture = cv2.GaussianBlur(noise, (5, 5), 0)
    shift = disparities // 4
    return tuple(np.ascontiguousarray(texture[:, at : at + width]) for at in (0, shift))


def opencv_matcher(mode, disparities):
    return cv2.StereoSGBM_create(
        minDisparity=0,
        numDisparities=disparities,
        blockSize=BLOCK,
        P1=8 * BLOCK * BLOCK,
        P2=32 * BLOCK * BLOCK,
        disp12MaxDiff=1,
        uniquenessRatio=5,
        mode=mode,
    )


def ours(binary, width, height, disparities, threads, paths, iterations):
    command = [
        binary, "bench", "--backend", "cpu", "--json",
        "--size", f"{width}x{height}", "--disparities", str(disparities),
        "--paths", str(paths), "--threads", str(threads),
        "--iterations", str(iterations), "--warmup", "1",
    ]  # fmt: skip
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report["min_ms"], report["median_ms"], report["device"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stereo", default="target/release/stereo", help="our command [default: %(default)s]")
    parser.add_argument("--sizes", nargs="+", default=["640x480x64", "1920x1080x128"], metavar="WxHxD")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--iterations", type=int, default=3, help="matches per round and matcher [default: %(default)s]")
    args = parser.parse_args()
    if not os.path.exists(args.stereo):
        sys.exit(f"{args.stereo} is not there; cargo build --release -p stereo-host, or --stereo PATH")

    device = None
    rows = []
    for size in args.sizes:
        width, height, disparities = map(int, size.split("x"))
        left, right = pair(width, height, disparities)
        for threads in args.threads:
            cv2.setNumThreads(threads)
            best, middle = {}, {}
            matchers = {name: opencv_matcher(mode, disparities) for name, mode in MODES.items()}
            for matcher in matchers.values():
                matcher.compute(left, right)
            for done in range(args.rounds):
                print(f"{size}, {threads} threads: round {done + 1} of {args.rounds}", file=sys.stderr)
                for paths in (8, 4):
                    low, median, device = ours(
                        args.stereo, width, height, disparities, threads, paths, args.iterations
                    )
                    best.setdefault(paths, []).append(low)
                    middle.setdefault(paths, []).append(median)
                for name, matcher in matchers.items():
                    for _ in range(args.iterations):
                        start = time.perf_counter()
                        matcher.compute(left, right)
                        took = (time.perf_counter() - start) * 1e3
                        best.setdefault(name, []).append(took)
                        middle.setdefault(name, []).append(took)
            rows.append((size, threads, best, middle))

    print(f"OpenCV {cv2.__version__} against {device.split(',')[0]}; ms, smallest / median; {args.rounds} rounds\n")
    print("| size | threads | ours, 8 paths | ours, 4 paths | HH | HH4 | 3WAY | HH / ours 8 | HH4 / ours 4 | 3WAY / ours 8 |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for size, threads, best, middle in rows:
        low = {key: min(times) for key, times in best.items()}
        cells = [f"{low[key]:.1f} / {statistics.median(middle[key]):.1f}" for key in (8, 4, "HH", "HH4", "3WAY")]
        ratios = [f"{low[name] / low[AGAINST[name]]:.2f}" for name in MODES]
        print(f"| {size} | {threads} | " + " | ".join(cells + ratios) + " |")


if __name__ == "__main__":
    main()
