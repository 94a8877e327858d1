import type { Challenge } from '../../auth/identity.ts';
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

type TokenFailure = Exclude<EventOf<GatewayEvent, 'upstream-token'>, { outcome: 'issued' }>;

/**
 * Logs requests that were not admitted and why, connections that were closed because too many are open, and tokens that
 * the gateway did not get. Each reason
 * has at most one line a second (docs/logs.md). A client without credentials that learns where to get some takes the
 * first step of OAuth, so that is no warning. Neither is the request for a nonce, with which DPoP begins, nor the refusal
 * of a server that checks tokens itself.
 */
export function createConnectionLog({ auth, http }: Pick<Log, 'auth' | 'http'>): ConnectionLog {
  const refusals = new FloodLimiter<{ readonly server: string; readonly challenge: Challenge }>(
    ({ server, challenge: { reason, detail, wwwAuthenticate } }, leftOut) => {
      const asksForLogin = reason === 'credentials_required' && wwwAuthenticate?.includes('resource_metadata=');
      // Where the server checks tokens itself, anybody can cause its refusals, and a POST causes no line at all.
      const isFirstStep = asksForLogin || reason === 'dpop_nonce_required' || isUpstreamRefusal(reason);
      const { why, expected, seen } = detail ?? {};
      const help = isFirstStep ? undefined : (helps.get(why ?? '') ?? helps.get(reason));
      const line = { server, reason, why, expected, seen, help, ...(leftOut > 0 && { leftOut }) };
      auth[isFirstStep ? 'info' : 'warn'](line, 'refused a request');
    },
  );
  const drops = new FloodLimiter<number>((maxConnections, leftOut) =>
    http.warn(
      { maxConnections, ...(leftOut > 0 && { leftOut }) },
      'closed a client connection: there are ten for each of --max-sessions',
    ),
  );
  const floods = new FloodLimiter<number>((maxRequests, leftOut) =>
    http.warn(
      { maxRequests, ...(leftOut > 0 && { leftOut }) },
      'closed a client connection: it sent too many requests without waiting for their answers',
    ),
  );
  const tokens = new FloodLimiter<TokenFailure>(({ server, outcome, detail }, leftOut) =>
    auth.warn(
      { server, reason: outcome, detail, ...(leftOut > 0 && { leftOut }) },
      'cannot get an access token for the server',
    ),
  );
  const policies = new FloodLimiter<EventOf<GatewayEvent, 'policy-failed'>>(
    ({ server, phase, cause, detail }, leftOut) =>
      auth.warn(
        { server, phase, reason: cause, detail, ...(leftOut > 0 && { leftOut }) },
        'the policy service gave no usable answer',
      ),
  );
  return {
    receive(event) {
      if (event.type === 'sender-refused')
        refusals.report(`${event.challenge.reason} ${event.challenge.detail?.why ?? ''}`, event);
      else if (event.type === 'upstream-token' && event.outcome !== 'issued')
        tokens.report(`${event.server} ${event.outcome}`, event);
      else if (event.type === 'policy-failed') policies.report(`${event.server} ${event.cause}`, event);
      else if (event.type === 'connection-dropped') drops.report('connections', event.maxConnections);
      else if (event.type === 'connection-flooded') floods.report('requests', event.maxRequests);
    },
    close() {
      refusals.flush();
      tokens.flush();
      policies.flush();
      drops.flush();
      floods.flush();
    },
  };
}
