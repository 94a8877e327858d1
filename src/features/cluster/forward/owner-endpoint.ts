import { HeldBytes } from '../../../core/backend/held-bytes.ts';
import { type Message, readBody } from '../../../core/protocol/message/message.ts';
import { parseEventId } from '../../../core/protocol/wire/event-id.ts';
import type { RemoteOpening } from '../../../core/registry/session-cluster.ts';
import { faultAnswer } from '../../../core/reply/reply.ts';
import type { SessionHandle } from '../../../core/session/session-handle.ts';
import { detach } from '../../../core/util/boundary.ts';
import { type ClusterOptions, reportStoreFault } from '../cluster-parts.ts';
import type { Directory } from '../ownership/directory.ts';
import type { PeerReply, PeerRequest } from '../peers/peer-request.ts';

/** The most bytes of requests that wait for takeovers at once (P8). Each may have 4 MiB. */
const maxWaitingBytes = 64 * 1024 * 1024;

/** Serves the clients of other instances with the sessions of this one. */
export class OwnerEndpoint {
  readonly #options: Pick<ClusterOptions, 'findConnected' | 'openerOf' | 'telemetry'>;
  readonly #directory: Pick<Directory, 'handleHere' | 'isChanging' | 'takeOverReleased'>;
  /** The requests that wait for takeovers (P8). */
  readonly #held = new HeldBytes();
  /** The takeovers that requests have asked for, by session. */
  readonly #adoptions = new Map<string, Promise<void>>();

  constructor(
    options: Pick<ClusterOptions, 'findConnected' | 'openerOf' | 'telemetry'>,
    directory: Pick<Directory, 'handleHere' | 'isChanging' | 'takeOverReleased'>,
  ) {
    this.#options = options;
    this.#directory = directory;
  }

  serve(request: PeerRequest, body: Buffer, reply: PeerReply): void {
    const adoption = this.#adoptionFor(request);
    if (adoption === undefined) return this.#serve(request, body, reply);
    if (this.#held.bytes + body.length > maxWaitingBytes) return reply.answer(faultAnswer('server_busy', null));
    this.#held.bytes += body.length;
    const served = adoption.then(() => {
      this.#held.bytes -= body.length;
      if (!reply.isGone) this.#serve(request, body, reply);
    });
    detach('cluster', served, () => reply.answer(faultAnswer('internal', null)));
  }

  /** The takeover that the request waits for: one that it asks for, or one for a request before it. */
  #adoptionFor({ key, adopts, request }: PeerRequest): Promise<void> | undefined {
    const running = this.#adoptions.get(key);
    if (running !== undefined || adopts !== true || this.#find(key) !== undefined) return running;
    const adoption = this.#directory
      .takeOverReleased(key, request.forwarded)
      .catch((cause: unknown) => reportStoreFault(this.#options, cause));
    this.#adoptions.set(key, adoption);
    detach(
      'cluster',
      adoption.then(() => this.#adoptions.delete(key)),
    );
    return adoption;
  }

  /** The session, or the client with its stream, if this instance has it. */
  #find(key: string): SessionHandle | undefined {
    return this.#directory.handleHere(key) ?? this.#options.findConnected(key);
  }

  #serve(request: PeerRequest, body: Buffer, reply: PeerReply): void {
    const { key, kind } = request;
    if (kind === 'post' && request.opens !== undefined) return this.#open(key, request.opens, body, reply);
    const session = this.#find(key);
    if (session === undefined) return reply.deny(this.#directory.isChanging(key) ? 'ending' : 'moved');
    if (kind === 'remove') return session.remove(reply);
    if (kind === 'listen')
      return session.listen(request.after === undefined ? undefined : parseEventId(request.after), reply);
    const { isBatch = false, again = false, group } = request;
    session.post({ messages: readMessages(body), isBatch, again, ...(group && { group }) }, reply);
  }

  #open(key: string, opening: RemoteOpening, body: Buffer, reply: PeerReply): void {
    const [initialize] = readMessages(body);
    const open = initialize && this.#options.openerOf(key, opening, initialize);
    if (open === undefined) reply.deny('moved');
    else open(reply);
  }
}

/** Reads the messages that an ingress has already validated. A post of a group may have none. */
function readMessages(body: Buffer): readonly Message[] {
  if (body.length === 0) return [];
  const read = readBody(body, Number.POSITIVE_INFINITY);
  const messages = (read.ok ? read.messages : []).flatMap((each) => (each.ok ? [each.message] : []));
  if (!read.ok || messages.length < read.messages.length) throw new Error('an instance passed on what is no message');
  return messages;
}
