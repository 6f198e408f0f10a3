"""What the cases of mechanisms share."""

from laboratory import IN_FABRIC, resend_counts

# Any word about these would be about a loss or a wait that is not there.
NO_LOSS = ("loss.network", "retransmit.timeout", "loss.capture", "icrc.bad", "nak.fatal")
NO_CONGESTION = ("incast", "unfair", "ecn.working", "cnp.ignored", "cnp.pacing")


def random_loss(lab, probability, categories=("data",), fate=IN_FABRIC, first_only=False):
    """Packets of these kinds are lost by chance."""

    def decide(packet):
        if packet.category in categories and not (first_only and packet.resend) and lab.rng.random() < probability:
            return fate
        return 0

    lab.network.decide = decide


def count_checks(lab):
    """Runs by reason, and nothing else."""
    counts = resend_counts(lab)
    for reason in ("timeout", "nak", "rnr"):
        lab.check("sum(flows[counted].runs_%s)" % reason, counts[reason])
    return counts
