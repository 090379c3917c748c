/* Ends of a program whose first thread is not its last one. */
#include "cases.h"
#include <threads.h>

static void last_words(void) {
    byte *p = filled(16 * MB, 3);
    printf("at exit %d\n", is_filled(p, 16 * MB, 3));
}

static void *work(void *memory) {
    usleep(100000);
    byte *p = memory, *q = filled(32 * MB, 2);
    printf("worked %d\n", is_filled(p, SOME, 1) + is_filled(q, 32 * MB, 2));
    pthread_t more;
    if (pthread_create(&more, 0, (void *(*)(void *))usleep, (void *)200000)) puts("no thread");
    return 0;
}

static void *leave(void *memory) {
    usleep(100000);
    exit(3);
}

static void cleanup(void *what) { printf("cleanup of %s\n", (char *)what); }

static void start(void *(*what)(void *)) {
    pthread_t thread;
    atexit(last_words);
    if (pthread_create(&thread, 0, what, filled(SOME, 1))) puts("no thread");
}

static void others_work(void) {
    start(work);
    pthread_cleanup_push(cleanup, "the first thread");
    pthread_exit(0);
    pthread_cleanup_pop(0);
}

static void other_exits(void) {
    start(leave);
    pthread_exit(0);
}

static void alone(void) {
    filled(32 * MB, 1);
    atexit(last_words);
    pthread_exit(0);
}

static void by_c11(void) {
    start(work);
    thrd_exit(7);
}

static int end_of_child(byte *p) {
    start(work);
    pthread_exit(0);
}

static void in_a_child(void) { printf("%d\n", in_child(end_of_child, filled(SOME, 1))); }

static int in_file_and_leave(byte *p) {
    char name[] = "last-XXXXXX";
    int fd = mkstemp(name);
    ftruncate(fd, SOME);
    p = mmap(0, SOME, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    fill(p, SOME, 4);
    return end_of_child(p);
}

static void *fork_later(void *memory) {
    usleep(200000);
    printf("%d\n", in_child(in_file_and_leave, memory));
    return 0;
}

/* The first thread has ended when another one forks, whose child has a first thread too. */
static void in_a_late_child(void) {
    start(fork_later);
    pthread_exit(0);
}

static const struct a_case CASES[] = {
    {"others_work", others_work},
    {"other_exits", other_exits},
    {"alone", alone},
    {"by_c11", by_c11},
    {"in_a_child", in_a_child},
    {"in_a_late_child", in_a_late_child},
    {0, 0},
};

int main(int n, char **args) { return n == 2 ? run_case(CASES, args[1]) : 5; }
