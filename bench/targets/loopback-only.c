/* Preloaded into a program that has no option for the address it listens on: it listens on loopback only (see loopback-only.mjs). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
  struct sockaddr_in local;
  if (address && address->sa_family == AF_INET && length >= sizeof local) {
    memcpy(&local, address, sizeof local);
    if (local.sin_addr.s_addr == htonl(INADDR_ANY)) {
      local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return next(socket, (struct sockaddr *)&local, length);
    }
  }
  return next(socket, address, length);
}
