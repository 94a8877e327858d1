import type { Era } from '../../protocol/revisions.ts';
import { discover, initialize, openProbeSession, ServerUnusableError } from '../probes/probe-session.ts';
import type { Openers } from './remote-openers.ts';

/**
 * Why a server did not answer in the era that `era` says, for the operator: what came of it (`error`), and if the server
 * answers in the other era, that the option is wrong. Asks it once more, for `timeoutMs` at most; never rejects.
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
  const trial = openProbeSession(openOther, timeoutMs, other);
  try {
    const speaksModern = other === 'modern' && (await discover(trial)) !== undefined;
    const speaksLegacy = other === 'legacy' && typeof (await initialize(trial)).protocolVersion === 'string';
    if (!speaksModern && !speaksLegacy) return error;
  } catch {
    return error; // it speaks neither, and that is no matter of the option
  } finally {
    await trial.close();
  }
  const speaks = `The server speaks the ${other} era, but --era is ${era}. Remove --era.`;
  return new ServerUnusableError(`${speaks} ${error.message}`);
}
