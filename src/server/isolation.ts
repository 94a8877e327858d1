/** Who shares a process of a server, or a connection to one (docs/decisions/0066): nobody, the clients of one user, or all. */
export type Isolation = 'request' | 'principal' | 'shared';
