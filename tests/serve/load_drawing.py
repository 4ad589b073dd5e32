# SPDX-License-Identifier: MIT
"""What load.py measured, as an SVG: shares of all times that are below one over a logarithmic axis, and memory over the
run."""

import math
from html import escape

WIDTH, LEFT, RIGHT = 720, 60, 20
COLOURS = ["#1f6feb", "#c2410c", "#15803d"]


def seconds_text(seconds):
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def times(spreads, top, height):
    low = 10 ** math.floor(math.log10(min(of.part(0) for of in spreads.values())))
    high = 10 ** math.ceil(math.log10(max(of.part(1) for of in spreads.values())))
    across = lambda seconds: LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(seconds) - math.log10(low)) / (
        math.log10(high) - math.log10(low)
    )
    up = lambda share: top + height * (1 - share)
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        x = across(10.0**exponent)
        yield (
            f'<path d="M{x:.1f} {top}v{height}" stroke="#ddd"/><text x="{x:.1f}" y="{top + height + 16}"'
            f' text-anchor="middle">{seconds_text(10.0**exponent)}</text>'
        )
    for share in (0, 0.5, 0.99):
        yield (
            f'<path d="M{LEFT} {up(share):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/><text x="{LEFT - 6}"'
            f' y="{up(share) + 4:.1f}" text-anchor="end">{100 * share:g} %</text>'
        )
    for i, (name, of) in enumerate(spreads.items()):
        line = " ".join(f"{across(seconds):.1f},{up(share):.1f}" for seconds, share in [(of.part(0), 0), *of.curve()])
        yield f'<polyline points="{line}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>'
        yield (
            f'<text x="{LEFT + 10}" y="{top + 20 + 16 * i}" fill="{COLOURS[i]}">{escape(name)}: p50'
            f' {1000 * of.part(0.5):.1f} ms, p99 {1000 * of.part(0.99):.1f} ms</text>'
        )


def memory(lists, top, height):
    """Values in percent of those in the middle of the run."""
    lists = {name: samples for name, samples in lists.items() if samples and samples[len(samples) // 2][1]}
    end = max(samples[-1][0] for samples in lists.values()) or 1
    across = lambda at: LEFT + (WIDTH - LEFT - RIGHT) * at / end
    up = lambda percent: top + height * (1 - (min(max(percent, 90), 110) - 90) / 20)
    for percent in (90, 98, 100, 102, 110):
        yield (
            f'<path d="M{LEFT} {up(percent):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/><text x="{LEFT - 6}"'
            f' y="{up(percent) + 4:.1f}" text-anchor="end">{percent} %</text>'
        )
    yield (
        f'<text x="{LEFT}" y="{top + height + 16}">0</text><text x="{WIDTH - RIGHT}" y="{top + height + 16}"'
        f' text-anchor="end">{end:.0f} s</text>'
    )
    for i, (name, samples) in enumerate(lists.items()):
        middle = samples[len(samples) // 2][1]
        some = samples[:: max(1, len(samples) // 400)]
        line = " ".join(f"{across(at):.1f},{up(100 * bytes / middle):.1f}" for at, bytes in some)
        yield f'<polyline points="{line}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"/>'
        yield (
            f'<text x="{LEFT + 10 + 220 * i}" y="{top + 14}" fill="{COLOURS[i]}">{escape(name)}: {middle / 2**20:.0f}'
            ' MiB</text>'
        )


def drawing(title, spreads, lists):
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 460" font-family="sans-serif"'
            f' font-size="12"><rect width="{WIDTH}" height="460" fill="#fff"/>'
        ),
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        *times(spreads, 40, 240),
        *memory(lists, 320, 110),
        "</svg>",
    ]
    return "\n".join(out) + "\n"
