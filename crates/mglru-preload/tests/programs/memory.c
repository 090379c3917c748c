/* Calls about private memory. */
#include "cases.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#define GUARD_INSTALL 102
#define GUARD_REMOVE 103

static void protected_memory(void) {
    byte *p = filled(32 * MB, 1);
    SAY(mprotect(p, 16 * MB, PROT_READ));
    SAY(mprotect(p + 16 * MB, 16 * MB, PROT_NONE));
    byte *q = filled(32 * MB, 2);
    SAY(is_filled(p, 16 * MB, 1));
    SAY(mprotect(p + 16 * MB, 16 * MB, PROT_READ | PROT_WRITE));
    SAY(is_filled(p + 16 * MB, 1, 1) + is_filled(q, 32 * MB, 2));
    SAY(mprotect(p, 16 * MB, PROT_READ | PROT_WRITE));
    fill(p, 16 * MB, 3);
    press();
    SAY(is_filled(p, 16 * MB, 3));
}

static int filled_some(byte *p) { return is_filled(p, SOME, 1); }
static int zero_some(byte *p) { return is_zero(p, SOME); }
static int touch(byte *p) { return *(volatile byte *)p ? 3 : 4; }

static void protected_shared_memory(void) {
    byte *p = filled(SOME, 1);
    mprotect(p, SOME, PROT_READ);
    int pipes[2];
    pipe(pipes);
    pid_t child = fork();
    if (!child) {
        byte end;
        close(pipes[1]);
        read(pipes[0], &end, 1);
        _exit(filled_some(p));
    }
    close(pipes[0]);
    press();
    SAY(is_filled(p, SOME, 1));
    close(pipes[1]);
    int status;
    waitpid(child, &status, 0);
    SAY(WEXITSTATUS(status));
}

static void wipe_on_fork(void) {
    byte *p = filled(SOME, 1);
    press();
    SAY(madvise(p, SOME, MADV_WIPEONFORK));
    SAY(in_child(zero_some, p));
    fill(p, SOME, 1);
    SAY(in_child(zero_some, p));
    SAY(is_filled(p, SOME, 1));
    SAY(madvise(p, SOME, MADV_KEEPONFORK));
    press();
    SAY(in_child(filled_some, p));
    SAY(madvise(p, SOME, MADV_WIPEONFORK));
    SAY(munmap(p, SOME));
    byte *q = filled(SOME, 1);
    press();
    SAY(in_child(filled_some, q));
}

static int grandchild_of_wiped(byte *p) {
    madvise(p, SOME, MADV_WIPEONFORK);
    return in_child(zero_some, p) + 2 * is_filled(p, SOME, 1);
}

static void wipe_in_a_child(void) {
    byte *p = filled(SOME, 1);
    press();
    SAY(in_child(grandchild_of_wiped, p));
}

static void no_fork(void) {
    byte *p = filled(SOME, 1);
    SAY(madvise(p, SOME, MADV_DONTFORK));
    press();
    SAY(in_child(touch, p));
    SAY(is_filled(p, SOME, 1));
    press();
    SAY(madvise(p, SOME, MADV_DOFORK));
    SAY(in_child(filled_some, p));
}

static int zero_most(byte *p) { return is_zero(p, SOME + MB); }

/* What is moved, or made longer where it is, stays kept from children. */
static void moves_keep_from_children(void) {
    byte *p = filled(SOME, 1), *q = filled(SOME, 2);
    SAY(madvise(p, SOME, MADV_WIPEONFORK) + madvise(q, SOME, MADV_DONTFORK));
    byte *p2 = anon(SOME + MB, PROT_READ), *q2 = anon(SOME + MB, PROT_READ);
    SAY(mremap(p, SOME, SOME + MB, MREMAP_MAYMOVE | MREMAP_FIXED, p2) == p2);
    SAY(mremap(q, SOME, SOME + MB, MREMAP_MAYMOVE | MREMAP_FIXED, q2) == q2);
    fill(p2 + SOME, MB, 3);
    press();
    SAY(in_child(zero_most, p2));
    SAY(in_child(touch, q2) + in_child(touch, q2 + SOME));
    SAY(is_filled(p2, SOME, 1) + is_filled(q2, SOME, 2));
    munmap(p2 + SOME, MB);
    p2 = mremap(p2, SOME, SOME + MB, MREMAP_MAYMOVE);
    fill(p2 + SOME, MB, 3);
    SAY(in_child(zero_most, p2));
}

