/** The exit code of a command that failed. 0 is success. */
export const failed = 1;

/** The exit code for an invalid configuration. */
export const misconfigured = 2;
