import { isUpstreamRefusal } from '../../protocol/http/upstream-challenge.ts';
import type { EventOf } from '../../util/telemetry/emit.ts';
import { FloodLimiter } from '../flood-limiter.ts';
import type { GatewayEvent, GatewaySink } from '../gateway-events.ts';
import type { Log } from './log.ts';

/** The log of refused requests, dropped connections and missing tokens. */
export interface ConnectionLog {
  readonly receive: GatewaySink;
  /** Writes the lines that were held back. */
  close(): void;
}

/** What the operator can do, by the cause or the reason of a refusal. */
const helps = new Map<string, string>([
  ['host_not_allowed', 'If clients may use this host name, allow it with --allow-host.'],
  ['origin_not_allowed', 'If web pages of this origin may use the gateway, allow it with --allow-origin.'],
  [
    'credentials_required',
    'The request has no credentials. Configure the client to send a key or an access token in the header Authorization: Bearer KEY.',
  ],
  [
    'unknown_key',
    'No configured key matches. Correct the key in the client, or create one with mcp-gangway key NAME --add FILE.',
  ],
  [
    'upstream_proof_refused',
    'A server with auth: upstream cannot get DPoP proofs. Configure the client to get a token without DPoP.',
  ],
  ['expired_key', 'Create another key for this user with mcp-gangway key NAME --add FILE.'],
]);

/**
 * Logs requests that were not admitted and why, connections that were closed because too many are open, and tokens that
 * the gateway did not get. Each reason has at most one line a second (docs/logs.md). A client without credentials that learns where to get some takes the
 * first step of OAuth, so that is no warning. Neither is the request for a nonce, with which DPoP begins, nor the refusal
 * of a server that checks tokens itself.
 */
export function createConnectionLog({ auth, http }: Pick<Log, 'auth' | 'http'>): ConnectionLog {
  const limiter = new FloodLimiter<(left: { readonly leftOut?: number }) => void>((write, leftOut) =>
    write(leftOut > 0 ? { leftOut } : {}),
  );
  return {
    receive(event) {
      switch (event.type) {
        case 'sender-refused': {
          const { reason, detail } = event.challenge;
          return limiter.report(`${reason} ${detail?.why ?? ''}`, (left) => logRefusal(auth, event, left));
        }
        case 'upstream-token': {
          if (event.outcome === 'issued') return;
          const { server, outcome, detail } = event;
          const text = 'cannot get an access token for the server';
          return limiter.report(`token ${server} ${outcome}`, (left) =>
            auth.warn({ server, reason: outcome, detail, ...left }, text),
          );
        }
        case 'policy-failed': {
          const { server, phase, cause, detail } = event;
          const text = 'the policy service gave no usable answer';
          return limiter.report(`policy ${server} ${cause}`, (left) =>
            auth.warn({ server, phase, reason: cause, detail, ...left }, text),
          );
        }
        case 'connection-dropped': {
          const { type, maxConnections } = event;
          const text = 'closed a client connection: there are ten for each of --max-sessions';
          return limiter.report(type, (left) => http.warn({ maxConnections, ...left }, text));
        }
        case 'connection-flooded': {
          const { type, maxRequests } = event;
          const text = 'closed a client connection: it sent too many requests without waiting for their answers';
          return limiter.report(type, (left) => http.warn({ maxRequests, ...left }, text));
        }
      }
    },
    close: () => limiter.flush(),
  };
}

function logRefusal(
  auth: Log['auth'],
  { server, challenge }: EventOf<GatewayEvent, 'sender-refused'>,
  left: { readonly leftOut?: number },
): void {
  const { reason, detail, wwwAuthenticate } = challenge;
  const asksForLogin = reason === 'credentials_required' && wwwAuthenticate?.includes('resource_metadata=');
  // Where the server checks tokens itself, anybody can cause its refusals, and a POST causes no line at all.
  const isFirstStep = asksForLogin || reason === 'dpop_nonce_required' || isUpstreamRefusal(reason);
  const { why, expected, seen } = detail ?? {};
  const help = isFirstStep ? undefined : (helps.get(why ?? '') ?? helps.get(reason));
  auth[isFirstStep ? 'info' : 'warn']({ server, reason, why, expected, seen, help, ...left }, 'refused a request');
}