static void move_to_a_place(void) {
    byte *from = filled(SOME, 1), *to = filled(SOME, 2);
    press();
    SAY(mremap(from, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    SAY(is_filled(to, SOME, 1));
    SAY(in_child(touch, from));
    fill(to, SOME, 3);
    press();
    SAY(is_filled(to, SOME, 3));
    byte *longer = anon(2 * SOME, PROT_READ | PROT_WRITE);
    SAY(mremap(to, SOME, 2 * SOME, MREMAP_MAYMOVE | MREMAP_FIXED, longer) == longer);
    SAY(is_filled(longer, SOME, 3) + is_zero(longer + SOME, SOME));
    SAY(mremap(longer, 2 * SOME, MB, MREMAP_MAYMOVE | MREMAP_FIXED, from) == from);
    SAY(is_filled(from, MB, 3));
    SAY(in_child(touch, longer + MB));
}

static void move_and_keep(void) {
    byte *p = filled(SOME, 1);
    press();
    byte *q = mremap(p, SOME, SOME, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    SAY(q != MAP_FAILED && q != p);
    SAY(is_filled(q, SOME, 1) + is_zero(p, SOME));
    fill(p, SOME, 2);
    press();
    SAY(is_filled(q, SOME, 1) + is_filled(p, SOME, 2));
    byte *r = anon(SOME, PROT_READ);
    SAY(mremap(p, SOME, SOME, MREMAP_MAYMOVE | MREMAP_DONTUNMAP | MREMAP_FIXED, r) == r);
    SAY(is_filled(r, SOME, 2) + is_zero(p, SOME));
}

static int scratch(void) {
    char name[] = "cases-XXXXXX";
    return mkstemp(name);
}

static byte *of_file(size_t n, int fd, uint64_t salt) {
    byte *content = filled(n, salt);
    pwrite(fd, content, n, 0);
    munmap(content, n);
    return mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
}

/* Shared memory, and what was there before the program, are not the pager's. */
static void move_in_and_out(void) {
    byte *in = filled(SOME, 1);
    byte *out = mmap(0, SOME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(out, SOME, 2);
    press();
    SAY(mremap(in, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, out) == out);
    SAY(is_filled(out, SOME, 1));
    byte *other = mmap(0, SOME, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(other, SOME, 3);
    byte *into = filled(SOME, 4);
    press();
    SAY(mremap(other, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, into) == into);
    SAY(is_filled(into, SOME, 3));
    fill(into, SOME, 5);
    press();
    SAY(is_filled(into, SOME, 5) + in_child(touch, other));
    byte *far = anon(SOME, PROT_READ | PROT_WRITE);
    byte *file = of_file(SOME, scratch(), 7), *over = filled(SOME, 8);
    SAY(mremap(file, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, over) == over);
    SAY(is_filled(over, SOME, 7));
    fill(over, MB, 9);
    SAY(mremap(over, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, far) == far);
    SAY(is_filled(far, MB, 9) && *(uint64_t *)(far + MB) == (MB * 2654435761u ^ 7UL << 32));
    SAY(in_child(touch, over));
    SAY(munmap(into, SOME));
    byte *again = filled(SOME, 6);
    press();
    SAY(is_filled(again, SOME, 6));
}

static int store(byte *p) { return *(volatile byte *)p = 1; }

static void moves_keep_protection(void) {
    byte *p = filled(SOME, 1);
    mprotect(p, SOME / 2, PROT_READ);
    mprotect(p + SOME / 2, SOME / 2, PROT_NONE);
    press();
    byte *q = mremap(p, SOME / 2, SOME / 2, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    byte *r = mremap(p + SOME / 2, SOME / 2, 2 * SOME, MREMAP_MAYMOVE, 0);
    SAY(is_filled(q, SOME / 2, 1));
    SAY(in_child(store, q));
    SAY(in_child(store, p));
    SAY(in_child(touch, r));
    SAY(in_child(touch, r + 2 * SOME - 1));
    mprotect(r, 2 * SOME, PROT_READ);
    SAY(r[0] == 0 ? is_zero(r + SOME, SOME) : 0);
    SAY(*(uint64_t *)r == ((SOME / 2) * 2654435761u ^ 1UL << 32));
}

static void at_a_free_place(void) {
    byte *p = filled(SOME, 1);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    SAY(mmap(p, SOME, PROT_READ | PROT_WRITE, flags, -1, 0));
    SAY(munmap(p + MB, MB));
    SAY(mmap(p, 2 * MB, PROT_READ | PROT_WRITE, flags, -1, 0));
    SAY(mmap(p + MB, MB, PROT_READ | PROT_WRITE, flags, -1, 0) == p + MB);
    SAY(is_filled(p, MB, 1) + is_zero(p + MB, MB));
}

static void refused_moves(void) {
    byte *p = filled(SOME, 1), *q = filled(SOME, 2);
    SAY(mremap(p + 1, PAGE, PAGE, MREMAP_MAYMOVE, 0));
    SAY(mremap(p, 0, PAGE, MREMAP_MAYMOVE, 0));
    SAY(mremap(p, PAGE, 0, MREMAP_MAYMOVE, 0));
    SAY(mremap(p, PAGE, (size_t)-PAGE, MREMAP_MAYMOVE, 0));
    SAY(mremap(p, PAGE, 1UL << 48, MREMAP_MAYMOVE, 0));
    SAY(mremap(p, PAGE, PAGE, MREMAP_FIXED, q));
    SAY(mremap(p, PAGE, PAGE, 8, q));
    SAY(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q + 1));
    SAY(mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE));
    SAY(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
    SAY(mremap(p, PAGE, PAGE, MREMAP_DONTUNMAP, 0));
    munmap(p + PAGE, PAGE);
    SAY(mremap(p, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE, 0));
    SAY(mremap(p + PAGE, PAGE, 4 * PAGE, MREMAP_MAYMOVE, 0));
    SAY(mremap(p + 2 * PAGE, PAGE, 4 * PAGE, 0, 0));
    SAY(is_filled(p, PAGE, 1) + is_filled(q, SOME, 2));
}

static void refused_advice(void) {
    byte *p = filled(SOME, 1), out[16];
    SAY(madvise(p, PAGE, 777));
    SAY(madvise(p + 1, PAGE, MADV_DONTNEED));
    SAY(madvise(p, 0, MADV_DONTNEED));
    SAY(madvise(p, 0, 777));
    SAY(madvise(p, PAGE, MADV_REMOVE));
    munmap(p + PAGE, PAGE);
    SAY(madvise(p, 3 * PAGE, MADV_DONTNEED));
    SAY(is_zero(p, PAGE) + is_zero(p + 2 * PAGE, PAGE));
    SAY(madvise(p, 3 * PAGE, MADV_WILLNEED));
    SAY(madvise(p + PAGE, PAGE, MADV_WIPEONFORK));
    SAY(madvise(p, 3 * PAGE, MADV_POPULATE_WRITE));
    SAY(mincore(p, 3 * PAGE, out));
    SAY(mincore(p + 1, PAGE, out));
    SAY(mprotect(p + PAGE, PAGE, PROT_READ));
    SAY(msync(p, 3 * PAGE, MS_SYNC));
    SAY(mlock(p, 3 * PAGE));
    SAY(munlock(p + PAGE, PAGE));
    mprotect(p, PAGE, PROT_READ);
    SAY(madvise(p, PAGE, MADV_POPULATE_READ));
    SAY(madvise(p, PAGE, MADV_POPULATE_WRITE));
}

static void dropped(void) {
    byte *p = filled(SOME, 1);
    press();
    SAY(madvise(p + MB, MB, MADV_DONTNEED));
    SAY(is_filled(p, MB, 1) + is_zero(p + MB, MB));
    SAY(madvise(p + 2 * MB, MB, MADV_FREE));
    fill(p + 2 * MB, MB, 2);
    press();
    SAY(is_filled(p + 2 * MB, MB, 2));
    SAY(madvise(p, SOME, MADV_POPULATE_READ));
    SAY(madvise(p, SOME, MADV_POPULATE_WRITE));
    SAY(is_filled(p, MB, 1) + is_zero(p + MB, MB) + is_filled(p + 2 * MB, MB, 2));
}

static void guards(void) {
    byte *p = filled(SOME, 1);
    press();
    SAY(madvise(p + MB, MB, GUARD_INSTALL));
    SAY(in_child(touch, p + MB));
    SAY(in_child(store, p + 2 * MB - 1));
    press();
    SAY(is_filled(p, MB, 1));
    SAY(madvise(p + 2 * MB, MB, GUARD_INSTALL));
    SAY(madvise(p + 2 * MB, MB, MADV_DONTNEED));
    SAY(in_child(touch, p + 2 * MB));
    SAY(madvise(p, SOME, GUARD_REMOVE));
    SAY(is_filled(p, MB, 1) + is_zero(p + MB, MB));
    fill(p + MB, MB, 2);
    press();
    SAY(is_filled(p + MB, MB, 2));
}

static void private_files(void) {
    int fd = scratch();
    byte *p = of_file(2 * SOME, fd, 1);
    fill(p, SOME, 2);
    SAY(madvise(p, SOME, MADV_REMOVE));
    SAY(madvise(p, SOME, MADV_WIPEONFORK));
    SAY(madvise(p, SOME, 777));
    SAY(madvise(p, SOME, MADV_DONTFORK));
    SAY(in_child(touch, p));
    SAY(in_child(touch, p + SOME) > 4);
    SAY(madvise(p, SOME, MADV_DOFORK));
    SAY(in_child(touch, p) > 4);
    byte *q = mremap(p, 2 * SOME, 2 * SOME, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    SAY(q != MAP_FAILED && is_filled(q, SOME, 2));
    SAY(in_child(touch, p) > 4);
    byte *r = anon(SOME, PROT_READ);
    SAY(mremap(q, SOME, SOME, MREMAP_MAYMOVE | MREMAP_FIXED, r) == r);
    SAY(is_filled(r, SOME, 2));
    SAY(in_child(touch, q));
    q += SOME;
    SAY(*(uint64_t *)q == (SOME * 2654435761u ^ 1UL << 32));
}

static const struct a_case CASES[] = {
    {"protected_memory", protected_memory},
    {"protected_shared_memory", protected_shared_memory},
    {"wipe_on_fork", wipe_on_fork},
    {"wipe_in_a_child", wipe_in_a_child},
    {"no_fork", no_fork},
    {"moves_keep_from_children", moves_keep_from_children},
    {"move_to_a_place", move_to_a_place},
    {"move_and_keep", move_and_keep},
    {"move_in_and_out", move_in_and_out},
    {"moves_keep_protection", moves_keep_protection},
    {"at_a_free_place", at_a_free_place},
    {"refused_moves", refused_moves},
    {"refused_advice", refused_advice},
    {"dropped", dropped},
    {"guards", guards},
    {"private_files", private_files},
    {0, 0},
};

int main(int n, char **args) { return n == 2 ? run_case(CASES, args[1]) : 5; }
