#!/bin/sh
# Puts a container's service under a budget: the image's entry point, in place of the service.
#
#   COPY entrypoint.sh /usr/local/bin/mglru-entrypoint
#   ENTRYPOINT ["mglru-entrypoint"]
#   CMD ["my-service", "--flag"]
#
# MGLRU_BUDGET (such as 2GiB) sets the budget; without it the container's own memory.high or
# memory.max is taken, less an eighth for what no budget covers. MGLRU_METRICS (0.0.0.0:9100)
# serves Prometheus. Where the host does not allow the pager, the service starts as it is, and one
# line says so.
set -eu

limit() {
    for file in memory.high memory.max memory/memory.limit_in_bytes; do
        value=$(cat "${MGLRU_CGROUP:-/sys/fs/cgroup}/$file" 2>/dev/null || echo max)
        case $value in
            max | '' | 9223372036854771712) ;;
            *) echo $((value / 8 * 7)); return ;;
        esac
    done
}

budget=${MGLRU_BUDGET:-$(limit)}
if [ $# -eq 0 ]; then
    echo "mglru-entrypoint: name the service to run" >&2
    exit 2
fi
if [ -z "$budget" ]; then
    echo "mglru-entrypoint: no limit and no MGLRU_BUDGET: $1 runs without a budget" >&2
    exec "$@"
fi
if ! mglru exec --memory.max 64MiB -- true 2>/dev/null; then
    echo "mglru-entrypoint: this host does not allow the pager (mglru doctor): $1 runs without" >&2
    exec "$@"
fi
set -- -- "$@"
if [ -n "${MGLRU_METRICS:-}" ]; then
    set -- --metrics "$MGLRU_METRICS" "$@"
fi
exec mglru exec --memory.max "$budget" "$@"
