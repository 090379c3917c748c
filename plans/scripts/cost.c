/* Times steps that a processor alone is busy with: nanoseconds a step by the wall clock and of
 * processor time, medians of rounds, and the least processor time. Run it on the host and in a guest. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 4096, PAGE = 4096, BYTES = PAGES * PAGE, ROUNDS = 15 };

static int file;
static char page[PAGE];
static volatile uint64_t sink;
static uint64_t state = 88172645463325252ull;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Reads pages of a cached file at random. */
static long cached(void) {
    for (int i = 0; i < PAGES; i++)
        if (pread(file, page, PAGE, (next() % PAGES) * PAGE) != PAGE) exit(1);
    return PAGES;
}

/* Touches fresh memory, page by page. */
static long fresh(void) {
    char *m = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(m, BYTES, MADV_NOHUGEPAGE);
    for (int i = 0; i < PAGES; i++) m[i * (long)PAGE] = 1;
    munmap(m, BYTES);
    return PAGES;
}

/* Touches a cached file through a fresh mapping. */
static long mapped(void) {
    char *m = mmap(0, BYTES, PROT_READ, MAP_SHARED, file, 0);
    madvise(m, BYTES, MADV_RANDOM);
    for (int i = 0; i < PAGES; i++) sink += m[i * (long)PAGE];
    munmap(m, BYTES);
    return PAGES;
}

/* A system call that does next to nothing. */
static long call(void) {
    for (int i = 0; i < 100000; i++) lseek(file, 0, SEEK_SET);
    return 100000;
}

/* Computes: 12 instructions a step. */
static long compute(void) {
    for (int i = 0; i < 4000000; i++) sink = next();
    return 4000000;
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, long (*round)(void)) {
    double wall[ROUNDS], own[ROUNDS];
    round();
    for (int i = 0; i < ROUNDS; i++) {
        double w = now(CLOCK_MONOTONIC), c = now(CLOCK_THREAD_CPUTIME_ID);
        long steps = round();
        wall[i] = (now(CLOCK_MONOTONIC) - w) / steps;
        own[i] = (now(CLOCK_THREAD_CPUTIME_ID) - c) / steps;
    }
    qsort(wall, ROUNDS, sizeof *wall, order);
    qsort(own, ROUNDS, sizeof *own, order);
    printf("%s wall %.2f processor %.2f least %.2f\n", name, wall[ROUNDS / 2], own[ROUNDS / 2], own[0]);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "cost.file";
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0) return perror(path), 1;
    for (int i = 0; i < PAGES; i++)
        if (pwrite(file, page, PAGE, i * (long)PAGE) != PAGE) return perror("pwrite"), 1;
    fsync(file);
    measure("pread", cached);
    measure("fresh", fresh);
    measure("mapped", mapped);
    measure("lseek", call);
    measure("user", compute);
    unlink(path);
    return 0;
}
