/**
 * The clients that share a process of a server, or a connection to one (docs/decisions/0164): none beyond one request,
 * those of one user, or all.
 */
export type Isolation = 'request' | 'principal' | 'shared';
