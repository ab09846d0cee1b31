# Lanekeeper's image: `docker build -t lanekeeper .`
#
# The image holds the program, CA certificates and nothing of its own to write: it runs with a
# read-only root file system and as a user without a name. Every setting comes from the environment
# (LANEKEEPER__SECTION__KEY), or from files that are mounted (…_FILE).

# The toolchain that the tests ran with. To build the same image for ever, pin both bases by digest.
ARG RUST=1.95.0
ARG DEBIAN=bookworm

# --- The manifests alone -------------------------------------------------------------------------
# What the dependencies depend on: each member's Cargo.toml, the lock file, and empty sources in
# place of the real ones. A change of source leaves this stage's files as they were, and with them
# the layer that the next stage builds from them.
FROM rust:${RUST}-slim-${DEBIAN} AS manifests
COPY . /source
WORKDIR /manifests
RUN set -eu; \
    cp /source/Cargo.lock .; \
    for manifest in /source/Cargo.toml /source/*/Cargo.toml; do \
        [ -e "$manifest" ] || continue; \
        member=.$(dirname "${manifest#/source}"); \
        mkdir -p "$member/src"; \
        cp "$manifest" "$member/"; \
        echo '//! Empty.' >"$member/src/lib.rs"; \
    done; \
    printf '//! Empty.\nfn main() {}\n' >src/main.rs; \
    mkdir benches && cp src/main.rs benches/throughput.rs

# --- The dependencies, then the program ----------------------------------------------------------
FROM rust:${RUST}-slim-${DEBIAN} AS build
WORKDIR /build
ENV CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_STRIP=debuginfo CARGO_TERM_COLOR=never
COPY --from=manifests /manifests ./
RUN cargo build --locked --release --bin lanekeeper

COPY . ./
# Cargo compares times: the real sources may be older than the build of the empty ones.
RUN find . -name '*.rs' -not -path './target/*' -exec touch {} + \
    && cargo build --locked --release --bin lanekeeper \
    && install -D -m 755 target/release/lanekeeper /image/usr/local/bin/lanekeeper

# --- What runs -----------------------------------------------------------------------------------
FROM debian:${DEBIAN}-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log

LABEL org.opencontainers.image.title="lanekeeper" \
      org.opencontainers.image.description="Dispatch worker for outbound messages: two traffic lanes, one budget per account" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"

COPY --from=build /image/ /

# A number, because Kubernetes can only then see that it is not root.
USER 10001:10001
# Within a container, loopback would be out of reach for probes and Prometheus. There is no
# authentication: do not publish this port beyond the cluster.
ENV LANEKEEPER__OPS__LISTEN=0.0.0.0:9464
EXPOSE 9464
# The first signal lets a worker finish what it has begun, within worker.grace_s (25 s): give it 30.
STOPSIGNAL SIGTERM
# No HEALTHCHECK: the same image runs commands that serve nothing. compose.yaml and
# deploy/kubernetes/ ask a worker's /readyz and /healthz.
ENTRYPOINT ["lanekeeper"]
CMD ["worker"]
