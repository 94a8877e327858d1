export const mebibyte = 1024 * 1024;
/** In milliseconds, like `minute`. */
export const second = 1000;
export const minute = 60 * second;

/** The longest time (ms): setTimeout turns a larger one into 1 ms. */
export const longestMs = 2 ** 31 - 1;
/** The largest single message: V8 holds no string of 512 MiB or more. */
export const largestMessageBytes = 256 * mebibyte;
/** The largest limit for the total size of several messages. */
export const largestTotalBytes = 1024 * mebibyte;
