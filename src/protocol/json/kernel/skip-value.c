/*
 * Skips one JSON value (RFC 8259), or members of an object, with WebAssembly SIMD. The caller checks UTF-8. scripts/build-kernel.mjs compiles this
 * file to skip-value-wasm.ts.
 *
 * The text passes through one window of memory. A value may be cut anywhere at the end of a window: `skip` then returns
 * MORE, and the state says where and how the value continues. A byte of 0, which no JSON contains, ends each window, so
 * that no loop needs to compare its position with the end.
 */
#include <wasm_simd128.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { WINDOW_BYTES = 65536, MAX_OPEN = 8192 };
/* No position in a window. */
#define NO_KEY 0xffffffffu

/* The results of `skip`. value-kernel.ts has the same list. */
enum { DONE, MORE, NOT_JSON, TOO_DEEP, TOO_MANY_OPEN };

/* The grammar's position at the end of a window. VALUE is where each value begins. */
enum {
  VALUE, VALUE_STRING, FIRST_KEY, KEY, KEY_STRING, COLON, FIRST_ITEM, AFTER_VALUE,
  INTEGER, AFTER_INTEGER, FRACTION, EXPONENT
};

/* value-kernel.ts reads and writes these by their index. */
static struct {
  u32 at;      /* where the value continues or ends, counted from the start of the window */
  u32 mode;    /* one of the list above */
  u32 open;    /* open arrays and objects of this value */
  u32 limit;   /* how many may be open */
  u32 values;  /* values that began, in all calls */
  u32 escapes; /* escapes in strings, in all calls */
  u32 is_error; /* where the last key `isError` of the value itself begins; NO_KEY if this call found none */
} state;

/* The closing bracket of each open array and object. */
static u8 brackets[MAX_OPEN];
/* The last bytes are for the zeros behind the window. */
static u8 window[WINDOW_BYTES + 128] __attribute__((aligned(64)));

__attribute__((export_name("state"))) void *state_address(void) { return &state; }
__attribute__((export_name("brackets"))) void *brackets_address(void) { return brackets; }
__attribute__((export_name("window"))) void *window_address(void) { return window; }

enum { SPACE = 1, DIGIT = 2, HEX = 4, ESCAPE = 8 };
static const u8 KINDS[256] = {
  [' '] = SPACE, ['\t'] = SPACE, ['\n'] = SPACE, ['\r'] = SPACE,
  ['0'] = DIGIT | HEX, ['1'] = DIGIT | HEX, ['2'] = DIGIT | HEX, ['3'] = DIGIT | HEX, ['4'] = DIGIT | HEX,
  ['5'] = DIGIT | HEX, ['6'] = DIGIT | HEX, ['7'] = DIGIT | HEX, ['8'] = DIGIT | HEX, ['9'] = DIGIT | HEX,
  ['A'] = HEX, ['B'] = HEX, ['C'] = HEX, ['D'] = HEX, ['E'] = HEX, ['F'] = HEX,
  ['a'] = HEX, ['b'] = HEX | ESCAPE, ['c'] = HEX, ['d'] = HEX, ['e'] = HEX, ['f'] = HEX | ESCAPE,
  ['"'] = ESCAPE, ['\\'] = ESCAPE, ['/'] = ESCAPE, ['n'] = ESCAPE, ['r'] = ESCAPE, ['t'] = ESCAPE,
};
static inline u32 is(u8 byte, u32 kind) { return KINDS[byte] & kind; }
static inline u32 is_digit(u8 byte) { return (u8)(byte - '0') <= 9; }

/* The key of a result that tells whether a tool failed. Its position saves the gateway another search of the text. */
enum { KEY_BYTES = 8 };
static inline u32 is_error_key(const u8 *p) {
  u64 bytes;
  __builtin_memcpy(&bytes, p, KEY_BYTES);
  return bytes == 0x22726f7272457369ull; /* isError" */
}

static inline v128_t equal(v128_t bytes, u8 byte) { return wasm_i8x16_eq(bytes, wasm_i8x16_splat(byte)); }
static inline v128_t is_control(v128_t bytes) { return wasm_u8x16_lt(bytes, wasm_i8x16_splat(0x20)); }
/* The bytes that end a run in a string. */
static inline v128_t ends_run(v128_t bytes) {
  return wasm_v128_or(wasm_v128_or(equal(bytes, '"'), equal(bytes, '\\')), is_control(bytes));
}

