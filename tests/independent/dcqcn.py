"""Golden rates of DCQCN's reaction point, for analyzer/flow/src/congestion/dcqcn/replay/tests.rs.

Steps through the equations of the paper (Zhu et al., SIGCOMM 2015, section 3.1, figure 7) one nanosecond at a time, and
shares nothing with the code that it checks. Prints the mean rate of each bin of 1 ms, in bit/s. Takes half a minute.
"""

WIDTH = 1_000_000
G = 1e9

# K, g, alpha, T, B, F, RAI, RHAI, least rate, largest cut, period between cuts, target clamped by every cut
PAPER = (55_000, 1 / 256, 1.0, 55_000, 10_000_000, 5, 40e6, 200e6, 100e6, 0.5, 0, True)
NS3 = (55_000, 1 / 256, 0.5, 60_000, 300_000, 5, 40e6, 200e6, 100e6, 0.5, 0, True)
NVIDIA = (1_000, 5 / 1024, 1023 / 1024, 300_000, 32_767, 1, 5e6, 50e6, 1e6, 0.5, 4_000, False)


def increase(current, target, timer_stage, byte_stage, stages, additive, hyper, line):
    if min(timer_stage, byte_stage) > stages:
        target += hyper * (min(timer_stage, byte_stage) - stages)
    elif max(timer_stage, byte_stage) >= stages:
        target += additive
    target = min(target, line)
    return (current + target) / 2, target


def replay(line, parameters, notifications, sent_in_bins):
    (alpha_timer, g, alpha, timer, counter, stages, additive, hyper, least, largest, period, clamp) = parameters
    current = target = line
    timer_stage = byte_stage = 0
    cut_at = raised_at = timer_at = None
    sent, now, means = 0.0, 0, []
    for sent_in_bin in sent_in_bins:
        allowed = 0.0
        for _ in range(WIDTH):
            if now in notifications:
                if cut_at is None or now - cut_at >= period:
                    if clamp or timer_stage or byte_stage:
                        target = current
                    current = max(current * (1 - min(alpha / 2, largest)), least)
                    timer_stage = byte_stage = 0
                    timer_at = cut_at = now
                    sent = 0.0
                alpha = (1 - g) * alpha + g
                raised_at = now
            allowed += current
            now += 1
            if cut_at is None:
                continue
            if (now - raised_at) % alpha_timer == 0:
                alpha = (1 - g) * alpha
            if now - timer_at == timer:
                timer_at = now
                timer_stage += 1
                current, target = increase(
                    current, target, timer_stage, byte_stage, stages, additive, hyper, line
                )
            sent += sent_in_bin / WIDTH
            if sent >= counter - 1e-6:
                sent -= counter
                byte_stage += 1
                current, target = increase(
                    current, target, timer_stage, byte_stage, stages, additive, hyper, line
                )
        means.append(allowed / WIDTH)
    return means


some = {100_000, 150_000, 200_000, 2_500_000}
print("paper", replay(100 * G, PAPER, some, [6_000_000] * 5))
print("paper, then silence", replay(100 * G, PAPER, some, [6_000_000, 0, 0, 0, 0, 0]))
print("ns3", replay(40 * G, NS3, some, [2_000_000] * 5))
dense = {100_000, 104_000, 106_000, 112_000, 2_500_000}
print("nvidia", replay(100 * G, NVIDIA, dense, [3_000_000] * 5))
ignored = set(range(1_000_000, 6_000_000, 50_000))
print("paper, ignored", replay(100 * G, PAPER, ignored, [12_500_000] * 6))
means = replay(100 * G, PAPER, {0, 50_000}, [0] * 40)
print("paper, long silence: bins 0, 1, 9, 19, 39", [means[bin] for bin in (0, 1, 9, 19, 39)])
