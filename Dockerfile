# A gateway in a container: non-root, read-only root, state in /var/lib/devgate.
#
#	podman build --format docker -t devgate .
#	podman run --read-only -v devgate:/var/lib/devgate -p 8443:8443 devgate
#
# Without a token, a client CA or --no-auth the gateway refuses to listen beyond loopback: make a
# token first with `podman run --rm -v devgate:/var/lib/devgate devgate token create --name N`.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY deploy/deps.sh deploy/
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends make >/dev/null \
	&& deploy/deps.sh build
COPY . .
RUN make -j2 all && make install PREFIX=/usr DESTDIR=/out \
	&& strip /out/usr/bin/* /out/usr/libexec/devgate/*

FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
		libevent-core-2.1-7 libjansson4 libcurl4 libssl3 libsqlite3-0 libinih1 \
		ca-certificates >/dev/null \
	&& rm -rf /var/lib/apt/lists/* \
	&& useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin devgate \
	&& install -d -m 0700 -o devgate -g devgate /var/lib/devgate
COPY --from=build /out/usr/bin/ /usr/bin/
COPY --from=build /out/usr/libexec/devgate/ /usr/libexec/devgate/
USER 10001
VOLUME /var/lib/devgate
EXPOSE 8443
# The certificate's key is in the state folder of this very container: its pin is the trust.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
	CMD DEVGATE_PIN="$(cat /var/lib/devgate/pin)" devgate health https://127.0.0.1:8443
ENTRYPOINT ["/usr/bin/devgated"]
CMD ["--listen", "0.0.0.0:8443"]
