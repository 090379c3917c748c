/* In the style of UMap's churn program: readers check a file's pages at random, a writer stamps
 * the pages of another, both placed in one reserved range with UMAP_FIXED, while a buffer much
 * smaller than either makes pages come and go.
 *
 *     churn READ_FILE WRITE_FILE PAGES ROUNDS */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "umap/umap.h"

enum { PAGE = 4096, READERS = 3 };

static uint64_t pages, rounds;
static uint64_t *to_read, *to_write;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t next(uint64_t *x)
{
    return (*x = *x * 6364136223846793005u + 1442695040888963407u) >> 33;
}

static void *read_pages(void *seed)
{
    uint64_t x = (uint64_t)(uintptr_t)seed, wrong = 0;
    for (uint64_t i = 0; i < rounds * pages; i++) {
        uint64_t page = next(&x) % pages;
        wrong += to_read[page * (PAGE / 8) + page % 512] != page;
    }
    return (void *)(uintptr_t)wrong;
}

static void *write_pages(void *seed)
{
    uint64_t x = (uint64_t)(uintptr_t)seed;
    for (uint64_t i = 0; i < rounds * pages; i++) {
        uint64_t page = next(&x) % pages;
        to_write[page * (PAGE / 8) + 3] += 1;
        to_write[page * (PAGE / 8) + 509] += 1;
    }
    return NULL;
}

static int make(const char *path, int fill)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    uint64_t words[PAGE / 8] = { 0 };
    for (uint64_t page = 0; page < pages; page++) {
        if (fill)
            words[page % 512] = page;
        if (write(fd, words, PAGE) != PAGE)
            fail(path);
        words[page % 512] = 0;
    }
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    pages = strtoull(argv[3], NULL, 10);
    rounds = strtoull(argv[4], NULL, 10);
    int in = make(argv[1], 1), out = make(argv[2], 0);
    uint64_t bytes = pages * PAGE, half = bytes / 2;
    char *range = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int flags = UMAP_PRIVATE | UMAP_FIXED, rw = PROT_READ | PROT_WRITE;

    to_read = (uint64_t *)range;
    to_write = (uint64_t *)(range + bytes);
    /* The first file in two regions, as one range. */
    if (umap(range, half, PROT_READ, flags, in, 0) != range ||
        umap(range + half, half, PROT_READ, flags, in, (off_t)half) != range + half ||
        umap(to_write, bytes, rw, flags, out, 0) != (void *)to_write)
        fail("umap");
    if (umap(range, half, PROT_READ, flags, in, 0) != UMAP_FAILED)
        return 4;
    struct umap_prefetch_item items[] = { { range }, { range + half } };
    umap_prefetch(2, items);
    umap_fetch_and_pin((char *)to_write, 8 * PAGE);

    pthread_t readers[READERS], writer;
    pthread_create(&writer, NULL, write_pages, (void *)(uintptr_t)7);
    for (uintptr_t r = 0; r < READERS; r++)
        pthread_create(&readers[r], NULL, read_pages, (void *)(r + 1));
    uint64_t wrong = 0;
    for (int r = 0; r < READERS; r++) {
        void *got;
        pthread_join(readers[r], &got);
        wrong += (uint64_t)(uintptr_t)got;
    }
    pthread_join(writer, NULL);
    if (uunmap(range, half) || uunmap(range + half, half) || uunmap(to_write, bytes))
        fail("uunmap");
    if (uunmap(range, half) == 0)
        return 5;

    uint64_t stores = 0, words[PAGE / 8];
    lseek(out, 0, SEEK_SET);
    for (uint64_t page = 0; page < pages && read(out, words, PAGE) == PAGE; page++) {
        stores += words[3];
        wrong += words[3] != words[509];
    }
    printf("%llu wrong, %llu of %llu stores\n", (unsigned long long)wrong,
           (unsigned long long)stores, (unsigned long long)(rounds * pages));
    return wrong || stores != rounds * pages;
}
