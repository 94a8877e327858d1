export const mebibyte = 1024 * 1024;
/** In milliseconds, as `minute`. */
export const second = 1000;
export const minute = 60 * second;

/** The longest time: setTimeout turns a larger one into 1 ms. */
export const longestMs = 2 ** 31 - 1;
/** The largest single message: V8 holds no string of 512 MiB or more. */
export const largestMessageBytes = 256 * mebibyte;
/** The largest sum of messages. */
export const largestTotalBytes = 1024 * mebibyte;
