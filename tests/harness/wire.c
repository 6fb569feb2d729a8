/* Sends what the tests cannot send without unsafe code: one buffer that becomes many packets.
 *
 *   wire udp ADDRESS PORT FROM_PORT SEGMENT     standard input as one buffer through a socket with UDP_SEGMENT
 *   wire tap NAME TYPE HEADERS SEGMENT START CHECKSUM
 *                                               standard input as one frame into a tap device with a vnet header
 *   wire tun NAME                               standard input as one packet into a tun device
 *   wire raw NAME                               standard input as one frame out of an interface, tags and all
 *   wire frames NAME                            the same for many, each behind its length in two bytes, big end first
 *   wire flood MILLISECONDS CPU MASK            standard input as one frame that comes in at lo again and again, with the
 *                                               bits of MASK at random in a UDP source port; says how often, in how
 *                                               many nanoseconds, and in how many of the CPU's
 *   wire xdp NAME MODE                          drops what comes in (MODE 2: generic, 4: in the driver) until standard
 *                                               input ends
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static char buffer[1 << 17];

static size_t input(char *to)
{
	size_t length = 0;
	ssize_t got;

	while ((got = read(0, to + length, sizeof(buffer) - 64 - length)) > 0)
		length += got;
	return length;
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int udp(char **words)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(words[1])) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(atoi(words[2])) };
	int segment = atoi(words[3]);
	size_t length = input(buffer);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, words[0], &to.sin_addr);
	if (bind(fd, (void *)&from, sizeof(from)))
		return fail("bind");
	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		return fail("UDP_SEGMENT");
	if (sendto(fd, buffer, length, 0, (void *)&to, sizeof(to)) != (ssize_t)length)
		return fail("sendto");
	return 0;
}

static int tap(char **words)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	struct virtio_net_hdr header = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = atoi(words[1]),
		.hdr_len = atoi(words[2]),
		.gso_size = atoi(words[3]),
		.csum_start = atoi(words[4]),
		.csum_offset = atoi(words[5]),
	};
	size_t length = input(buffer + sizeof(header));
	int fd = open("/dev/net/tun", O_RDWR);

	strncpy(request.ifr_name, words[0], IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		return fail("TUNSETIFF");
	memcpy(buffer, &header, sizeof(header));
	length += sizeof(header);
	if (write(fd, buffer, length) != (ssize_t)length)
		return fail("write");
	return 0;
}

static int tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	size_t length = input(buffer);
	int fd = open("/dev/net/tun", O_RDWR);

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		return fail("TUNSETIFF");
	if (write(fd, buffer, length) != (ssize_t)length)
		return fail("write");
	return 0;
}

static int raw(const char *name, int many)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	struct ifreq request = { 0 };
	size_t length = input(buffer), size = length;
	const char *at = buffer, *end = buffer + length;
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &request))
		return fail("SIOCGIFINDEX");
	to.sll_ifindex = request.ifr_ifindex;
	for (; at < end; at += size) {
		if (many) {
			size = (unsigned char)at[0] << 8 | (unsigned char)at[1];
			at += 2;
		}
		if (sendto(fd, at, size, 0, (void *)&to, sizeof(to)) != (ssize_t)size)
			return fail("sendto");
	}
	return 0;
}

static int xdp(char **words)
{
	struct bpf_insn drop[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_DROP },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr program = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (unsigned long)drop,
		.insn_cnt = 2,
		.license = (unsigned long)"GPL",
	};
	union bpf_attr link = { .link_create = { .attach_type = BPF_XDP, .flags = atoi(words[1]) } };
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(request.ifr_name, words[0], IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &request))
		return fail("SIOCGIFINDEX");
	link.link_create.prog_fd = syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));
	link.link_create.target_ifindex = request.ifr_ifindex;
	if (syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link)) < 0)
		return fail("BPF_LINK_CREATE");
	puts("attached");
	fflush(stdout);
	input(buffer);
	return 0;
}

static unsigned long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ul + now.tv_nsec;
}

/* Test runs with live frames: what the program passes goes up the stack as received packets do, 64 at a time. */
static int flood(char **words)
{
	struct bpf_insn pass[] = {
		/* r6 = data; unless 36 bytes are there, go out */
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 6, .src_reg = 1, .off = 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 1, .off = 4 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 4, .src_reg = 6 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 4, .imm = 36 },
		{ .code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 4, .src_reg = 3, .off = 4 },
		/* source port = random & mask, plus one */
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32 },
		{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 0, .imm = atoi(words[2]) },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 0, .imm = 1 },
		{ .code = BPF_STX | BPF_MEM | BPF_H, .dst_reg = 6, .src_reg = 0, .off = 34 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr program = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (unsigned long)pass,
		.insn_cnt = sizeof(pass) / sizeof(*pass),
		.license = (unsigned long)"GPL",
	};
	union bpf_attr run = { .test = {
		.data_in = (unsigned long)buffer,
		.data_size_in = input(buffer),
		.repeat = 1 << 16,
		.flags = BPF_F_TEST_XDP_LIVE_FRAMES,
	} };
	unsigned long frames = 0, began, until, now, left;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(atoi(words[1]), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		return fail("sched_setaffinity");
	run.test.prog_fd = syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof(program));
	began = now_ns(CLOCK_MONOTONIC);
	until = began + atol(words[0]) * 1000000;
	do {
		if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)))
			return fail("BPF_PROG_TEST_RUN with live frames");
		frames += run.test.repeat;
		now = now_ns(CLOCK_MONOTONIC);
		/* A run ends with a wait for everybody's readers, as long as many thousand frames take: a long flood is few
		 * runs, each as long as half of what is left. */
		left = now < until ? (until - now) / 2 * frames / (now - began) : 0;
		run.test.repeat = left > 1 << 22 ? 1 << 22 : left > 1 << 16 ? left : 1 << 16;
	} while (now < until);
	printf("%lu %lu %lu\n", frames, now - began, now_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}

int main(int count, char **words)
{
	if (count == 5 && !strcmp(words[1], "flood"))
		return flood(words + 2);
	if (count == 4 && !strcmp(words[1], "xdp"))
		return xdp(words + 2);
	if (count == 6 && !strcmp(words[1], "udp"))
		return udp(words + 2);
	if (count == 8 && !strcmp(words[1], "tap"))
		return tap(words + 2);
	if (count == 3 && !strcmp(words[1], "tun"))
		return tun(words[2]);
	if (count == 3 && !strcmp(words[1], "raw"))
		return raw(words[2], 0);
	if (count == 3 && !strcmp(words[1], "frames"))
		return raw(words[2], 1);
	fprintf(stderr, "usage: see the top of wire.c\n");
	return 2;
}
