/* A table of 64 MiB in a budget of 16 MiB.
 *
 *     cargo build --release -p mglru-capi
 *     cc -I include examples/table.c -L ../../../target/release -lmglru -o table
 *     LD_LIBRARY_PATH=../../../target/release ./table
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mglru.h"

enum { ROWS = 8 << 20 };

static void check(int error)
{
    if (error) {
        fprintf(stderr, "table: %s\n", mglru_last_error());
        exit(2);
    }
}

int main(void)
{
    mglru_options options = MGLRU_OPTIONS_INIT;
    mglru_pager *pager;
    mglru_group *root;
    mglru_map *map;
    uint64_t peak, evicted, wrong = 0;

    options.memory_max = 16 << 20;
    options.swap_pool = 12 << 20;
    check(mglru_open(&options, &pager));
    check(mglru_root(pager, &root));
    check(mglru_map_anon(root, ROWS * sizeof(uint64_t), &map));

    uint64_t *rows = mglru_map_start(map);
    for (uint64_t n = 0; n < ROWS; n++)
        rows[n] = n / 64 * 7;
    for (uint64_t n = 0; n < ROWS; n++)
        wrong += rows[n] != n / 64 * 7;

    check(mglru_group_get(root, "memory.peak", &peak));
    check(mglru_group_get(root, "pgsteal_anon", &evicted));
    printf("%d rows, %" PRIu64 " wrong; %" PRIu64 " MiB at most, %" PRIu64 " pages evicted\n",
           ROWS, wrong, peak >> 20, evicted);

    check(mglru_unmap(map));
    mglru_group_close(root);
    mglru_close(pager);
    return wrong != 0;
}
