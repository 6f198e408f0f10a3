//! The end of the help of `live`: examples, and what a run needs and gives up.

pub(super) const AFTER_HELP: &str = "\
Examples:
  roce-analyze live -i mlx5_0
      the screen of one adapter
  roce-analyze live -i eth0 --no-tui -o run
      a line each second, and results in run
  roce-analyze live -i mlx5_0 -w p.pcapng --duration 10s
      ten seconds of packets, as pcapng
  roce-analyze live -i mlx5_0 --metrics 127.0.0.1:9903
      with an address that Prometheus scrapes
  tcpdump -i mlx5_0 -U -w - | roce-analyze live -i -
      packets that another program captures

SIGINT or SIGTERM ends the run cleanly; a second one ends it at once, with exit code 130 or 143. Frames that the kernel or a slow analysis dropped are counted \
in every output.\n\nThe run needs CAP_NET_RAW, with the probe also CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and gives up all capabilities once the devices are open. \
A run started as root continues as another user: see --user.\n\nFrom then on it opens no file but its output and what the system reports about devices, starts no program and opens no socket.";
