import type { Era } from '../../protocol/revisions.ts';
import { discover, initialize, openProbeSession, ServerUnusableError } from '../probes/probe-session.ts';
import type { Openers } from './remote-openers.ts';

/**
 * Explains to the operator why a server failed in the era of the `era` option. Tries the other era once, for at most
 * `timeoutMs`. If the server answers there, the returned error blames the option; else it is `error`. Never rejects.
 */
export async function explainForcedEra(
  error: Error,
  era: Era,
  { open, openModern }: Pick<Openers, 'open' | 'openModern'>,
  timeoutMs: number,
): Promise<Error> {
  const other: Era = era === 'modern' ? 'legacy' : 'modern';
  const openOther = other === 'modern' ? openModern : open;
  if (openOther === undefined) return error;
  const session = openProbeSession(openOther, timeoutMs, other);
  try {
    const speaksModern = other === 'modern' && (await discover(session)) !== undefined;
    const speaksLegacy = other === 'legacy' && typeof (await initialize(session)).protocolVersion === 'string';
    if (!speaksModern && !speaksLegacy) return error;
  } catch {
    return error; // the server speaks neither era, so the option is not the cause
  } finally {
    await session.close();
  }
  const speaks = `The server supports the ${other} era, but --era is ${era}. Remove --era.`;
  return new ServerUnusableError(`${speaks} ${error.message}`);
}
