# Image of roce-analyze: `docker build -t roce-analyze .`, then `docker run --rm -v "$PWD:/captures:ro" roce-analyze a.pcap`.
# docs/install.md has the rights that live captures need.

# Base images by tag: both are Debian 12. A release records their digests in its attestation; --build-arg takes NAME@sha256:DIGEST.
ARG BUILDER=rust:1.95-bookworm
ARG BASE=debian:12-slim

FROM ${BUILDER} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The needs of `cargo xtask`: C_COMPILER and LIBPCAP in xtask/src/need.rs.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make libpcap-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY analyzer analyzer
COPY docs docs
COPY ebpf ebpf
COPY packages packages
COPY tests tests
COPY xtask xtask
# The history is not here: the commit is named from outside.
ARG ROCE_ANALYZE_COMMIT=
ARG FEATURES=default
RUN cargo build --release --locked -p roce-analyze --no-default-features --features "$FEATURES" \
    && mv target/release/roce-analyze /usr/local/bin/ \
    && rm -rf target

FROM ${BASE}
# libcap2-bin has setcap; ssh and certificates are for `fleet`, `fabric` and NX-API.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libcap2-bin libpcap0.8 openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 roce-analyze \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /captures --shell /usr/sbin/nologin roce-analyze
COPY --from=build /usr/local/bin/roce-analyze /usr/bin/roce-analyze
# Permitted, not in effect: the program runs without those that the container does not have, and raises the others itself.
RUN setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon=p /usr/bin/roce-analyze
LABEL org.opencontainers.image.title="roce-analyze" \
      org.opencontainers.image.description="Per-flow congestion timelines of RoCEv2 traffic" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
WORKDIR /captures
USER 10001:10001
EXPOSE 9902
ENTRYPOINT ["/usr/bin/roce-analyze"]
CMD ["--help"]
