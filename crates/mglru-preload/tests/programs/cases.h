/* What the programs have in common: each runs the case it is told and says how that went. It says
 * the same with a pager and without. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB (1UL << 20)
#define PAGE 4096UL
#define SOME (8 * MB)

typedef unsigned char byte;

static inline void fill(byte *p, size_t n, uint64_t salt) {
    for (size_t i = 0; i < n; i += 512) *(uint64_t *)(p + i) = i * 2654435761u ^ salt << 32;
}

static inline int is_filled(const byte *p, size_t n, uint64_t salt) {
    for (size_t i = 0; i < n; i += 512)
        if (*(const uint64_t *)(p + i) != (i * 2654435761u ^ salt << 32)) return 0;
    return 1;
}

static inline int is_zero(const byte *p, size_t n) {
    for (size_t i = 0; i < n; i += 8)
        if (*(const uint64_t *)(p + i)) return 0;
    return 1;
}

static inline byte *anon(size_t n, int prot) {
    byte *p = mmap(0, n, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) perror("mmap"), exit(9);
    return p;
}

/* Memory that is filled: more of it than the pager may keep, once `press` was called. */
static inline byte *filled(size_t n, uint64_t salt) {
    byte *p = anon(n, PROT_READ | PROT_WRITE);
    fill(p, n, salt);
    return p;
}

static inline void press(void) {
    byte *p = filled(32 * MB, 99);
    munmap(p, 32 * MB);
}

/* How a child ends that does this: its exit status, or its signal and 256. */
static inline int in_child(int (*what)(byte *), byte *p) {
    pid_t child = fork();
    if (!child) _exit(what(p));
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) + 256 : WEXITSTATUS(status);
}

struct a_case {
    const char *name;
    void (*run)(void);
};

static inline int run_case(const struct a_case *cases, const char *name) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (; cases->name; cases++)
        if (!strcmp(cases->name, name)) {
            cases->run();
            return 0;
        }
    return 5;
}

/* What a call answered. */
#define SAY(call)                                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long answer = (long)(call);                                                                \
        printf("%s: %ld %s\n", #call, answer, answer == -1 ? strerror(errno) : "");                \
    } while (0)
