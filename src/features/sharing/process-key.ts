import { createHash, randomUUID } from 'node:crypto';
import type { AffinityPlace } from '../../core/protocol/affinity.ts';
import { valueAt } from '../../core/protocol/json.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { acceptsQuestions } from '../../core/protocol/methods/askable.ts';
import type { Principal } from '../../core/protocol/principal.ts';

/** The sessions with the same key may use each other's processes. */
export interface ProcessKey {
  readonly text: string;
  /**
   * The key of processes that no session has used for anything that has a state. A session with this key may use them.
   */
  readonly unused: string | undefined;
  /** True if no other session ever has this key. */
  readonly isOwn: boolean;
  /** True if the clients declare that the server may send them requests. */
  readonly asksClients: boolean;
}

/**
 * The key of a session's process.
 * @param owner the user; undefined if all users share
 * @param initialize the request of the session
 * @param ignoresName true if clients with other names may share the process. The revision and the capabilities must be
 *   equal: the server gets those of the first client
 * @param place the state that the session belongs to; undefined if the server has no affinity
 */
export function processKeyOf(
  owner: Principal | undefined,
  initialize: Message,
  ignoresName: boolean,
  place?: AffinityPlace,
): ProcessKey {
  const { issuer = '', subject = '', client = '', credentials = '' } = owner ?? {};
  const hash = createHash('sha256').update(JSON.stringify([issuer, subject, client, credentials]));
  const paths = ignoresName
    ? [
        ['params', 'protocolVersion'],
        ['params', 'capabilities'],
      ]
    : [['params']];
  for (const path of paths) hash.update('\0').update(valueAt(initialize.text, path) ?? Buffer.alloc(0));
  const asksClients = acceptsQuestions(initialize);
  const base = hash.digest('base64url');
  if (place === undefined || place.kind === 'undecided')
    return { text: base, unused: undefined, isOwn: false, asksClients };
  if (place.kind === 'own') return { text: `${base} ${randomUUID()}`, unused: base, isOwn: true, asksClients };
  return { text: `${base} ${place.mark}`, unused: base, isOwn: false, asksClients };
}
