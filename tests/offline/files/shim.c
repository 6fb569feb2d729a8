/* Faults for files whose path holds "faulty": what to do stands in the file that FLOWLOG_SHIM names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int mode_is(const char *want)
{
	char mode[16] = {0};
	int fd = open(getenv("FLOWLOG_SHIM"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, mode, sizeof(mode) - 1);
	close(fd);
	return n > 0 && strcmp(mode, want) == 0;
}

static int is_faulty(int fd)
{
	char link[64], path[4096] = {0};
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/faulty/") != NULL;
}

ssize_t write(int fd, const void *buffer, size_t len)
{
	static int turn;
	if (is_faulty(fd)) {
		struct timespec pause = {0, 5000000};
		while (mode_is("hang"))
			nanosleep(&pause, NULL);
		if (mode_is("eio") || mode_is("quota")) {
			errno = mode_is("eio") ? EIO : EDQUOT;
			return -1;
		}
		if (mode_is("slow")) {
			struct timespec slow = {0, 300000000};
			nanosleep(&slow, NULL);
		}
		if (mode_is("short")) {
			if (turn++ % 2) {
				errno = EINTR;
				return -1;
			}
			len = len > 7 ? 7 : len;
		}
	}
	return syscall(SYS_write, fd, buffer, len);
}

static int sync_faulty(int fd)
{
	struct timespec pause = {0, 5000000}, slow = {0, 300000000};
	if (!is_faulty(fd))
		return 0;
	while (mode_is("hangsync"))
		nanosleep(&pause, NULL);
	if (mode_is("slow"))
		nanosleep(&slow, NULL);
	if (mode_is("nosync")) {
		errno = EIO;
		return -1;
	}
	return 0;
}

int fdatasync(int fd)
{
	return sync_faulty(fd) ? -1 : syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return sync_faulty(fd) ? -1 : syscall(SYS_fsync, fd);
}
