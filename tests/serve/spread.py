# SPDX-License-Identifier: MIT
"""How times are spread: counted in steps of one percent, so that a long run takes no more memory than a short one."""

import math

STEP = math.log(1.01)


class Spread:
    def __init__(self):
        self.counts, self.count = {}, 0

    def add(self, seconds):
        step = round(math.log(max(seconds, 1e-6)) / STEP)
        self.counts[step] = self.counts.get(step, 0) + 1
        self.count += 1

    def join(self, other):
        for step, count in other.counts.items():
            self.counts[step] = self.counts.get(step, 0) + count
        self.count += other.count

    def part(self, share):
        """Seconds that this share of all does not exceed, to half a percent."""
        below = 0
        for step in sorted(self.counts):
            below += self.counts[step]
            if below > share * (self.count - 1):
                return math.exp(step * STEP)
        raise ValueError("expected times, found none")

    def curve(self):
        """(seconds, share of all that is not above) in order."""
        below, out = 0, []
        for step in sorted(self.counts):
            below += self.counts[step]
            out.append((math.exp(step * STEP), below / self.count))
        return out
