/* A minimal, very fast MCP server on STDIO (newline-delimited JSON-RPC 2.0), so that what is measured is the gateway.
 *
 * Build: gcc -O2 -Wall -Wextra -o mini mini.c (bench/lib/backend.mjs does it). The same server in Node: mini.mjs.
 *
 * Methods: initialize, server/discover, ping, tools/list, tools/call; notifications are ignored.
 * Tools:   echo     {text, data?}  -> content[0].text = text, structuredContent = data
 *          progress {n}            -> n notifications/progress, then a result
 *
 * One write(2) per notification; answers to requests that were read together are written together.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { const char *p; size_t n; } span;

static char *out; static size_t out_n, out_cap;
static void die(const char *m) { fprintf(stderr, "mini: %s\n", m); _exit(2); }
static void flush_out(void) {
  size_t o = 0;
  while (o < out_n) {
    ssize_t w = write(1, out + o, out_n - o);
    if (w < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) { struct pollfd f = { 1, POLLOUT, 0 }; poll(&f, 1, -1); continue; }
      _exit(0);
    }
    o += (size_t)w;
  }
  out_n = 0;
}
static void put(const char *s, size_t n) {
  if (out_n + n > out_cap) {
    while (out_n + n > out_cap) out_cap = out_cap ? out_cap * 2 : 1 << 16;
    out = realloc(out, out_cap);
    if (!out) die("out of memory");
  }
  memcpy(out + out_n, s, n);
  out_n += n;
}
static void puts_(const char *s) { put(s, strlen(s)); }
static void putsp(span s) { put(s.p, s.n); }

/* --- a small JSON scanner: finds value spans, never builds a tree --- */
static const char *ws(const char *p, const char *e) {
  while (p < e && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
  return p;
}
static const char *skip_str(const char *p, const char *e) { /* p at the opening quote */
  for (p++; p < e; p++) {
    const char *q = memchr(p, '"', (size_t)(e - p));
    if (!q) return NULL;
    size_t bs = 0;
    for (const char *b = q - 1; b >= p && *b == '\\'; b--) bs++;
    p = q;
    if (bs % 2 == 0) return q + 1;
  }
  return NULL;
}
static const char *skip_val(const char *p, const char *e) {
  p = ws(p, e);
  if (p >= e) return NULL;
  if (*p == '"') return skip_str(p, e);
  if (*p == '{' || *p == '[') {
    int depth = 0;
    while (p < e) {
      if (*p == '"') { if (!(p = skip_str(p, e))) return NULL; continue; }
      if (*p == '{' || *p == '[') depth++;
      else if (*p == '}' || *p == ']') { if (--depth == 0) return p + 1; }
      p++;
    }
    return NULL;
  }
  const char *s = p;
  while (p < e && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\r' && *p != '\n' && *p != '\t') p++;
  return p > s ? p : NULL;
}
static span get(span o, const char *key) {
  span none = { NULL, 0 };
  if (!o.p) return none;
  size_t kn = strlen(key);
  const char *p = o.p, *e = o.p + o.n;
  p = ws(p, e);
  if (p >= e || *p != '{') return none;
  p++;
  for (;;) {
    p = ws(p, e);
    if (p >= e || *p != '"') return none;
    const char *k = p + 1;
    if (!(p = skip_str(p, e))) return none;
    size_t n = (size_t)(p - 1 - k);
    p = ws(p, e);
    if (p >= e || *p != ':') return none;
    p = ws(p + 1, e);
    const char *v = p;
    if (!(p = skip_val(p, e))) return none;
    if (n == kn && !memcmp(k, key, n)) return (span){ v, (size_t)(p - v) };
    p = ws(p, e);
    if (p >= e || *p != ',') return none;
    p++;
  }
}
static int is(span s, const char *lit) { size_t n = strlen(lit); return s.p && s.n == n && !memcmp(s.p, lit, n); }
static long num(span s, long d) {
  if (!s.p || !s.n || s.n > 30 || *s.p == '"') return d;
  char b[32]; memcpy(b, s.p, s.n); b[s.n] = 0; return strtol(b, NULL, 10);
}

static void head(span id) { puts_("{\"jsonrpc\":\"2.0\",\"id\":"); putsp(id); }
static void text_result(span id, const char *t) {
  head(id); puts_(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""); puts_(t); puts_("\"}]}}\n");
}

static void handle(span m) {
  span id = get(m, "id"), method = get(m, "method");
  if (!method.p) return;                                   /* a response from the client */
  if (!id.p) return;                                       /* a notification */
  if (is(method, "\"tools/call\"")) {
    span params = get(m, "params"), name = get(params, "name"), args = get(params, "arguments");
    if (is(name, "\"echo\"")) {
      span t = get(args, "text"), d = get(args, "data");
      head(id); puts_(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
      if (t.p && *t.p == '"') putsp(t); else puts_("\"\"");
      puts_("}]");
      if (d.p) { puts_(",\"structuredContent\":"); putsp(d); }
      puts_("}}\n");
    } else if (is(name, "\"progress\"")) {
      long n = num(get(args, "n"), 10);
      span tok = get(get(params, "_meta"), "progressToken");
      flush_out();
      if (tok.p) for (long i = 1; i <= n; i++) {
        char b[96];
        puts_("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":"); putsp(tok);
        int w = snprintf(b, sizeof b, ",\"progress\":%ld,\"total\":%ld}}\n", i, n); put(b, (size_t)w);
        flush_out();
      }
      text_result(id, "done");
    } else {
      head(id); puts_(",\"error\":{\"code\":-32602,\"message\":\"unknown tool\"}}\n");
    }
  } else if (is(method, "\"initialize\"")) {
    span v = get(get(m, "params"), "protocolVersion");
    head(id); puts_(",\"result\":{\"protocolVersion\":");
    if (v.p) putsp(v); else puts_("\"2025-06-18\"");
    puts_(",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"mini-c\",\"version\":\"1.0.0\"}}}\n");
  } else if (is(method, "\"server/discover\"")) {
    head(id);
    puts_(",\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
          "\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"private\"}}\n");
  } else if (is(method, "\"ping\"")) {
    head(id); puts_(",\"result\":{}}\n");
  } else if (is(method, "\"tools/list\"")) {
    static const char *names[] = { "echo", "progress" };
    head(id); puts_(",\"result\":{\"tools\":[");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      if (i) puts_(",");
      puts_("{\"name\":\""); puts_(names[i]); puts_("\",\"inputSchema\":{\"type\":\"object\"}}");
    }
    puts_("]}}\n");
  } else {
    head(id); puts_(",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n");
  }
}

int main(void) {
  size_t cap = 1 << 18, n = 0, scanned = 0;
  char *buf = malloc(cap);
  if (!buf) die("out of memory");
  for (;;) {
    if (n == cap) { cap *= 2; buf = realloc(buf, cap); if (!buf) die("out of memory"); }
    ssize_t r = read(0, buf + n, cap - n);
    if (r < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) { struct pollfd f = { 0, POLLIN, 0 }; poll(&f, 1, -1); continue; }
      break;
    }
    if (r == 0) break;
    n += (size_t)r;
    size_t start = 0;
    char *nl;
    while ((nl = memchr(buf + scanned, '\n', n - scanned))) {
      size_t end = (size_t)(nl - buf);
      if (end > start) handle((span){ buf + start, end - start });
      start = scanned = end + 1;
    }
    scanned = n;
    if (start) { memmove(buf, buf + start, n - start); n -= start; scanned -= start; }
    flush_out();
  }
  return 0;
}
