import { HeldTokens, type RequestToken } from '../../backend/identity/held-tokens.ts';
import { NoUpstreamToken, type UpstreamTokens } from '../../backend/identity/upstream-tokens.ts';
import type { ServerConfig } from '../../config/config.ts';
import type { ServerEvent } from '../../server/server-events.ts';
import type { Emit } from '../../util/telemetry/emit.ts';

/**
 * Creates the tokens of a server; undefined if it needs none. The OAuth library is loaded with the first token
 * (docs/decisions/0085).
 */
export function createUpstreamTokens(
  { name: server, identity }: Pick<ServerConfig, 'name' | 'identity'>,
  emit: Emit<ServerEvent>,
): UpstreamTokens | undefined {
  if (identity === undefined) return undefined;
  let requesting: Promise<RequestToken> | undefined;
  const load = async (): Promise<RequestToken> => {
    const { createTokenRequests } = await import('../../backend/identity/token-client.ts');
    return createTokenRequests(identity);
  };
  return new HeldTokens(async (subject) => {
    requesting ??= load();
    try {
      const issued = await (await requesting)(subject);
      emit({ type: 'upstream-token', server, outcome: 'issued' });
      return issued;
    } catch (cause) {
      if (cause instanceof NoUpstreamToken)
        emit({ type: 'upstream-token', server, outcome: cause.reason, detail: cause.message });
      throw cause;
    }
  });
}
