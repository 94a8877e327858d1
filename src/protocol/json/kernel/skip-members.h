/*
 * Skips the members of an object that no part of the gateway looks at, and finds duplicate keys. skip-value.c includes
 * this file.
 *
 * Each of the three routing levels has a table of the keys that its object had so far, as hashes with 64 bits under a
 * secret seed. The caller compares the keys themselves if two hashes are equal. A key that a part looks at is marked:
 * the caller reads the member itself.
 */
enum { LEVELS = 3, SLOTS_LOG2 = 14, SLOTS = 1 << SLOTS_LOG2, MAX_PROBES = 64, MAX_KEY = 4096, LISTS = 6, MAX_MARKS = 64 };
#define MARKED 0xffffffffu

/* The results of `skip_members`, behind those of `skip`. value-kernel.ts has the same list. */
enum {
  CLOSED = 5, /* the object ends in front of `at` */
  READ_KEY,   /* the caller has to read the member at `at` */
  SAME_KEY,   /* the key at `at` has the hash of the key at `same` */
  TOO_MANY,   /* the object has more members than it may have */
  GIVE_UP,    /* the table has no place for the key at `at` */
  MORE_KEY,   /* the window cuts the member at `at` in front of its value, or the end of the object */
  MORE_VALUE, /* the window cuts the value: `skip` skips the rest of it, and AFTER_MEMBER follows */
};
enum { AT_KEY, AFTER_MEMBER };

/* value-kernel.ts reads and writes these by their index. */
static struct {
  u32 base;  /* the position in the text of the first byte of the window */
  u32 folds; /* the case of keys does not count */
  u32 room;  /* how many more members the object may have */
  u32 same;  /* for SAME_KEY */
  u32 part;  /* AT_KEY or AFTER_MEMBER */
  u32 seeds[4];
} members_state;

typedef struct {
  u64 hash;
  u32 at;
  u32 object; /* the number of the object that the entry belongs to; entries of earlier objects are free */
} entry;
static entry tables[LEVELS * SLOTS];
static u32 objects[LEVELS];
static u32 last_object;

static u64 marks[LISTS][MAX_MARKS];
static u32 mark_counts[LISTS];

/* A key with its escapes resolved, and zeros behind it. */
static u8 key[MAX_KEY + 16] __attribute__((aligned(16)));

__attribute__((export_name("members_state"))) void *members_state_address(void) { return &members_state; }
__attribute__((export_name("key"))) void *key_address(void) { return key; }

static inline u64 mix(u64 hash, u64 bytes, u64 factor) {
  hash = (hash ^ bytes) * factor;
  return hash ^ hash >> 32;
}

/* The hash of the key; zeros follow it in memory. */
static inline u64 hash_key(u32 length) {
  u64 first, second;
  __builtin_memcpy(&first, (const void *)members_state.seeds, 8);
  __builtin_memcpy(&second, (const void *)(members_state.seeds + 2), 8);
  second |= 1;
  u64 hash = first ^ length;
  u32 i = 0;
  do {
    u64 words[2];
    __builtin_memcpy(words, key + i, 16);
    hash = mix(mix(hash, words[0], second), words[1], 0x9e3779b97f4a7c15ull);
    i += 16;
  } while (i < length);
  hash *= second;
  return hash ^ hash >> 29;
}

static inline u32 slot_of(u64 hash) { return hash >> (64 - SLOTS_LOG2); }

enum { ADDED, FOUND, NO_PLACE };

/* Adds a key to the table of a level. */
static inline u32 add_hash(u32 level, u64 hash, u32 at) {
  u32 slot = slot_of(hash);
  for (u32 probes = 0; probes < MAX_PROBES; probes++) {
    entry *e = &tables[level * SLOTS + slot];
    if (e->object != objects[level]) {
      e->hash = hash;
      e->at = at;
      e->object = objects[level];
      return ADDED;
    }
    if (e->hash == hash) {
      members_state.same = e->at;
      return FOUND;
    }
    slot = (slot + 1) & (SLOTS - 1);
  }
  return NO_PLACE;
}

/* The key that the caller has written gets zeros behind it. */
static inline u64 hash_written(u32 length) {
  wasm_v128_store(key + length, wasm_i8x16_splat(0));
  return hash_key(length);
}

/* Marks the written key in a list. */
__attribute__((export_name("add_mark"))) void add_mark(u32 list, u32 length) {
  if (mark_counts[list] < MAX_MARKS) marks[list][mark_counts[list]++] = hash_written(length);
}

/* Begins an object of a level. */
__attribute__((export_name("begin_object"))) void begin_object(u32 level, u32 list) {
  if (++last_object == 0) {
    for (u32 i = 0; i < LEVELS * SLOTS; i++) tables[i].object = 0;
    last_object = 1;
  }
  objects[level] = last_object;
  for (u32 i = 0; i < mark_counts[list]; i++) add_hash(level, marks[list][i], MARKED);
}

/* Adds the written key, which stands at `at` in the text, to the object of a level. */
__attribute__((export_name("add_key"))) u32 add_key(u32 level, u32 length, u32 at) {
  return add_hash(level, hash_written(length), at);
}

static inline u32 hex_value(u8 digit) { return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10; }
static inline u32 code_unit(const u8 *p) {
  return hex_value(p[0]) << 12 | hex_value(p[1]) << 8 | hex_value(p[2]) << 4 | hex_value(p[3]);
}