typedef struct { v128_t a, b, c, d; } block;
static inline block load_block(const u8 *p) {
  return (block){ wasm_v128_load(p), wasm_v128_load(p + 16), wasm_v128_load(p + 32), wasm_v128_load(p + 48) };
}
static inline v128_t any_of(v128_t a, v128_t b, v128_t c, v128_t d) {
  return wasm_v128_or(wasm_v128_or(a, b), wasm_v128_or(c, d));
}
static inline u64 bits(v128_t a, v128_t b, v128_t c, v128_t d) {
  return (u64)wasm_i8x16_bitmask(a) | (u64)wasm_i8x16_bitmask(b) << 16 | (u64)wasm_i8x16_bitmask(c) << 32 |
         (u64)wasm_i8x16_bitmask(d) << 48;
}
#define BITS(function, x) bits(function(x.a), function(x.b), function(x.c), function(x.d))
#define BITS_EQUAL(x, byte) bits(equal(x.a, byte), equal(x.b, byte), equal(x.c, byte), equal(x.d, byte))

/*
 * The bytes that may follow a backslash, without `u`. Each table has a bit for the high digit of a byte: the first one
 * has those that its low digit may go with. The digits 2 and f share no low digit's set with another valid byte.
 */
static inline v128_t is_escape(v128_t bytes) {
  const v128_t by_low = wasm_i8x16_const(0, 0, 1 << 2 | 1 << 6 | -128, 0, -128, 0, 1 << 6, 0, 0, 0, 0, 0, 1 << 5, 0,
                                         1 << 6, 1 << 2);
  const v128_t by_high = wasm_i8x16_const(0, 0, 1 << 2, 0, 0, 1 << 5, 1 << 6, -128, 0, 0, 0, 0, 0, 0, 0, 0);
  v128_t low = wasm_i8x16_swizzle(by_low, wasm_v128_and(bytes, wasm_i8x16_splat(0x0f)));
  v128_t high = wasm_i8x16_swizzle(by_high, wasm_u8x16_shr(bytes, 4));
  return wasm_i8x16_ne(wasm_v128_and(low, high), wasm_i8x16_splat(0));
}

/* With more escapes in a block, all are checked at once. */
enum { FEW_ESCAPES = 4 };

/*
 * The bytes of a block that an odd number of backslashes precedes. Lemire and Langdale, "Parsing gigabytes of JSON per
 * second", section 3.1.1, as simdjson has it since version 3.
 */
static inline u64 escaped_bytes(u64 backslashes) {
  const u64 odd = 0xaaaaaaaaaaaaaaaaull;
  return ((((backslashes << 1) | odd) - backslashes) ^ odd) ^ backslashes;
}

/*
 * Reads on in a string from a byte that is not escaped. Returns the position of the closing quote; `end`, or the
 * backslash of an escape that `end` cuts; or the position of a fault, with *is_bad set.
 */
static __attribute__((noinline)) const u8 *string_stop(const u8 *p, const u8 *end, u32 *is_bad) {
run:
  for (;; p += 64) {
    block x = load_block(p);
    v128_t a = ends_run(x.a), b = ends_run(x.b), c = ends_run(x.c), d = ends_run(x.d);
    if (!wasm_v128_any_true(any_of(a, b, c, d))) continue;
    p += __builtin_ctzll(bits(a, b, c, d));
    break;
  }
  if (*p != '\\') {
    *is_bad = *p != '"' && p < end;
    return p;
  }
  for (;;) {
    block x = load_block(p);
    u64 backslashes = BITS_EQUAL(x, '\\');
    if (backslashes == 0) goto run;
    v128_t control = any_of(is_control(x.a), is_control(x.b), is_control(x.c), is_control(x.d));
    u64 controls = wasm_v128_any_true(control) ? BITS(is_control, x) : 0;
    u64 escaped = escaped_bytes(backslashes);
    u64 stops = (BITS_EQUAL(x, '"') & ~escaped) | controls;
    u32 stop = stops ? __builtin_ctzll(stops) : 64;
    u64 before_stop = stops ? (stops & -stops) - 1 : ~0ull;
    u64 escapes = escaped & before_stop;
    u32 count = __builtin_popcountll(escapes);
    state.escapes += count;
    u64 unchecked = count > FEW_ESCAPES ? escapes & ~BITS(is_escape, x) : escapes;
    for (; unchecked; unchecked &= unchecked - 1) {
      const u8 *q = p + __builtin_ctzll(unchecked);
      if (is(*q, ESCAPE)) continue;
      u32 digits = 0;
      if (*q == 'u') while (digits < 4 && is(q[1 + digits], HEX)) digits += 1;
      if (digits == 4) continue;
      state.escapes -= __builtin_popcountll(escapes & -(unchecked & -unchecked)); /* this one and those behind it */
      if (*q == 'u' && q + 1 + digits >= end) return q - 1;
      state.escapes += 1;
      *is_bad = 1;
      return q;
    }
    if (stop < 64) {
      p += stop;
      if (p >= end) return (escaped >> stop) & 1 ? p - 1 : p;
      *is_bad = *p != '"';
      return p;
    }
    /* A backslash at the end of the block is read again, with the byte that it escapes. */
    p += backslashes >> 63 && !(escaped >> 63) ? 63 : 64;
  }
}

