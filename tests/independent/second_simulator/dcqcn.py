"""The rate control of a DCQCN sender (Zhu et al. 2015)."""


class ReactionPoint:
    """A DCQCN sender (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015), advanced lazily.

    The sets are the paper's values, the HPCC ns-3 model's, and the defaults of NVIDIA's documents.
    """

    # Times in ns, the byte counter in bytes, rates in bit/s.
    PAPER = dict(
        g=1 / 256,
        alpha_timer=55e3,
        rate_timer=55e3,
        byte_counter=10e6,
        fast_recovery_rounds=5,
        additive_step=40e6,
        hyper_step=400e6,
        minimum_rate=10e6,
        clamp_target=True,
        cut_interval=0,
    )
    NVIDIA = dict(
        PAPER,
        g=5 / 1024,
        alpha_timer=1e3,
        rate_timer=300e3,
        byte_counter=32767,
        fast_recovery_rounds=1,
        additive_step=5e6,
        hyper_step=50e6,
        minimum_rate=1e6,
        clamp_target=False,
        cut_interval=4e3,
    )
    NS3 = dict(
        PAPER,
        g=1 / 16,
        alpha_timer=50e3,
        rate_timer=900e3,
        byte_counter=1e18,
        fast_recovery_rounds=1,
        additive_step=50e6,
        hyper_step=100e6,
        minimum_rate=100e6,
        clamp_target=False,
        cut_interval=4e3,
    )
    SETS = {
        "paper": PAPER,
        "paper150k": dict(PAPER, g=1 / 16, rate_timer=1.5e6, byte_counter=150e3),
        "ns3": NS3,
        "nvidia": NVIDIA,
        "nvidia_old": dict(NVIDIA, g=1019 / 1024, fast_recovery_rounds=5, clamp_target=True),
    }

    def __init__(self, line, parameters):
        """Starts at the line rate, not limited."""
        self.line = line
        self.current_rate_bps = self.target_rate_bps = line
        self.parameters = parameters
        self.alpha = 1.0
        self.active = False
        self.timer_rounds = self.byte_rounds = 0
        self.bytes_counted = 0
        self.next_alpha = self.next_increase = 0.0
        self.last_cut = -1e18

    def advance(self, now):
        """Runs the alpha timer and the rate timer up to `now` (Zhu et al. 2015, section 3.1)."""
        if not self.active:
            return
        parameters = self.parameters
        if self.next_alpha <= now:
            rounds = int((now - self.next_alpha) // parameters["alpha_timer"]) + 1
            self.alpha *= (1 - parameters["g"]) ** rounds
            self.next_alpha += rounds * parameters["alpha_timer"]
        while self.active and self.next_increase <= now:
            self.next_increase += parameters["rate_timer"]
            self.timer_rounds += 1
            self.increase()

    def increase(self):
        """Fast recovery, additive or hyper increase (Zhu et al. 2015, section 3.1). Ends the limit at the line rate."""
        parameters = self.parameters
        most, least = max(self.timer_rounds, self.byte_rounds), min(self.timer_rounds, self.byte_rounds)
        if most < parameters["fast_recovery_rounds"]:
            pass
        elif least > parameters["fast_recovery_rounds"]:
            self.target_rate_bps += parameters["hyper_step"]
        else:
            self.target_rate_bps += parameters["additive_step"]
        self.target_rate_bps = min(self.target_rate_bps, self.line)
        self.current_rate_bps = (self.current_rate_bps + self.target_rate_bps) / 2
        if self.current_rate_bps > 0.999 * self.line:
            self.current_rate_bps = self.target_rate_bps = self.line
            self.active = False

    def on_sent(self, now, size):
        """Counts sent bytes; each full byte counter is a round of increase (Zhu et al. 2015, section 3.1)."""
        self.advance(now)
        if not self.active:
            return
        self.bytes_counted += size
        while self.active and self.bytes_counted >= self.parameters["byte_counter"]:
            self.bytes_counted -= self.parameters["byte_counter"]
            self.byte_rounds += 1
            self.increase()

    def on_cnp(self, now):
        """Cuts the rate by alpha / 2 and raises alpha (Zhu et al. 2015, section 3.1), once per cut interval."""
        self.advance(now)
        parameters = self.parameters
        if now - self.last_cut < parameters["cut_interval"]:
            return
        self.last_cut = now
        if not self.active:
            self.active = True
            self.alpha = 1.0
            self.current_rate_bps = self.target_rate_bps = self.line
        if parameters["clamp_target"] or self.timer_rounds or self.byte_rounds:
            self.target_rate_bps = self.current_rate_bps
        self.current_rate_bps = max(parameters["minimum_rate"], self.current_rate_bps * (1 - self.alpha / 2))
        self.alpha = (1 - parameters["g"]) * self.alpha + parameters["g"]
        self.timer_rounds = self.byte_rounds = 0
        self.bytes_counted = 0
        self.next_alpha = now + parameters["alpha_timer"]
        self.next_increase = now + parameters["rate_timer"]
