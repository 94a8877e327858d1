# mcp-gangway in a container. docs/docker.md says how to run it. The build needs BuildKit, which Docker uses by default
# since version 23. For older versions, set DOCKER_BUILDKIT=1. There is no `# syntax=` line, so a build fetches no
# frontend.

# 1 adds `uvx` and Python to the image, for servers that are written in Python. Other values than 0 and 1 fail the
# build.
ARG WITH_UV=0

# Debian instead of Alpine, because many npm packages and Python wheels with native parts are built only for glibc.
FROM node:24-bookworm-slim AS base

# The list of packages. If the registry requires a login, use docker build --secret id=npmrc,src=<file>. No layer
# contains the file. The cache is shared, so the second `npm ci`, and a later build with the same lock file, download
# nothing. The gateway needs no package's installation script. The packages of this repository are not linked: the build
# reads their sources, and the bundle contains them.
FROM base AS manifest
WORKDIR /app
COPY package.json package-lock.json .npmrc ./

FROM manifest AS build
RUN --mount=type=cache,target=/root/.npm,sharing=locked --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --ignore-scripts --prefer-offline --workspaces=false
COPY tsconfig.json ./
COPY scripts/build.mjs scripts/
COPY packages packages
COPY src src
RUN npm run build

FROM manifest AS packages
RUN --mount=type=cache,target=/root/.npm,sharing=locked --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --omit=dev --ignore-scripts --prefer-offline --workspaces=false

# tini as PID 1. A server that runs below `npx` or `sh` loses its parent when its group is ended; the kernel then hands
# it to PID 1, which must reap it. Node.js does not reap processes that it did not start: they would stay as zombies
# until the container's pids run out. And PID 1 has no default reaction to SIGTERM, should it come before the gateway
# listens to it.
FROM base AS with-uv-0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log

FROM base AS uv
ARG UV_VERSION=
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pip
RUN pip install --no-cache-dir --break-system-packages "uv${UV_VERSION:+==$UV_VERSION}"

FROM with-uv-0 AS with-uv-1
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
COPY --from=uv /usr/local/bin/uv /usr/local/bin/uvx /usr/local/bin/

FROM with-uv-${WITH_UV}
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --chmod=444 package.json LICENSE ./

# Servers write below the home directory (~/.npm for npx, ~/.cache and ~/.local for uvx) or to /tmp. The folders exist,
# so a new volume that is mounted there belongs to the user. Servers also start in the home directory, because in /app,
# npx would use the gateway's own packages.
RUN install --directory --owner=node --group=node /home/node/.npm /home/node/.cache /home/node/.local \
 && install --directory --owner=node --group=node --mode=700 /var/lib/mcp-gangway
WORKDIR /home/node

# A number, so that runAsNonRoot of Kubernetes can check that the user is not root.
USER 1000:1000

# Nothing outside of the container can reach its 127.0.0.1, so the gateway listens on all addresses. There, it checks
# Host only if --allow-host names some: docs/docker.md. On 127.0.0.1, only servers could reach the operator port. The
# port is off until it has an address: docs/status-page.md. Sessions survive a restart of the container. With a named
# volume, they also survive a new container: docs/store.md. So do the packages of servers. With Redis, the gateway does not use the volume.
ENV HOME=/home/node NODE_ENV=production GANGWAY_HOST=0.0.0.0 GANGWAY_LISTEN_ADMIN_HOST=off \
    GANGWAY_REPLAY_STORE=file-if-writable:/var/lib/mcp-gangway GANGWAY_PACKAGES_FOLDER=/var/lib/mcp-gangway/packages
VOLUME /var/lib/mcp-gangway
EXPOSE 8080

# The check takes the port, the address and the certificate from the options of the gateway in the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/app/dist/main.js", "health"]

# -s: reaps also where it is not PID 1 (docker run --init, --pid host, shareProcessNamespace of Kubernetes). The first
# flag stops V8's space for new objects at half of what it takes by itself: docs/decisions/0085. With the second one,
# the gateway collects the buffers of large messages in time (docs/decisions/0085), and returns memory at rest. The
# third one returns the memory of V8's compilers: docs/decisions/0085.
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "node", "--max-semi-space-size=32", "--expose-gc", "--no-maglev-destroy-on-background", "/app/dist/main.js"]

ARG VERSION=0.1.0
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="mcp-gangway" \
      org.opencontainers.image.description="A gateway that puts any MCP server behind one Streamable HTTP endpoint, whose streams survive broken connections and, with Redis, host failures." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="$SOURCE"