/* Writes a character to `to`: as UTF-8, or an unpaired surrogate as UTF-8 would have it. Returns the end. */
static inline u8 *put_character(u8 *to, u32 code) {
  if (code < 0x80) {
    *to++ = code;
    return to;
  }
  if (code < 0x800) *to++ = 0xc0 | code >> 6;
  else {
    if (code < 0x10000) *to++ = 0xe0 | code >> 12;
    else {
      *to++ = 0xf0 | code >> 18;
      *to++ = 0x80 | (code >> 12 & 0x3f);
    }
    *to++ = 0x80 | (code >> 6 & 0x3f);
  }
  *to++ = 0x80 | (code & 0x3f);
  return to;
}

/* Resolves the escapes of a checked string into `key`. Returns the length. */
static __attribute__((noinline)) u32 resolve(const u8 *p, const u8 *end) {
  u8 *to = key;
  while (p < end) {
    if (*p != '\\') {
      *to++ = *p++;
      continue;
    }
    u8 kind = p[1];
    if (kind != 'u') {
      *to++ = kind == 'n' ? '\n' : kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'b' ? '\b' : kind == 'f' ? '\f' : kind;
      p += 2;
      continue;
    }
    u32 code = code_unit(p + 2);
    p += 6;
    if (code >> 10 == 0xd800 >> 10 && p[0] == '\\' && p[1] == 'u') {
      u32 low = code_unit(p + 2);
      if (low >> 10 == 0xdc00 >> 10) {
        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        p += 6;
      }
    }
    to = put_character(to, code);
  }
  wasm_v128_store(to, wasm_i8x16_splat(0));
  return to - key;
}

static const u8 FIRST_BYTES[32] = {
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
};

/* The same bytes with A to Z in lower case. */
static inline v128_t lower(v128_t bytes) {
  v128_t is_upper = wasm_u8x16_lt(wasm_i8x16_sub(bytes, wasm_i8x16_splat('A')), wasm_i8x16_splat(26));
  return wasm_v128_or(bytes, wasm_v128_and(is_upper, wasm_i8x16_splat(0x20)));
}

#define LEAVE(result, position) \
  { \
    state.at = (position) - window; \
    return result; \
  }

/* Skips members in the window from `at` on, until one of the results above, NOT_JSON, TOO_DEEP or TOO_MANY_OPEN. */
__attribute__((export_name("skip_members"))) u32 skip_members(u32 at, u32 length, u32 is_last, u32 level) {
  const u8 *p = window + at;
  const u8 *const end = end_window(length);
  const u32 folds = members_state.folds;
  if (members_state.part == AFTER_MEMBER) goto after_member;

at_key:
  if (*p <= ' ') p = space_end(p);
  if (p >= end && !is_last) LEAVE(MORE_KEY, p)
  if (members_state.room == 0) LEAVE(TOO_MANY, p)
  if (*p != '"') LEAVE(NOT_JSON, p)
  {
    const u8 *const start = p + 1;
    const u32 escapes = state.escapes;
    v128_t first = wasm_v128_load(start);
    u32 hits = wasm_i8x16_bitmask(ends_run(first));
    const u8 *q = start + __builtin_ctz(hits | 0x10000);
    u32 key_length, is_ascii;
    if (hits && *q == '"') {
      key_length = q - start;
      is_ascii = (wasm_i8x16_bitmask(first) & ((1u << key_length) - 1)) == 0;
      if (folds) first = lower(first);
      wasm_v128_store(key, wasm_v128_and(first, wasm_v128_load(FIRST_BYTES + 16 - key_length)));
    } else {
      u32 is_bad = 0;
      q = string_stop(q, end, &is_bad);
      if (is_bad) LEAVE(NOT_JSON, q)
      if (q >= end || *q != '"') {
        if (is_last) LEAVE(NOT_JSON, q)
        state.escapes = escapes;
        LEAVE(MORE_KEY, p)
      }
      if (q - start > MAX_KEY) {
        state.escapes = escapes;
        LEAVE(READ_KEY, p)
      }
      key_length = resolve(start, q);
      v128_t all = wasm_i8x16_splat(0);
      for (u32 i = 0; i < key_length; i += 16) {
        v128_t bytes = wasm_v128_load(key + i);
        all = wasm_v128_or(all, bytes);
        if (folds) wasm_v128_store(key + i, lower(bytes));
      }
      is_ascii = wasm_i8x16_bitmask(all) == 0;
    }
    q += 1;
    if (*q <= ' ') q = space_end(q);
    if (q >= end && !is_last) {
      state.escapes = escapes;
      LEAVE(MORE_KEY, p)
    }
    if (folds && !is_ascii) {
      state.escapes = escapes;
      LEAVE(READ_KEY, p)
    }
    u32 added = add_hash(level, hash_key(key_length), members_state.base + (p - window));
    if (added != ADDED) {
      if (added == FOUND && members_state.same == MARKED) {
        state.escapes = escapes;
        LEAVE(READ_KEY, p)
      }
      LEAVE(added == FOUND ? SAME_KEY : GIVE_UP, p)
    }
    if (*q != ':') LEAVE(NOT_JSON, q)
    members_state.room -= 1;
    p = q + 1;
  }
  if (*p <= ' ') p = space_end(p);
  if (is_digit(*p) && (p[1] == ',' || p[1] == '}')) {
    state.values += 1;
    p += 1;
  } else {
    state.mode = VALUE;
    state.open = 0;
    u32 result = skip_value(p, end, is_last);
    if (result != DONE) return result == MORE ? MORE_VALUE : result;
    p = window + state.at;
  }
after_member:
  if (*p <= ' ') p = space_end(p);
  if (p >= end && !is_last) {
    members_state.part = AFTER_MEMBER;
    LEAVE(MORE_KEY, p)
  }
  if (*p == '}') LEAVE(CLOSED, p + 1)
  if (*p != ',') LEAVE(NOT_JSON, p)
  p += 1;
  members_state.part = AT_KEY;
  goto at_key;
}
