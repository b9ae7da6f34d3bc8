# Builds the server from this checkout: docker build -t assay . (docs/deploy.md). Another base image needs Node 22.13 or
# newer and glibc (such as Debian), because onnxruntime has no build for musl (Alpine).
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
# npm names the bill of materials after the folder.
WORKDIR /assay
COPY package.json package-lock.json .npmrc ./
# Runs no install scripts: none is needed, and "prepare" would build pages whose sources are not copied yet.
RUN npm ci --ignore-scripts
COPY tsconfig*.json openapi.json README.md CHANGELOG.md SECURITY.md ./
COPY clients/README.md clients/
COPY benchmarks/report.md benchmarks/
COPY docs docs
COPY examples examples
COPY lib lib
COPY handlers handlers
COPY runtime runtime
COPY adapters adapters
COPY models models
COPY release/other-systems.js release/
RUN npm run build \
 && npm pkg delete devDependencies \
 && npm prune --ignore-scripts \
 && npm sbom --sbom-format cyclonedx --sbom-type application > assay.cdx.json \
 && node release/other-systems.js \
 && rm -rf models/*/training

FROM ${NODE_IMAGE}
WORKDIR /opt/assay
COPY --from=build /assay/package.json /assay/openapi.json /assay/assay.cdx.json ./
COPY --from=build /assay/node_modules node_modules
COPY --from=build /assay/models models
COPY --from=build /assay/dist dist
# Creates the folders because named volumes inherit their owner.
RUN ln -s /opt/assay/dist/adapters/node/bin.js /usr/local/bin/assay \
 && chmod +x dist/adapters/node/bin.js \
 && install -d -o 1000 -g 1000 -m 0700 /var/lib/assay /var/cache/assay
# HOME is set because Node cannot find it for a user without an entry in /etc/passwd.
ENV NODE_ENV=production HOME=/var/lib/assay ASSAY_HOME=/var/lib/assay HF_HOME=/var/cache/assay NODE_COMPILE_CACHE=/tmp/node-compile-cache
VOLUME ["/var/lib/assay", "/var/cache/assay"]
# The user is a number because Kubernetes can only check a number for not being root.
USER 1000:1000
EXPOSE 8080
# Healthy means that a model answers. Failures do not count while the first model loads.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/health/ready`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["assay"]
# Other machines can reach this address, so the server starts only with a key: ASSAY_API_KEY_FILE, or `assay keys add`.
CMD ["serve", "--host", "0.0.0.0"]