static inline const u8 *space_end(const u8 *p) {
  if (*p > ' ' || !is(*p, SPACE)) return p;
  if (!is(*++p, SPACE)) return p;
  for (;; p += 16) {
    v128_t x = wasm_v128_load(p);
    u32 others = wasm_i8x16_bitmask(any_of(equal(x, ' '), equal(x, '\n'), equal(x, '\r'), equal(x, '\t'))) ^ 0xffff;
    if (others) return p + __builtin_ctz(others);
  }
}

/* `p` is in front of one or more digits. Sixteen at a time, since a text may be one number. */
static inline const u8 *digits_end(const u8 *p) {
  for (u32 i = 0; i < 8; i++, p++) if (!is_digit(*p)) return p;
  for (;; p += 16) {
    v128_t x = wasm_i8x16_sub(wasm_v128_load(p), wasm_i8x16_splat('0'));
    u32 others = wasm_i8x16_bitmask(wasm_u8x16_gt(x, wasm_i8x16_splat(9)));
    if (others) return p + __builtin_ctz(others);
  }
}

#define STOP(result) \
  { \
    state.at = p - window; \
    state.open = open; \
    return result; \
  }

/* Waits for the next window if this one ends here; what it has of the text is not JSON if it is the last one. */
#define NEED_MORE(next) \
  { \
    if (p >= end && !is_last) { \
      state.mode = next; \
      STOP(MORE) \
    } \
    STOP(NOT_JSON) \
  }

/* Reads a string from the byte behind its opening quote or from an interruption, to the byte behind its closing quote. */
#define SKIP_STRING(next) \
  { \
    u32 hits = wasm_i8x16_bitmask(ends_run(wasm_v128_load(p))); \
    const u8 *q = p + __builtin_ctz(hits | 0x10000); \
    if (!hits || *q != '"') { \
      u32 is_bad = 0; \
      q = string_stop(q, end, &is_bad); \
      if (is_bad) STOP(NOT_JSON) \
      if (q >= end || *q != '"') { \
        p = q; \
        if (is_last) STOP(NOT_JSON) \
        state.mode = next; \
        STOP(MORE) \
      } \
    } \
    p = q + 1; \
  }

/* Puts zeros behind the text in the window. */
static inline const u8 *end_window(u32 length) {
  const u8 *const end = window + length;
  const v128_t zeros = wasm_i8x16_splat(0);
  for (u32 i = 0; i < 128; i += 16) wasm_v128_store((void *)(end + i), zeros);
  return end;
}

