// Does to descriptors what daemons do, with memory in use. Prints the wrong bytes: 0.
// descriptors FILE WAY
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEN (48UL << 20)

// Does not compress: it goes to the swap file.
static char noise(size_t i, int salt) {
    unsigned x = (i + salt) * 2654435761u;
    x ^= x >> 15;
    return (x * 2246822519u) >> 24;
}

static char *fill(int salt) {
    char *memory = malloc(LEN);
    for (size_t i = 0; i < LEN; i++) memory[i] = noise(i, salt);
    return memory;
}

static long wrong(const char *memory, int salt) {
    long bad = 0;
    for (size_t i = 0; i < LEN; i++) bad += memory[i] != noise(i, salt);
    return bad;
}

int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600), to = fd;
    const char *way = argv[2];
    if (!strcmp(way, "lower the limit")) {
        struct rlimit limit = {256, 256};
        if (setrlimit(RLIMIT_NOFILE, &limit)) return 6;
    }
    char *first = fill(1);
    if (!strncmp(way, "dup2 ", 5)) to = dup2(fd, atoi(way + 5));
    if (!strncmp(way, "dup3 ", 5)) to = dup3(fd, atoi(way + 5), 0);
    if (!strcmp(way, "close all")) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        for (int n = 3; n < (int)limit.rlim_cur; n++) if (n != fd) close(n);
    }
    if (!strcmp(way, "close twice the limit"))
        for (int n = 3; n < 70000; n++) if (n != fd) close(n);
    if (!strcmp(way, "close_range")) {
        to = dup2(fd, 3);
        if (close_range(4, ~0U, 0)) return 3;
    }
    if (!strcmp(way, "closefrom")) {
        to = dup2(fd, 3);
        closefrom(4);
    }
    if (!strcmp(way, "replace all"))
        for (int n = 3; n < 2000; n++) if (n != fd) dup2(fd, n);
    if (!strcmp(way, "stderr")) {
        to = dup2(fd, 2);
        close(fd);
    }
    if (!strcmp(way, "behind every library"))
        for (long n = 2048; n < 4096; n++) {
            long done;
            __asm__ volatile("syscall" : "=a"(done) : "a"(33L), "D"((long)fd), "S"(n)
                             : "rcx", "r11", "memory");
        }
    if (write(to, "record1\n", 8) != 8) return 4;
    char *second = fill(2);
    long bad = wrong(first, 1) + wrong(second, 2);
    int map = open("/proc/self/exe", O_RDONLY);
    char *code = mmap(0, 4096, PROT_READ, MAP_PRIVATE, map, 0);
    if (memcmp(code, "\177ELF", 4) || write(to, "record2\n", 8) != 8) return 5;
    printf("%ld\n", bad);
    return 0;
}
