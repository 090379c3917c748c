/* Takes 48 MiB in one way, fills it, and holds it for a moment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define N (48UL << 20)
#define RW (PROT_READ | PROT_WRITE)
#define MINE (MAP_PRIVATE | MAP_ANONYMOUS)
#define IS(kind) (!strcmp(argv[1], kind))

static char bss[N];

static void fill(char *start)
{
	unsigned seed = 7;
	for (size_t at = 0; at < N; at += 64) {
		seed = seed * 1664525 + 1013904223;
		*(unsigned *)(start + at) = seed;
	}
}

static void *deep(void *unused)
{
	volatile char here[N - (1 << 20)];
	for (size_t at = 0; at < sizeof here; at += 64)
		here[at] = 1;
	usleep(1000000);
	return here[64] == 1 ? unused : 0;
}

static void *thread_stack(void)
{
	pthread_t thread;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, N);
	pthread_create(&thread, &attributes, deep, 0);
	pthread_join(thread, 0);
	return 0;
}

static void *map(size_t len, int prot, int flags)
{
	return mmap(0, len, prot, flags, -1, 0);
}

static void *opened(void *start)
{
	mprotect(start, N, RW);
	return start;
}

static void *of(int fd, int flags)
{
	if (flags == MAP_SHARED)
		ftruncate(fd, N);
	return mmap(0, N, RW, flags, fd, 0);
}

static void *small(void)
{
	for (size_t at = 0; at < N; at += 256 << 10)
		memset(map(256 << 10, RW, MINE), 1, 256 << 10);
	return 0;
}

/* Runs this program, or another, of the same kind of use, and waits for it. */
static void *program(char *path, char *kind)
{
	char *args[] = {path, kind, 0};
	extern char **environ;
	pid_t child;
	if (posix_spawn(&child, path, 0, 0, args, environ) == 0)
		waitpid(child, 0, 0);
	return 0;
}

static void *forked(int waits)
{
	if (fork() == 0) {
		char *start = (char *)syscall(SYS_mmap, 0, N, RW, MINE, -1, 0);
		usleep(waits ? 0 : 1500000);
		fill(start);
		usleep(1500000);
		exit(0);
	}
	if (waits)
		wait(0);
	return 0;
}

/* Becomes a program that takes little. */
static int become_true(void)
{
	extern char **environ;
	char *args[] = {"/bin/true", 0};
	return execve(args[0], args, environ);
}

static void *vforked(void)
{
	char *start = (char *)syscall(SYS_mmap, 0, N, RW, MINE, -1, 0);
	fill(start);
	if (vfork() == 0)
		_exit(become_true());
	wait(0);
	return start;
}

int main(int argc, char **argv)
{
	char *p = 0, *at = (char *)0x200000000000;
	if (argc < 2)
		return 3;
	if (IS("malloc")) p = malloc(N);
	if (IS("zero")) p = of(open("/dev/zero", O_RDWR), MAP_PRIVATE);
	if (IS("opened")) p = opened(map(N, PROT_NONE, MINE));
	if (IS("long")) p = map(16UL << 30, RW, MINE | MAP_NORESERVE);
	if (IS("brk")) p = sbrk(N);
	if (IS("bss")) p = bss;
	if (IS("small")) p = small();
	if (IS("hint")) p = mmap(at, N, RW, MINE, -1, 0);
	if (IS("fixed")) p = mmap(at, N, RW, MINE | MAP_FIXED, -1, 0);
	if (IS("low")) p = map(N, RW, MINE | MAP_32BIT);
	if (IS("rwx")) p = map(N, RW | PROT_EXEC, MINE);
	if (IS("loads")) p = opened(map(N, PROT_READ, MINE));
	if (IS("reserved")) p = opened(map(16UL << 30, PROT_NONE, MINE | MAP_NORESERVE));
	if (IS("longest")) p = map(80UL << 30, RW, MINE | MAP_NORESERVE);
	if (IS("shared")) p = map(N, RW, MAP_SHARED | MAP_ANONYMOUS);
	if (IS("stack")) p = map(N, RW, MINE | MAP_STACK);
	if (IS("locked")) p = map(N, RW, MINE | MAP_LOCKED);
	if (IS("memfd")) p = of(memfd_create("x", 0), MAP_SHARED);
	if (IS("raw")) p = (char *)syscall(SYS_mmap, 0, N, RW, MINE, -1, 0);
	if (IS("thread")) p = thread_stack();
	if (IS("file")) p = of(open(".", O_TMPFILE | O_RDWR, 0600), MAP_SHARED);
	if (IS("moved")) p = mremap(mmap(at, N / 2, RW, MINE, -1, 0), N / 2, N, MREMAP_MAYMOVE);
	if (IS("vfork")) p = vforked();
	if (IS("child")) p = forked(1);
	if (IS("orphan")) p = forked(0);
	if (IS("program")) p = program(argv[0], "malloc");
	if (IS("static")) p = program("./static", "held");
	if (IS("held")) fill(malloc(N)), sleep(1);
	if (p == MAP_FAILED)
		return 1;
	if (p)
		fill(p);
	usleep(300000);
	if (argc > 2 && !strcmp(argv[2], "_exit"))
		_exit(0);
	return argc > 2 ? become_true() : 0;
}