/* Skips a value, or what is left of one, from `p` on. */
static __attribute__((noinline)) u32 skip_value(const u8 *p, const u8 *const end, u32 is_last) {
  const u32 limit = state.limit;
  u32 open = state.open;
  u8 close = open ? brackets[open - 1] : 0;
  state.is_error = NO_KEY;
  switch (state.mode) {
    case VALUE: goto value;
    case VALUE_STRING: goto value_string;
    case FIRST_KEY: goto first_key;
    case KEY: goto key;
    case KEY_STRING: goto key_string;
    case COLON: goto colon;
    case FIRST_ITEM: goto first_item;
    case AFTER_VALUE: goto after_value;
    case INTEGER: goto integer;
    case AFTER_INTEGER: goto after_integer;
    case FRACTION: goto fraction;
    default: goto exponent;
  }

value:
  if (*p <= ' ') p = space_end(p);
value_here:
  state.values += 1;
  switch (*p) {
    case '"':
      p += 1;
    value_string:
      SKIP_STRING(VALUE_STRING)
      goto after_value;

    case '{':
      if (open >= limit) STOP(TOO_DEEP)
      if (open == MAX_OPEN) goto too_many_open;
      brackets[open++] = close = '}';
      p += 1;
    first_key:
      if (*p <= ' ') p = space_end(p);
      if (*p == '"') goto key_here;
      if (*p == '}') goto closed;
      NEED_MORE(FIRST_KEY)

    case '[':
      if (open >= limit) STOP(TOO_DEEP)
      if (open == MAX_OPEN) goto too_many_open;
      brackets[open++] = close = ']';
      p += 1;
    first_item:
      if (*p <= ' ') p = space_end(p);
      if (*p == ']') goto closed;
      if (p >= end) NEED_MORE(FIRST_ITEM)
      goto value_here;

    case '-':
      if (!is_digit(p[1])) {
        if (p + 1 >= end) goto cut_value;
        STOP(NOT_JSON)
      }
      p += 1;
      if (*p != '0') goto integer;
    case '0':
      p += 1;
      goto after_integer;
    case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
    integer:
      p = digits_end(p);
      if (p >= end && !is_last) {
        state.mode = INTEGER;
        STOP(MORE)
      }
    after_integer:
      if (*p == '.') {
        if (!is_digit(p[1])) {
          if (p + 1 >= end && !is_last) {
            state.mode = AFTER_INTEGER;
            STOP(MORE)
          }
          STOP(NOT_JSON)
        }
        p += 1;
      fraction:
        p = digits_end(p);
        if (p >= end && !is_last) {
          state.mode = FRACTION;
          STOP(MORE)
        }
      }
      if ((*p | 0x20) == 'e') {
        u32 sign = p[1] == '+' || p[1] == '-';
        if (!is_digit(p[1 + sign])) {
          if (p + 1 + sign >= end && !is_last) {
            state.mode = FRACTION; /* reads no more digits, then the `e` again */
            STOP(MORE)
          }
          STOP(NOT_JSON)
        }
        p += 1 + sign;
      exponent:
        p = digits_end(p);
        if (p >= end && !is_last) {
          state.mode = EXPONENT;
          STOP(MORE)
        }
      }
      if (p >= end && !is_last) {
        state.mode = AFTER_INTEGER;
        STOP(MORE)
      }
      goto after_value;

    case 't':
      if (p[1] == 'r' && p[2] == 'u' && p[3] == 'e') {
        p += 4;
        goto after_value;
      }
      goto cut_literal;
    case 'n':
      if (p[1] == 'u' && p[2] == 'l' && p[3] == 'l') {
        p += 4;
        goto after_value;
      }
      goto cut_literal;
    case 'f':
      if (p[1] == 'a' && p[2] == 'l' && p[3] == 's' && p[4] == 'e') {
        p += 5;
        goto after_value;
      }
      goto cut_literal;
    cut_literal:
      if (p + 5 <= end) STOP(NOT_JSON)
      goto cut_value;

    default:
      if (p >= end) goto cut_value;
      STOP(NOT_JSON)
  }

cut_value:
  if (is_last) STOP(NOT_JSON)
  state.values -= 1; /* it begins again in the next window */
  state.mode = VALUE;
  STOP(MORE)

too_many_open:
  state.values -= 1;
  STOP(TOO_MANY_OPEN)

closed:
  p += 1;
  open -= 1;
  close = open ? brackets[open - 1] : 0;
after_value:
  if (open == 0) STOP(DONE)
  if (*p <= ' ') p = space_end(p);
  if (*p == ',') {
    p += 1;
    if (close == ']') goto value;
    goto key;
  }
  if (*p == close) goto closed;
  NEED_MORE(AFTER_VALUE)

key:
  if (*p <= ' ') p = space_end(p);
  if (*p != '"') NEED_MORE(KEY)
key_here:
  p += 1;
  if (open == 1) {
    if (is_error_key(p)) state.is_error = p - 1 - window;
    else if (p + KEY_BYTES > end && !is_last) { /* the key may be cut: the next window begins with it */
      p -= 1;
      state.mode = KEY;
      STOP(MORE)
    }
  }
key_string:
  SKIP_STRING(KEY_STRING)
colon:
  if (*p <= ' ') p = space_end(p);
  if (*p != ':') NEED_MORE(COLON)
  p += 1;
  goto value;
}

/* Skips a value in the window, or what is left of one, from `at` on. The window has `length` bytes of the text. */
__attribute__((export_name("skip"))) u32 skip(u32 at, u32 length, u32 is_last) {
  return skip_value(window + at, end_window(length), is_last);
}

#include "skip-members.h"
