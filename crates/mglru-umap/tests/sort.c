/* In the style of UMap's sort program: fills a file with descending numbers through umap(), sorts
 * them in place with several threads, checks them, and checks the file again without UMap.
 *
 *     sort FILE NUMBERS THREADS */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "umap/umap.h"

struct part {
    uint64_t *first;
    uint64_t n;
};

/* In place, so that the memory of the sort is the mapping alone. */
static void sort(uint64_t *v, int64_t n)
{
    while (n > 1) {
        uint64_t pivot = v[n / 2];
        int64_t i = 0, j = n - 1;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                uint64_t t = v[i];
                v[i++] = v[j];
                v[j--] = t;
            }
        }
        sort(v, j + 1);
        v += i;
        n -= i;
    }
}

static void *sort_part(void *part)
{
    sort(((struct part *)part)->first, (int64_t)((struct part *)part)->n);
    return NULL;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t n = strtoull(argv[2], NULL, 10), threads = strtoull(argv[3], NULL, 10);
    uint64_t page = umapcfg_get_umap_page_size();
    uint64_t bytes = (n * 8 + page - 1) / page * page;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (fd == -1 || posix_fallocate(fd, 0, (off_t)bytes))
        fail(argv[1]);
    uint64_t *v = umap(NULL, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
    if (v == UMAP_FAILED)
        fail("umap");

    for (uint64_t i = 0; i < n; i++)
        v[i] = (n - i) * 0x9E3779B97F4A7C15u;
    struct part parts[64];
    pthread_t ids[64];
    for (uint64_t t = 0; t < threads; t++) {
        parts[t] = (struct part){ v + n / threads * t, n / threads };
        pthread_create(&ids[t], NULL, sort_part, &parts[t]);
    }
    for (uint64_t t = 0; t < threads; t++)
        pthread_join(ids[t], NULL);
    for (uint64_t t = 0; t < threads; t++)
        for (uint64_t i = 1; i < parts[t].n; i++)
            if (parts[t].first[i - 1] > parts[t].first[i])
                return 3;

    uint64_t sum = 0, again = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += v[i] * (i + 1);
    if (umap_flush() || uunmap(v, bytes))
        fail("uunmap");
    FILE *file = fopen(argv[1], "r");
    uint64_t value;
    for (uint64_t i = 0; i < n && fread(&value, 8, 1, file) == 1; i++)
        again += value * (i + 1);
    fclose(file);
    close(fd);
    printf("%s\n", sum == again ? "sorted" : "the file differs");
    return sum != again;
}
