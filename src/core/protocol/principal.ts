/**
 * The owner of a session; to anyone else the session does not exist (P11). All fields are empty while the gateway does
 * no authentication.
 */
export interface Principal {
  readonly issuer: string;
  readonly subject: string;
  readonly client: string;
  /**
   * The mark of the credentials that the session's server was started with. The same user with other credentials is a
   * different principal. Absent where the server was started without a client's credentials.
   */
  readonly credentials?: string;
  /**
   * The mark of the headers and claims that the affinity template of the server names, or `nobody`. It says which state a
   * session shares, and not who its owner is. Absent where the template names none.
   */
  readonly affinity?: string;
}

/** The principal of every request where the gateway does no authentication. */
export const anonymous: Principal = { issuer: '', subject: '', client: '' };

/** True if all parts of both are the same. */
export const isSame = (a: Principal, b: Principal): boolean => isSameUser(a, b) && a.credentials === b.credentials;

/**
 * True if a client may use what this principal has opened. Where clients authorize at the server, a session can begin
 * before its client has a token. Such a session belongs to whoever knows its id, as without authentication.
 */
export const ownsOrShares = (owner: Principal, client: Principal, authorizesClients = false): boolean =>
  isSame(owner, client) || (authorizesClients && isSame(owner, anonymous));

/** True if both are the same user, whatever their credentials for a server are. */
export const isSameUser = (a: Principal, b: Principal): boolean =>
  a.issuer === b.issuer && a.subject === b.subject && a.client === b.client;

/**
 * Whether several users have used a process. Its server may write for any of them at any time, also long after it has
 * answered. So what names no request must not reach one of them (P11, docs/decisions/0149).
 */
export class UsersOfProcess {
  #first: Principal | undefined;
  #areSeveral = false;

  get areSeveral(): boolean {
    return this.#areSeveral;
  }

  /** A user uses the process; undefined where users are not distinguished. */
  note(user: Principal | undefined): void {
    if (user === undefined) return;
    this.#first ??= user;
    this.#areSeveral ||= !isSameUser(user, this.#first);
  }
}
