/**
 * The clients that meet the same process of a server (docs/decisions/0164). `session`: those of one session. `request`:
 * also each request without a session has its own. `user` and `all`: those of one user, or of all. `auto` depends on
 * what the gateway knows of its users.
 */
export type Share = 'auto' | 'session' | 'user' | 'all' | 'request';
