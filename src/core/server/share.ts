/**
 * The clients that meet the same process of a server (docs/decisions/0164). `session`: those of one session. `request`:
 * also each request without a session has its own. `user` and `all`: those of one user, or of all. `auto` depends on
 * what the gateway knows of its users.
 */
export type Share = 'auto' | 'session' | 'user' | 'all' | 'request';

/** Which sessions may use the same process: none, those of one user, or those of all users. */
export type Reuse = 'none' | 'user' | 'all';

/** Which of these sessions use a process of another one: all, or those whose clients open a session for each call. */
export type SharedBy = 'all' | 'callers';
